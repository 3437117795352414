package rwlock_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/locktrace"
	"relock/rlock"
	"relock/rwlock"
)

// far is of sessions whose looks are so far away that a test would notice one.
var far = rlock.Config{PollFloor: time.Hour}

// stand has writers of so many sessions stand in the line, one behind the other. Each says when it is in, and leaves
// when it is told.
func stand(t *testing.T, ctx context.Context, s *redistest.Server, sessions []*rlock.Session, name string, opts ...rlock.LockOption) (in []<-chan locked) {
	t.Helper()
	for i, ses := range sessions {
		in = append(in, goLock(ctx, rwlock.New(ses, name).Lock, opts...))
		redistest.Eventually(t, 10*time.Second, "the writer in the line", func() bool { return writersWaiting(t, s, name) == int64(i+1) })
		busy(ctx, time.Millisecond) // in a bubble two would come at the same time, and stand in any order
	}
	return in
}

// Writers of several sessions get in in the order of arrival. A release has one of them ask; a writer whose turn has not
// come asks once in all: when it came.
func TestWritersOfManySessionsGetInInTheirOrder(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		attempts := make(chan struct{}, 1000)
		cfg := far
		cfg.Trace = &rlock.Trace{Attempt: func(locktrace.Attempt) { attempts <- struct{}{} }}
		ctx, name := within(t, 2*time.Minute), redistest.Name(t)
		_, h := hold(t, ctx, rwlock.New(dial(t, s, far), name).Lock)
		var sessions []*rlock.Session
		for range 8 {
			sessions = append(sessions, dial(t, s, cfg))
		}
		in := stand(t, ctx, s, sessions, name)
		for i, c := range in {
			must(t, h.Unlock())
			got := locktest.Get(t, c, 20*time.Second, fmt.Sprintf("writer %d", i+1)) // a look is an hour away
			must(t, got.err)
			for _, later := range in[i+1:] {
				notIn(t, later, "one that came later")
			}
			h = got.hold
		}
		must(t, h.Unlock())
		// The first one listens to the lock's channel after a while, and asks then. In real time one behind may have been
		// called besides: a section has taken 5 ms.
		if n := len(attempts) - 1; n > 2*len(in) && (s.IsMini() || n > 3*len(in)) {
			t.Errorf("%d writers have asked %d times, want twice each", len(in), n)
		}
		nothingLeft(t, s)
	})
}

// writerCommands are two scripts, and what they call: the release, which gives the lock to the next writer, and the attempt
// of the one that has left, which waits again.
const writerCommands = 2 + 22

// The last reader that leaves lets the first writer in, which need not listen to the lock's channel for that.
func TestTheLastReaderLetsTheFirstWriterIn(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx, name := within(t, 30*time.Second), redistest.Name(t)
		_, r := hold(t, ctx, rwlock.New(dial(t, s, far), name).RLock)
		in := goLock(ctx, rwlock.New(dial(t, s, far), name).Lock)
		redistest.Eventually(t, 10*time.Second, "the writer in the line", func() bool { return writersWaiting(t, s, name) == 1 })
		began := time.Now()
		must(t, r.Unlock())
		got := locktest.Get(t, in, 5*time.Second, "the writer")
		must(t, got.err)
		if d := time.Since(began); s.IsMini() && d > time.Millisecond {
			t.Errorf("the writer is in after %v: it has found out by itself", d)
		}
		must(t, got.hold.Unlock())
		nothingLeft(t, s)
	})
}

// What the write side costs that passes from session to session does not depend on how many wait for it.
func TestAWritersHandOverCostsTheSameHoweverManySessionsWait(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		c := locktest.Circle{
			Channel: "redisson_rwlock:{x}", Want: writerCommands + 4,
			Lock: func(s *rlock.Session) locktest.LockFunc { return rwlock.New(s, "x").Lock },
		}
		few, many := c.Cost(t, s, 4), c.Cost(t, s, 64)
		// A busy machine takes 5 ms for a hand-over: then the first writer listens to the channel, and is called.
		most := writerCommands
		if !s.IsMini() {
			most += 4
		}
		if few > most || many > most {
			t.Errorf("with 4 sessions a hand-over costs %d commands, with 64 %d; want %d", few, many, most)
		}
	})
}

// Of sessions with several callers, too, a release has one of them ask at most: who is not the first does not listen to
// the lock's channel, whatever it did before.
func TestSessionsWithSeveralWritersDoNotAskInVain(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx, cancel := context.WithCancel(within(t, 60*time.Second))
		name := redistest.Name(t)
		var attempts, sections atomic.Int64
		cfg := rlock.Config{PollFloor: time.Minute, Trace: &rlock.Trace{Attempt: func(locktrace.Attempt) { attempts.Add(1) }}}
		var all sync.WaitGroup
		for range 16 {
			m := rwlock.New(dial(t, s, cfg), name)
			for range 3 {
				all.Go(func() {
					for {
						section, h, err := m.Lock(ctx)
						if err != nil {
							return
						}
						busy(section, 3*time.Millisecond)
						sections.Add(1)
						_ = h.Unlock() // the section may have ended with ctx
					}
				})
			}
		}
		busy(ctx, time.Second)
		before, of := attempts.Load(), sections.Load()
		busy(ctx, 2*time.Second)
		if a, n := attempts.Load()-before, sections.Load()-of; n == 0 || a > 2*n {
			t.Errorf("%d attempts for %d sections, want two each at most", a, n)
		}
		cancel()
		all.Wait()
	})
}

// A writer of a session that polls stands in no line. It keeps readers out as long as it waits, and no longer.
func TestAPollingWriterThatGivesUpLetsReadersIn(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx, name := within(t, 30*time.Second), redistest.Name(t)
		polls := dial(t, s, rlock.Config{Polling: func(int) time.Duration { return 20 * time.Millisecond }})
		m, other := rwlock.New(dial(t, s, rlock.Config{}), name), rwlock.New(dial(t, s, rlock.Config{}), name)
		_, h := hold(t, ctx, m.RLock)
		waits, stop := context.WithCancel(ctx)
		writer := goLock(waits, rwlock.New(polls, name).Lock)
		redistest.Eventually(t, 5*time.Second, "the writer to keep readers out", func() bool {
			_, ok := markUntil(t, s, name)
			return ok
		})
		refused(t, ctx, other.TryRLock, "a reader behind a writer")
		stop()
		is(t, "the writer", locktest.Get(t, writer, 5*time.Second, "the writer").err, context.Canceled)
		began := time.Now()
		_, r := hold(t, ctx, other.RLock)
		if d := time.Since(began); d > 500*time.Millisecond+s.Slack() {
			t.Errorf("a reader beside a reader waited %v, and no writer waits", d)
		}
		must(t, r.Unlock())
		must(t, h.Unlock())
		nothingLeft(t, s)
	})
}

// The session of the writer in front is stopped, or cut off without a word, and the writer has a lease of its own, so that
// it is called: the one behind it is in 5 ms after the release.
func TestTheWriterBehindOneThatIsSilentGetsIn(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx, name := within(t, 30*time.Second), redistest.Name(t)
		silent, p := locktest.DialProxy(t, s, far)
		_, h := hold(t, ctx, rwlock.New(dial(t, s, far), name).Lock)
		in := stand(t, ctx, s, []*rlock.Session{silent, dial(t, s, far)}, name, rlock.Lease(time.Minute))
		p.BlackHole(true)
		began := time.Now()
		must(t, h.Unlock())
		second := locktest.Get(t, in[1], 10*time.Second, "the second writer")
		must(t, second.err)
		if d := time.Since(began); d < 4*time.Millisecond || d > 5*time.Millisecond+s.Slack() {
			t.Errorf("the second is in after %v, want 5 ms, which are left to the first", d)
		}
		p.BlackHole(false)
		must(t, second.hold.Unlock())
		must(t, locktest.Get(t, in[0], 10*time.Second, "the first writer").hold.Unlock())
		nothingLeft(t, s)
	})
}

// However readers leave, the first writer is told: by their release, by a forced unlock, by a downgrade that is
// unlocked. Until then it keeps later readers out, also those that come behind a downgrade.
func TestTheFirstWriterIsToldThatReadersHaveLeft(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		for how, free := range map[string]func(ctx context.Context, m *rwlock.RWMutex, h *rlock.Hold) error{
			"Unlock": func(_ context.Context, _ *rwlock.RWMutex, h *rlock.Hold) error { return h.Unlock() },
			"ForceUnlock": func(ctx context.Context, m *rwlock.RWMutex, _ *rlock.Hold) error {
				_, err := m.ForceUnlock(ctx)
				return err
			},
		} {
			for _, downgrade := range []bool{false, true} {
				ctx, name := within(t, 30*time.Second), redistest.Name(t)
				m, other := rwlock.New(dial(t, s, far), name), rwlock.New(dial(t, s, far), name)
				section, own := ctx, (*rlock.Hold)(nil)
				if downgrade {
					section, own = hold(t, ctx, m.Lock)
				}
				_, h := hold(t, section, m.RLock)
				in := stand(t, ctx, s, []*rlock.Session{dial(t, s, far)}, name)
				if downgrade {
					must(t, own.Unlock())
				}
				redistest.Eventually(t, 5*time.Second, how+": the writer to keep readers out", func() bool {
					_, ok := markUntil(t, s, name)
					return ok
				})
				busy(ctx, 10*time.Millisecond) // the moment for readers that waited for a downgrade is over
				refused(t, ctx, other.TryRLock, how+": a reader behind a writer")
				must(t, free(ctx, m, h))
				got := locktest.Get(t, in[0], 5*time.Second, how+": the writer")
				must(t, got.err)
				must(t, got.hold.Unlock())
				if how == "Unlock" { // a forced unlock leaves the readers' helper keys to their TTL
					nothingLeft(t, s)
				}
				s.FlushAll(t)
			}
		}
	})
}

// An entry that its session does not know, as of an attempt that came late, leaves the line when it is called, and the
// writer behind it gets in.
func TestAnEntryThatItsSessionDoesNotKnowLeavesTheLine(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		for _, owner := range []string{":999", "order-17"} {
			ctx, name := within(t, 30*time.Second), redistest.Name(t)
			ses, behind := dial(t, s, far), dial(t, s, far)
			_, h := hold(t, ctx, rwlock.New(ses, name).Lock)
			flag, id := "W", ""
			if owner[0] != ':' {
				flag, id = "N", strings.Repeat("0", 32)
			}
			entry := fmt.Sprintf("%s00012509999999%05d%s%s%s", flag, len(ses.ID()), ses.ID(), id, owner)
			must(t, s.Do(t, "ZADD", "relock_line1:{"+name+"}", "100", entry, fmt.Sprint(int64(5e15)-time.Now().Add(time.Hour).UnixMilli()), "s"+ses.ID()).Error())
			must(t, s.Do(t, "PEXPIRE", "relock_line1:{"+name+"}", "600000").Error())
			in := goLock(ctx, rwlock.New(behind, name).Lock)
			redistest.Eventually(t, 10*time.Second, "both in the line", func() bool { return writersWaiting(t, s, name) == 2 })
			must(t, h.Unlock())
			got := locktest.Get(t, in, 5*time.Second, "the writer behind it")
			must(t, got.err)
			redistest.Eventually(t, 5*time.Second, "the entry to leave the line", func() bool { return writersWaiting(t, s, name) == 0 })
			must(t, got.hold.Unlock())
			nothingLeft(t, s)
		}
	})
}
