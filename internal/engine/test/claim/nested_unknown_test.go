package claim_test

import (
	"context"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/locktrace"
	"relock/rlock"
)

// A nested Lock of a name ends with an outcome that is not known, and has never reached Redis. While
// that of a second caller is under way a third one gives up waiting. What is cleaned up behind those two
// is not what the second has got, and no Unlock takes what never was there for a loss.
func TestNestedLockOfUnknownOutcomeCostsNoOtherHold(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		failed := make(chan struct{}, 1)
		trace := &rlock.Trace{Attempt: func(e locktrace.Attempt) {
			if e.Err != nil {
				select {
				case failed <- struct{}{}:
				default:
				}
			}
		}}
		ses, p := locktest.DialProxy(t, s, rlock.Config{Trace: trace})
		ctx := within(t, 60*time.Second)
		bob := rlock.WithOwner(ctx, "bob")
		m := rlock.New(ses, "x")
		_, first, err := m.Lock(bob)
		must(t, err)
		acquire := locktest.Calls(t, "acquire")

		p.Refuse(true)
		unknown, end := context.WithCancel(bob)
		gone := locktest.GoLock(m, unknown)
		locktest.Get(t, failed, 10*time.Second, "the attempt that is lost")
		second := locktest.GoLock(m, bob) // waits for the answer to that
		end()
		locktest.Is(t, "the first nested Lock", locktest.Get(t, gone, 10*time.Second, "it").Err, context.Canceled)
		seen, release := p.HoldReply(acquire)
		p.Refuse(false)
		locktest.Get(t, seen, 10*time.Second, "the second attempt")
		_, _, err = m.Lock(bob, rlock.Wait(50*time.Millisecond))
		locktest.Is(t, "the third nested Lock", err, rlock.ErrNotAcquired)
		release()
		got := locktest.Get(t, second, 10*time.Second, "the second nested Lock")
		must(t, got.Err)

		redistest.Eventually(t, 10*time.Second, "two holds are counted", func() bool {
			st, err := m.State(ctx)
			must(t, err)
			return st.Owners["bob"] == 2
		})
		must(t, first.Unlock())
		must(t, got.Ctx.Err())
		_, _, err = rlock.New(dial(t, s, rlock.Config{}), "x").TryLock(ctx)
		locktest.Is(t, "another owner", err, rlock.ErrNotAcquired)
		must(t, got.Hold.Unlock())
	})
}
