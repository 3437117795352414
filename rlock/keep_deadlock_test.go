package rlock_test

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
	for name, parties := range map[string]func(s []*rlock.Session) []party{
		"Two": func(s []*rlock.Session) []party {
			return []party{{rlock.New(s[0], "a", keep), rlock.New(s[0], "b", keep)}, {rlock.New(s[1], "b", keep), rlock.New(s[1], "a", keep)}}
		},
		"OneKeeps": func(s []*rlock.Session) []party {
			return []party{{rlock.New(s[0], "a", keep), rwlock.New(s[0], "b")}, {rwlock.New(s[1], "b"), rlock.New(s[1], "a")}}
		},
		"WriteSide": func(s []*rlock.Session) []party {
			return []party{{rwlock.New(s[0], "a", keep), rlock.New(s[0], "b")}, {rlock.New(s[1], "b"), reader{rwlock.New(s[1], "a")}}}
		},
		"InMemory": func(s []*rlock.Session) []party {
			return []party{{rlock.New(s[0], "a", keep), rlock.New(s[0], "b", keep)}, {rlock.New(s[0], "b", keep), rlock.New(s[0], "a", keep)}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
				ctx := within(t, time.Minute)
				open := []*rlock.Session{dial(t, s, rlock.Config{PollFloor: time.Minute}), dial(t, s, rlock.Config{PollFloor: time.Minute})}
				all := parties(open)
				for _, p := range all { // so that the ring is made of sections in what was kept
					_, h, err := p.holds.Lock(ctx)
					must(t, err)
					must(t, h.Unlock())
				}
				r := newRing(t, ctx, all...)
				r.sessions = open
				for i := range r.parties {
					r.wait(i)
				}
				r.resolve(3*time.Second + s.Slack())
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
		r := newRing(t, ctx, party{rlock.New(keeps, "a"), rlock.New(keeps, "b")}, party{rlock.New(other, "b"), rlock.New(other, "c")})
		r.wait(1)
		r.known(other, 1)
		redistest.Eventually(t, 5*time.Second, "a line", func() bool {
			n, err := s.Do(t, "EXISTS", "relock_line1:{c}").AsInt64()
			return err == nil && n == 1
		})
		p.DropMessages(false) // but it does hear of the search
		r.wait(0)
		for _, i := range []int{1, 0} { // c is asked for again and given back, b is left then
			got := locktest.Get(t, r.results, 20*time.Second, "a lock")
			if got.err != nil || got.i != i {
				t.Fatalf("party %d: %v; want party %d to have its lock", got.i, got.err, i)
			}
			must(t, got.hold.Unlock())
			must(t, r.holds[i].Unlock())
		}
	})
}
