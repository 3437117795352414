package claim_test

import (
	"context"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// The only hold of a section is abandoned while a nested Lock of it asks Redis, and then fails: the
// lock is left standing, as the Abandon has said, also by Close.
func TestAbandonWhileANestedLockFails(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		ses, late := locktest.DialGated(t, s, rlock.Config{})
		name := redistest.Name(t)
		m := rlock.New(ses, name)
		section, h, err := m.Lock(within(t, 30*time.Second))
		must(t, err)
		ctx, cancel := context.WithCancel(section)
		defer cancel()
		seen, send := late.Hold(locktest.Calls(t, "acquire"))
		defer send()
		nested := locktest.GoLock(m, ctx)
		locktest.Get(t, seen, 5*time.Second, "the nested Lock's attempt")
		must(t, h.Abandon())
		cancel()
		send()
		got := locktest.Get(t, nested, 5*time.Second, "the nested Lock")
		locktest.Is(t, "the nested Lock", got.Err, context.Canceled)
		locktest.Ends(t, section, s.Slack(), rlock.ErrReleased)
		must(t, ses.Close())
		if locktest.Free(t, s, name) {
			t.Error("the abandoned lock was released")
		}
	})
}
