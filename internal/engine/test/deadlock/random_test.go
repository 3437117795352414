package deadlock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"relock/fairlock"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/rwlock"
)

// Callers of several sessions that take their locks in one order never hear of a deadlock, however
// long they wait. If each takes them in an order of its own, all get through in the end.
func TestDeadlockRandomOrders(t *testing.T) {
	t.Parallel()
	for name, ordered := range map[string]bool{"Ordered": true, "Unordered": false} {
		t.Run(name, func(t *testing.T) {
			redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
				ctx := within(t, 10*time.Minute)
				rounds := 3
				if s.IsMini() && !testing.Short() { // no time passes
					rounds = 20
				}
				var victims, done atomic.Int32
				var callers sync.WaitGroup
				var sessions []*rlock.Session
				for range 3 {
					ses := dial(t, s, unpolled())
					sessions = append(sessions, ses)
					for range 3 {
						callers.Go(func() {
							for range rounds {
								err := takeSome(ctx, ses, ordered)
								switch {
								case errors.Is(err, rlock.ErrDeadlock):
									victims.Add(1)
								case err != nil:
									t.Error(err)
									return
								}
								done.Add(1)
							}
						})
					}
				}
				callers.Wait()
				n := victims.Load()
				t.Logf("%d rounds, %d victims", done.Load(), n)
				if ordered && n > 0 {
					t.Errorf("%d victims without a deadlock", n)
				}
				if !ordered && s.IsMini() && n == 0 {
					t.Error("there was no deadlock")
				}
				for _, ses := range sessions {
					if n := locktest.Suspects(ses); n > 0 {
						t.Errorf("a session still knows of %d waits", n)
					}
				}
			})
		})
	}
}

// takeSome takes three of five locks, one inside of the other, and has them for a while. In one
// order readers are among them; else not, for a reader may wait behind a writer who waits too.
func takeSome(ctx context.Context, ses *rlock.Session, ordered bool) (err error) {
	chosen := rand.Perm(5)[:3]
	if ordered {
		slices.Sort(chosen)
	}
	for _, i := range chosen {
		name := fmt.Sprint("lock", i)
		var l locktest.Locker
		switch {
		case i < 2:
			l = rlock.New(ses, name)
		case i < 4:
			l = fairlock.New(ses, name)
		case ordered && rand.IntN(2) == 0:
			l = reader{rwlock.New(ses, name)}
		default:
			l = rwlock.New(ses, name)
		}
		inner, h, lockErr := l.Lock(ctx)
		if lockErr != nil {
			return lockErr
		}
		defer func() { err = errors.Join(err, h.Unlock()) }()
		ctx = inner
		time.Sleep(rand.N(300 * time.Millisecond))
	}
	return nil
}
