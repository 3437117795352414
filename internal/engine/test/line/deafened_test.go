package line_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/semaphore"
)

func permitLock(ses *rlock.Session, name string) locker { return permit{semaphore.New(ses, name, 1)} }

// A permit is a semaphore's only one.
type permit struct{ m *semaphore.Semaphore }

func (p permit) Lock(ctx context.Context, opts ...rlock.LockOption) (context.Context, *rlock.Hold, error) {
	ctx, h, err := p.m.Acquire(ctx, 1, opts...)
	return ctx, (*rlock.Hold)(h), err
}

func (p permit) TryLock(ctx context.Context, opts ...rlock.LockOption) (context.Context, *rlock.Hold, error) {
	ctx, h, err := p.m.TryAcquire(ctx, 1, opts...)
	return ctx, (*rlock.Hold)(h), err
}

// A session loses its subscription while a caller of it stands in the line, and may not, or cannot, subscribe again. The
// caller has its turn all the same beside sessions that use the lock without a pause. When the session hears again it
// stands in the line as before.
func TestASessionThatHearsNothingAnyMoreGetsItsTurns(t *testing.T) {
	t.Parallel()
	kinds := map[string]duel{"permits": {permitLock, permitLock}}
	for kind, d := range duels {
		kinds[kind] = d
	}
	for kind, d := range kinds {
		t.Run(kind, func(t *testing.T) {
			redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
				r := newContest(t, s)
				r.lock = d.busy
				_, first, err := d.busy(dial(t, s, rlock.Config{}), r.name).Lock(r.ctx)
				must(t, err)
				deaf, p := locktest.DialProxy(t, s, rlock.Config{})
				waiter := d.sleepy(deaf, r.name)
				served := locktest.GoLock(waiter, r.ctx)
				inLine(t, s, r.name, deaf)
				redistest.Eventually(t, 20*time.Second, "the first of the line to listen to the lock's channel too", func() bool {
					channels, err := s.Do(t, "PUBSUB", "CHANNELS", "*{"+r.name+"}*").AsStrSlice()
					return err == nil && len(channels) > 0
				})
				p.RefuseCommand("SUBSCRIBE", "NOPERM this user has no permissions to access one of the channels")
				p.Cut()
				r.join(4, time.Millisecond)
				must(t, first.Unlock())
				began := time.Now()
				got := locktest.Get(t, served, 20*time.Second, "the lock")
				must(t, got.Err)
				t.Logf("it had the lock within %v; the others had it %d times", time.Since(began), r.sections.Load())
				must(t, got.Hold.Unlock())
				longest := r.getsIn(func(ctx context.Context, _ string) (context.Context, *rlock.Hold, error) { return waiter.Lock(ctx) })
				t.Logf("it had it again within %v", longest)
				p.RefuseCommand("SUBSCRIBE", "")
				r.end()
				_, first, err = d.busy(dial(t, s, rlock.Config{}), r.name).Lock(within(t, time.Minute))
				must(t, err)
				served = locktest.GoLock(waiter, within(t, time.Minute))
				inLine(t, s, r.name, deaf)
				must(t, first.Unlock())
				must(t, locktest.Get(t, served, 20*time.Second, "the lock").Hold.Unlock())
				locktest.Settled(t, deaf)
			})
		})
	}
}

// It has its turns also while Redis answers for this lock, and for another one of the session not, as where a part of a
// Cluster is down.
func TestASessionThatHearsNothingGetsItsTurnsBesideAnOutage(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		r := newContest(t, s)
		_, first, err := rlock.New(dial(t, s, rlock.Config{}), r.name).Lock(r.ctx)
		must(t, err)
		deaf, p := locktest.DialProxy(t, s, rlock.Config{})
		served := locktest.GoLock(rlock.New(deaf, r.name), r.ctx)
		inLine(t, s, r.name, deaf)
		away := redistest.Name(t)
		ofAway := func(cmd []string) bool { return slices.Contains(cmd, away) }
		for range 1000 {
			p.AnswerWith("-CLUSTERDOWN The cluster is down\r\n", ofAway)
		}
		ctx, cancel := context.WithCancel(r.ctx)
		stuck := locktest.GoLock(rlock.New(deaf, away), ctx)
		redistest.Eventually(t, 20*time.Second, "some attempts at the other lock", func() bool {
			n := 0
			for _, cmd := range p.Sent() {
				if ofAway(cmd) {
					n++
				}
			}
			return n > 2
		})
		p.RefuseCommand("SUBSCRIBE", "NOPERM this user has no permissions to access one of the channels")
		p.Cut()
		r.join(4, time.Millisecond)
		must(t, first.Unlock())
		got := locktest.Get(t, served, 20*time.Second, "the lock")
		must(t, got.Err)
		must(t, got.Hold.Unlock())
		cancel()
		if got = locktest.Get(t, stuck, 20*time.Second, "the end of the other Lock"); got.Err == nil {
			t.Error("the other lock was answered")
		}
		r.end()
	})
}

// A session that was cut off for longer keeps its place in the line, whichever of its connections is made anew first.
func TestASessionThatConnectsAgainKeepsItsPlace(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		for range redistest.Rounds(3) {
			ctx, name := within(t, time.Minute), redistest.Name(t)
			_, first, err := rlock.New(dial(t, s, rlock.Config{}), name).Lock(ctx)
			must(t, err)
			ses, p := locktest.DialProxy(t, s, rlock.Config{})
			served := locktest.GoLock(rlock.New(ses, name), ctx)
			inLine(t, s, name, ses)
			before := entriesOf(t, s, name, ses)
			p.Refuse(true)
			time.Sleep(about(3500 * time.Millisecond)) // the outage
			p.Refuse(false)
			for began := time.Now(); time.Since(began) < 2*time.Second; time.Sleep(about(20 * time.Millisecond)) {
				// On a busy machine it may take longer to connect again.
				if after := entriesOf(t, s, name, ses); redistest.MadeUpClock() && !slices.Equal(before, after) {
					t.Fatalf("%v behind the outage its entry %q is %q", time.Since(began), before, after)
				}
			}
			must(t, first.Unlock())
			must(t, locktest.Get(t, served, 20*time.Second, "the lock").Hold.Unlock())
		}
	})
}

// inLine waits until a session stands in the line of a lock of any kind.
func inLine(t *testing.T, s *redistest.Server, name string, ses *rlock.Session) {
	t.Helper()
	redistest.Eventually(t, 20*time.Second, "the session to stand in the line", func() bool {
		members, err := s.Do(t, "ZRANGE", locktest.LineOf(name), "0", "-1").AsStrSlice()
		return err == nil && slices.ContainsFunc(members, func(m string) bool {
			return strings.Contains("gVRP", m[:1]) && strings.Contains(m, ses.ID())
		})
	})
}
