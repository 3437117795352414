package quorum_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/quorum"
	"relock/rlock"
)

// A waiter is told when sessions end: it does not sleep on until it is time to look. Nor does it hold
// up the end of a session that leaves a majority to the others.
func TestWaiterIsToldOfTheEnd(t *testing.T) {
	shutdown := func(ctx context.Context, s *rlock.Session) error { return s.Shutdown(ctx) }
	closes := func(_ context.Context, s *rlock.Session) error { return s.Close() }
	for what, end := range map[string]func(context.Context, *rlock.Session) error{"Close": closes, "Shutdown": shutdown} {
		for _, how := range []string{"listening", "polling", "with Retry"} {
			t.Run(what+" "+how, func(t *testing.T) {
				all := cluster(t, 3, mini)
				ctx := within(t, time.Minute)
				_, h := lock(t, ctx, quorum.New(dial(t, all, slow()), "x"))
				rounds, cfg := make(chan int, 100), slow()
				var opts []rlock.LockOption
				switch sleeps := func(n int) time.Duration { rounds <- n; return time.Hour }; how {
				case "polling":
					cfg.Polling = sleeps
				case "with Retry":
					opts = append(opts, rlock.Retry(sleeps))
				}
				sleeps := func() {
					t.Helper()
					if how == "listening" {
						redistest.Eventually(t, 20*time.Second, "the waiter to listen", func() bool {
							return len(all[0].Mini.PubSubChannels("redisson_lock__channel*")) == 1
						})
						return
					}
					locktest.Get(t, rounds, 20*time.Second, "the waiter to sleep")
				}
				sessions, c := dial(t, all, cfg), make(chan error, 1)
				go func() {
					_, _, err := quorum.New(sessions, "x").Lock(ctx, opts...)
					c <- err
				}()
				sleeps()
				must(t, end(ctx, sessions[0]))
				if how != "listening" {
					sleeps()
				}
				select {
				case err := <-c:
					t.Fatalf("it does not wait any more: %v", err)
				default:
				}
				must(t, end(ctx, sessions[1]))
				is(t, "Lock", locktest.Get(t, c, 20*time.Second, "the waiter to leave"), rlock.ErrClosed)
				must(t, h.Unlock())
			})
		}
	}
}

// A key of another type, or a permission that is missing, on so many servers that no majority is left
// is an error at once. On fewer it is a vote less.
func TestRefusalsForGood(t *testing.T) {
	each(t, func(t *testing.T, all []*redistest.Server) {
		ctx := within(t, time.Minute)
		m := quorum.New(dial(t, all, slow()), "x")
		for _, s := range all[:2] {
			must(t, s.Do(t, "SET", "x", "no lock").Error())
		}
		free(t, ctx, m)
		must(t, all[2].Do(t, "SET", "x", "no lock").Error())
		for what, lock := range map[string]func(context.Context, ...rlock.LockOption) (context.Context, *quorum.Hold, error){"Lock": m.Lock, "TryLock": m.TryLock} {
			_, _, err := lock(ctx)
			if err == nil || !strings.Contains(err.Error(), "WRONGTYPE") || errors.Is(err, rlock.ErrNotAcquired) || errors.Is(err, rlock.ErrUnavailable) {
				t.Errorf("%s of keys of another type: %v", what, err)
			}
		}
	})
}

// What comes of votes that are given when the section has been lost is nothing: the section stays
// lost, and its hold has no time left.
func TestVotesThatComeBehindALoss(t *testing.T) {
	all := cluster(t, 5, real)
	ctx := within(t, time.Minute)
	sessions := dial(t, all[2:], slow())
	var proxies []interface {
		HoldReply(func([]string) bool) (<-chan struct{}, func())
	}
	for _, s := range all[:2] {
		ses, p := locktest.DialProxy(t, s, slow())
		sessions, proxies = append(sessions, ses), append(proxies, p)
	}
	m := quorum.New(sessions, "x")
	warm(t, ctx, m, all)
	acquires := locktest.Runs(quorum.AcquireSource)
	for range 10 { // on a busy machine the votes may be too late to be taken at all
		seen0, release0 := proxies[0].HoldReply(acquires)
		seen1, release1 := proxies[1].HoldReply(acquires)
		section, h := lock(t, ctx, m)
		locktest.Get(t, seen0, 10*time.Second, "a slow vote")
		locktest.Get(t, seen1, 10*time.Second, "a slow vote")
		for h.Votes() < 3 {
			t.Fatalf("a section with %d votes", h.Votes())
		}
		_, err := rlock.New(sessions[0], "x").ForceUnlock(ctx)
		must(t, err)
		ends(t, section, 10*time.Second, rlock.ErrLost)
		release0()
		release1()
		redistest.Eventually(t, 10*time.Second, "the late votes to be given back", func() bool {
			if h.Votes() > 2 || h.Remaining() != 0 {
				t.Fatalf("a lost section has %d votes for %v", h.Votes(), h.Remaining())
			}
			return len(all[0].Keys(t)) == 1 && len(all[1].Keys(t)) == 1
		})
		is(t, "Unlock", h.Unlock(), rlock.ErrLost)
		redistest.Eventually(t, 10*time.Second, "all votes to be given back", func() bool {
			for _, s := range all {
				if len(s.Keys(t)) != 1 {
					return false
				}
			}
			return true
		})
	}
}

// A register is a context that knows how much was derived from it and has not ended.
type register struct {
	context.Context
	done chan struct{}
	open atomic.Int64
}

func (r *register) Done() <-chan struct{} { return r.done }
func (r *register) Value(any) any         { return nil }

// AfterFunc is what package context asks for where there is one.
func (r *register) AfterFunc(func()) (stop func() bool) {
	r.open.Add(1)
	return sync.OnceValue(func() bool {
		r.open.Add(-1)
		return true
	})
}

// A Lock leaves nothing behind in its caller's context, which may live for as long as the process.
func TestNothingStaysInTheCallersContext(t *testing.T) {
	each(t, func(t *testing.T, all []*redistest.Server) {
		ctx := within(t, 30*time.Second)
		sessions := dial(t, all, slow())
		m, other := quorum.New(sessions, "x"), quorum.New(sessions, "x")
		for what, opts := range map[string][]rlock.LockOption{
			"no option": nil, "Wait": {rlock.Wait(time.Minute)}, "Retry": {rlock.Retry(rlock.Linear(time.Millisecond))},
		} {
			own := &register{Context: ctx, done: make(chan struct{})}
			_, h := lock(t, own, m, opts...)
			_, _, err := other.Lock(own, rlock.Wait(20*time.Millisecond))
			locktest.Is(t, what+": a Lock that is refused", err, rlock.ErrNotAcquired)
			locktest.Must(t, h.Unlock())
			redistest.Eventually(t, 10*time.Second, what+": nothing to be left", func() bool { return own.open.Load() == 0 })
		}
	})
}
