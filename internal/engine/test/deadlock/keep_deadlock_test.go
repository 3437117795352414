package deadlock_test

import (
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/rwlock"
)

// A deadlock is found too if the sections in it are on locks that their sessions have kept and taken again.
func TestDeadlockInsideOfKeptLocks(t *testing.T) {
	t.Parallel()
	keep := rlock.Keep(10 * time.Second)
	for name, parties := range map[string]func(s []*rlock.Session) []locktest.Party{
		"Two": func(s []*rlock.Session) []locktest.Party {
			return []locktest.Party{{Holds: rlock.New(s[0], "a", keep), Wants: rlock.New(s[0], "b", keep)}, {Holds: rlock.New(s[1], "b", keep), Wants: rlock.New(s[1], "a", keep)}}
		},
		"OneKeeps": func(s []*rlock.Session) []locktest.Party {
			return []locktest.Party{{Holds: rlock.New(s[0], "a", keep), Wants: rwlock.New(s[0], "b")}, {Holds: rwlock.New(s[1], "b"), Wants: rlock.New(s[1], "a")}}
		},
		"WriteSide": func(s []*rlock.Session) []locktest.Party {
			return []locktest.Party{{Holds: rwlock.New(s[0], "a", keep), Wants: rlock.New(s[0], "b")}, {Holds: rlock.New(s[1], "b"), Wants: reader{rwlock.New(s[1], "a")}}}
		},
		"InMemory": func(s []*rlock.Session) []locktest.Party {
			return []locktest.Party{{Holds: rlock.New(s[0], "a", keep), Wants: rlock.New(s[0], "b", keep)}, {Holds: rlock.New(s[0], "b", keep), Wants: rlock.New(s[0], "a", keep)}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
				ctx := within(t, time.Minute)
				open := []*rlock.Session{dial(t, s, rlock.Config{PollFloor: time.Minute}), dial(t, s, rlock.Config{PollFloor: time.Minute})}
				all := parties(open)
				for _, p := range all { // so that the ring is made of sections in what was kept
					_, h, err := p.Holds.Lock(ctx)
					must(t, err)
					must(t, h.Unlock())
				}
				r := locktest.NewRing(t, ctx, all...)
				r.Sessions = open
				for i := range r.Parties {
					r.Wait(i)
				}
				r.Resolve(3*time.Second + s.Slack())
			})
		})
	}
}

// A session that keeps a lock is not inside: who waits for it waits for none of the session's callers, whatever those
// wait for.
func TestNoDeadlockByAKeptLock(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, time.Minute)
		keeps, p := locktest.DialProxy(t, s, rlock.Config{PollFloor: time.Minute})
		other := dial(t, s, rlock.Config{PollFloor: time.Minute})
		c := rlock.New(keeps, "c", rlock.Keep(10*time.Second))
		_, h, err := c.Lock(ctx)
		must(t, err)
		must(t, h.Unlock())
		p.DropMessages(true) // it does not hear at once that it is asked
		r := locktest.NewRing(t, ctx, locktest.Party{Holds: rlock.New(keeps, "a"), Wants: rlock.New(keeps, "b")}, locktest.Party{Holds: rlock.New(other, "b"), Wants: rlock.New(other, "c")})
		r.Wait(1)
		r.Known(other, 1)
		redistest.Eventually(t, 5*time.Second, "a line", func() bool {
			n, err := s.Do(t, "EXISTS", "relock_line1:{c}").AsInt64()
			return err == nil && n == 1
		})
		p.DropMessages(false) // but it does hear of the search
		r.Wait(0)
		for _, i := range []int{1, 0} { // c is asked for again and given back, b is left then
			got := locktest.Get(t, r.Results, 20*time.Second, "a lock")
			if got.Err != nil || got.I != i {
				t.Fatalf("party %d: %v; want party %d to have its lock", got.I, got.Err, i)
			}
			must(t, got.Hold.Unlock())
			must(t, r.Holds[i].Unlock())
		}
	})
}
