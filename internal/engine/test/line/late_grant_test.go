package line_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// A lateGrant is a lock that was granted to a session which has not heard of it yet: its network is silent. All
// looks are an hour away.
type lateGrant struct {
	*locktest.Stage
	other *rlock.Session
	front <-chan locktest.Locked // the caller that it was granted for
	leave context.CancelFunc
}

// newLateGrant has others wait in the session, and then one in other, before the lock is granted.
func newLateGrant(t *testing.T, s *redistest.Server, others func(g *lateGrant)) (g *lateGrant, behind <-chan locktest.Locked) {
	t.Helper()
	cfg := rlock.Config{PollFloor: time.Hour}
	holder := dial(t, s, cfg)
	g = &lateGrant{Stage: locktest.NewStage(t, s, cfg), other: dial(t, s, cfg)}
	_, h, err := rlock.New(holder, g.Name).Lock(g.Ctx)
	must(t, err)
	own, leave := context.WithCancel(g.Ctx)
	t.Cleanup(leave)
	g.leave = leave
	g.front = g.Queue(own)
	g.AsksNoMore()
	others(g)
	behind = locktest.GoLock(rlock.New(g.other, g.Name), g.Ctx)
	locktest.AwaitInLine(t, s, g.Name, g.other)
	locktest.Stays(t, g.Ctx, 100*time.Millisecond) // nothing is on its way any more
	g.Proxy.BlackHole(true)
	must(t, h.Unlock())
	if owner := locktest.OnlyOwner(t, g.Stage); !locktest.OfSession(g.Session, owner) {
		t.Fatalf("%q has the lock, want an owner of the session that stands in front", owner)
	}
	return g, behind
}

// cancelled has the caller go that the lock was granted for, and then the message come.
func (g *lateGrant) cancelled() {
	g.T.Helper()
	g.leave()
	locktest.Is(g.T, "the front's Lock", locktest.Get(g.T, g.front, 10*time.Second, "the front").Err, rlock.ErrNotAcquired, context.Canceled)
	g.Proxy.BlackHole(false)
}

// atOnce returns what a waiter gets, which must be the lock, and not by the end of the grant's lease.
func (g *lateGrant) atOnce(c <-chan locktest.Locked, began time.Time, who string) *rlock.Hold {
	g.T.Helper()
	got := locktest.Get(g.T, c, g.Server.Slack(), who)
	must(g.T, got.Err)
	if d := got.At.Sub(began); d > g.Server.Slack() {
		g.T.Errorf("%s has the lock after %v", who, d)
	}
	return got.Hold
}

// The caller has just been cancelled: the next one of its session that wants the same has what was granted, before
// another session has it (scenario 31).
func TestAGrantForACancelledCallerServesTheNextOfItsSession(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		var next <-chan locktest.Locked
		g, behind := newLateGrant(t, s, func(g *lateGrant) { next = g.Queue(g.Ctx) })
		granted := locktest.OnlyOwner(t, g.Stage)
		g.cancelled()
		h := g.atOnce(next, time.Now(), "the next of the session")
		if h.Owner() != granted {
			t.Errorf("it has the lock as %q, and it was granted to %q", h.Owner(), granted)
		}
		g.Outside(behind, "the other session's Lock")
		must(t, h.Unlock())
		must(t, g.atOnce(behind, time.Now(), "the other session").Unlock())
		locktest.NothingLeft(t, s, g.Session, g.other)
	})
}

// The other callers of the session want something else, or there are none. They have the lock without a look, and so
// has the other session, in any order.
func TestAGrantForACancelledCallerIsFreeForCallersThatWantAnother(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		owner string
		opts  []rlock.LockOption
		kind  []rlock.MutexOption
	}{
		"nobody":             {},
		"fenced":             {kind: []rlock.MutexOption{rlock.Fenced()}},
		"named":              {owner: "order-17"},
		"a lease of its own": {opts: []rlock.LockOption{rlock.Lease(time.Minute)}},
	} {
		t.Run(what, func(t *testing.T) {
			redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
				var next <-chan locktest.Locked
				g, behind := newLateGrant(t, s, func(g *lateGrant) {
					if what != "nobody" {
						ctx := g.Ctx
						if c.owner != "" {
							ctx = rlock.WithOwner(ctx, c.owner)
						}
						next = g.QueueFor(rlock.New(g.Session, g.Name, c.kind...), ctx, c.opts...)
					}
				})
				g.cancelled()
				began := time.Now()
				if next == nil {
					must(t, g.atOnce(behind, began, "the other session").Unlock())
					locktest.NothingLeft(t, s, g.Session, g.other)
					return
				}
				first, second := behind, next
				select { // either may be the first
				case l := <-behind:
					again := make(chan locktest.Locked, 1)
					again <- l
					first = again
				case l := <-next:
					again := make(chan locktest.Locked, 1)
					again <- l
					first, second = again, behind
				case <-time.After(s.Slack()):
					t.Fatal("nobody has the lock that was granted to a caller who has gone")
				}
				must(t, g.atOnce(first, began, "the first").Unlock())
				must(t, g.atOnce(second, time.Now(), "the second").Unlock())
				if c.kind == nil { // fencing tokens stay
					locktest.NothingLeft(t, s, g.Session, g.other)
				}
			})
		})
	}
}

// The session is closing: what was granted to it is free for the next session as soon as it can say so.
func TestAGrantForASessionThatClosesIsFreeForTheNext(t *testing.T) {
	t.Parallel()
	for _, callers := range []int{1, 3} {
		t.Run(fmt.Sprint(callers, " callers"), func(t *testing.T) {
			redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
				var own []<-chan locktest.Locked
				g, behind := newLateGrant(t, s, func(g *lateGrant) {
					for range callers - 1 {
						own = append(own, g.Queue(g.Ctx))
					}
				})
				closed := locktest.Go(g.Session.Close)
				for _, c := range append(own, g.front) {
					locktest.Is(t, "a waiter's Lock", locktest.Get(t, c, 10*time.Second, "a waiter").Err, rlock.ErrClosed)
				}
				g.Outside(behind, "the other session's Lock")
				g.Proxy.BlackHole(false)
				must(t, g.atOnce(behind, time.Now(), "the other session").Unlock())
				must(t, locktest.Get(t, closed, 10*time.Second, "Close"))
				locktest.NothingLeft(t, s, g.other)
			})
		})
	}
}

// Callers are cancelled just when the lock is granted to them: whichever comes first, the next of the session and
// the other session have it without a look.
func TestACancelRacesAGrant(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		cfg := rlock.Config{PollFloor: time.Hour}
		holder, ses, other := dial(t, s, cfg), dial(t, s, cfg), dial(t, s, cfg)
		ctx := within(t, time.Minute)
		for i := range redistest.Rounds(60) {
			name := redistest.Name(t)
			_, h, err := rlock.New(holder, name).Lock(ctx)
			must(t, err)
			own, leave := context.WithCancel(ctx)
			defer leave()
			waiting := []<-chan locktest.Locked{locktest.GoLock(rlock.New(ses, name), own)}
			locktest.AwaitInLine(t, s, name, ses)
			if i%2 == 0 {
				waiting = append(waiting, locktest.QueueUp(t, ses, name, ctx))
			}
			waiting = append(waiting, locktest.GoLock(rlock.New(other, name), ctx))
			locktest.AwaitInLine(t, s, name, other)
			unlocked := locktest.Go(h.Unlock)
			time.AfterFunc(time.Duration(i)*10*time.Microsecond, leave)
			done := make(chan error, len(waiting))
			for n, c := range waiting { // the next of the session and the other come in any order
				go func() {
					l := <-c
					if l.Err == nil {
						l.Err = l.Hold.Unlock()
					} else if n == 0 { // it was cancelled
						l.Err = nil
					}
					done <- l.Err
				}()
			}
			for range waiting {
				must(t, locktest.Get(t, done, 10*time.Second, fmt.Sprint("a waiter of round ", i)))
			}
			must(t, <-unlocked)
		}
		locktest.NothingLeft(t, s, holder, ses, other)
	})
}
