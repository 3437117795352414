package fault_test

import (
	"context"
	"testing"
	"time"

	"relock/fairlock"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// Where the ACL was narrowed, the script that releases a lock may end when it has made the next session its owner, and
// has not removed the one that leaves. Then both stood in the lock. When the next one had left, and the ACL was mended, the
// release was sent again, and let one more in beside the owner.
func TestAReleaseThatEndsMidwayLeavesOneOwner(t *testing.T) {
	t.Parallel()
	s := redistest.Real(t)
	opt, allow := faultUser(t, s, "u")
	ctx := within(t, time.Minute)
	a, err := rlock.Dial(ctx, opt, rlock.Config{})
	must(t, err)
	t.Cleanup(func() { a.Close() })
	others := [3]*rlock.Session{dial(t, s, rlock.Config{}), dial(t, s, rlock.Config{}), dial(t, s, rlock.Config{})}
	for what, lock := range map[string]func(s *rlock.Session, name string) locktest.Locker{
		"plain":  func(s *rlock.Session, name string) locktest.Locker { return rlock.New(s, name) },
		"fenced": func(s *rlock.Session, name string) locktest.Locker { return rlock.New(s, name, rlock.Fenced()) },
		"fair":   func(s *rlock.Session, name string) locktest.Locker { return fairlock.New(s, name) },
	} {
		for _, forbidden := range []string{"pexpire", "zrem"} {
			name := what + " without " + forbidden
			_, h, err := lock(a, name).Lock(ctx)
			must(t, err)
			in := make(chan *rlock.Hold, len(others))
			for i, ses := range others {
				go func() {
					_, h, err := lock(ses, name).Lock(ctx)
					if err != nil {
						t.Errorf("%s: %v", name, err)
					}
					in <- h
				}()
				redistest.Eventually(t, 10*time.Second, "the session stands in the line", func() bool {
					n, err := rlock.New(others[0], name).Waiters(context.Background())
					return err == nil && n == i+1
				})
			}
			allow("-" + forbidden)
			_ = h.Unlock() // which is denied, or does without that command
			for i := range others {
				h := locktest.Get(t, in, locktest.Patience, name+": a session is in")
				if i == 1 {
					allow()
					redistest.Eventually(t, locktest.Patience, "the first session to have nothing to release", func() bool {
						_, _, _, _, releases := locktest.Books(a)
						return releases == 0
					})
				}
				owners, err := s.Do(t, "HKEYS", name).AsStrSlice()
				if err != nil || len(owners) != 1 || owners[0] != h.Owner() {
					t.Errorf("%s: %s is in, and Redis has %q, %v", name, h.Owner(), owners, err)
				}
				must(t, h.Unlock())
			}
		}
	}
}
