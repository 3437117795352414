package line_test

import (
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// When Redis has lost a line, the next look of a session enters it again with all its callers, not with one.
func TestWaitersAreCountedAgainInALineThatWasLost(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		holder, ses := dial(t, s, rlock.Config{}), dial(t, s, rlock.Config{PollFloor: 500 * time.Millisecond})
		ctx := within(t, time.Minute)
		m := rlock.New(holder, "x")
		_, h, err := m.Lock(ctx)
		must(t, err)
		done := make(chan error, 3)
		for range cap(done) {
			go func() {
				_, h, err := rlock.New(ses, "x").Lock(ctx)
				if err == nil {
					err = h.Unlock()
				}
				done <- err
			}()
		}
		counted := func() bool {
			n, err := m.Waiters(ctx)
			must(t, err)
			return n == cap(done)
		}
		redistest.Eventually(t, 5*time.Second, "three to wait", counted)
		must(t, s.Do(t, "DEL", locktest.LineOf("x")).Error())
		redistest.Eventually(t, 5*time.Second, "three to wait again", counted)
		must(t, h.Unlock())
		for range cap(done) {
			must(t, locktest.Get(t, done, 5*time.Second, "a waiter"))
		}
	})
}
