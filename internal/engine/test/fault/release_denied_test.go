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

// The script that releases a lock makes the next session its owner before it removes the one that leaves. Where the ACL
// was narrowed in between, so that it may not do the latter, both stood in the lock, and each repetition let one more in.
func TestAReleaseThatIsDeniedLetsOneIn(t *testing.T) {
	t.Parallel()
	s := redistest.Real(t)
	opt, allow := faultUser(t, s, "u")
	ctx := within(t, time.Minute)
	open := func() *rlock.Session {
		ses, err := rlock.Dial(ctx, opt, locktest.Slow())
		must(t, err)
		t.Cleanup(func() { ses.Close() })
		return ses
	}
	a, b, c := open(), open(), open()
	for what, lock := range map[string]func(*rlock.Session) locktest.Locker{
		"plain": func(s *rlock.Session) locktest.Locker { return rlock.New(s, "plain") },
		"fair":  func(s *rlock.Session) locktest.Locker { return fairlock.New(s, "fair") },
	} {
		_, h, err := lock(a).Lock(ctx)
		must(t, err)
		in := make(chan *rlock.Hold, 2)
		for i, ses := range []*rlock.Session{b, c} {
			go func() {
				_, h, err := lock(ses).Lock(ctx)
				if err != nil {
					t.Errorf("%s: %v", what, err)
				}
				in <- h
			}()
			redistest.Eventually(t, 10*time.Second, "the session stands in the line", func() bool {
				n, err := rlock.New(a, what).Waiters(context.Background())
				return err == nil && n == i+1
			})
		}
		allow("-hdel")
		must(t, h.Unlock())
		for i := range 2 {
			h := locktest.Get(t, in, locktest.Patience, what+": a session is in")
			owners, err := s.Do(t, "HKEYS", what).AsStrSlice()
			if err != nil || len(owners) != 1 || owners[0] != h.Owner() {
				t.Errorf("%s: %s is in, and Redis has %q, %v", what, h.Owner(), owners, err)
			}
			if i == 1 { // nobody waits any more: that release is refused as a whole
				allow()
			}
			must(t, h.Unlock())
		}
	}
}
