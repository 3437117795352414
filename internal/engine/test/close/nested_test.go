package close_test

import (
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// A nested Lock of a named owner is about to be written when its session closes, and another session holds under the same
// name: nothing of the one that closes is left behind the other's Unlock.
func TestCloseDoesNotOvertakeANestedAttempt(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := rlock.WithOwner(within(t, time.Minute), "me")
		_, h, err := rlock.New(dial(t, s, rlock.Config{}), "x").Lock(ctx)
		must(t, err)
		ses, client := locktest.DialGated(t, s, rlock.Config{})
		section, _, err := rlock.New(ses, "x").Lock(ctx)
		must(t, err)
		seen, send := client.Hold(locktest.Calls(t, "acquire"))
		t.Cleanup(send)
		nested := locktest.GoLock(rlock.New(ses, "x"), section)
		locktest.Get(t, seen, 10*time.Second, "the nested attempt")
		closed := locktest.Go(ses.Close)
		locktest.Ends(t, section, 10*time.Second, rlock.ErrClosed)
		select {
		case err := <-closed:
			t.Errorf("Close has returned: %v", err)
		case <-time.After(50 * time.Millisecond): // it waits for the attempt, and must not be late for that
		}
		send()
		locktest.Is(t, "the nested Lock", locktest.Get(t, nested, 10*time.Second, "the nested Lock").Err, rlock.ErrClosed)
		must(t, locktest.Get(t, closed, 10*time.Second, "Close"))
		must(t, h.Unlock())
		if !locktest.Free(t, s, "x") {
			t.Errorf("left: %s", locktest.Describe(t, s))
		}
	})
}
