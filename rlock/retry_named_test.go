package rlock_test

import (
	"context"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// Callers of one named owner retry each for itself, as those of several sessions do: that one of
// them sleeps is no refusal to the others that is final.
func TestCallersOfANameRetry(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx, ses, other := within(t, 30*time.Second), dial(t, s, rlock.Config{}), dial(t, s, rlock.Config{})
		_, h, err := rlock.New(other, "x").Lock(ctx)
		must(t, err)
		m, bob := rlock.New(ses, "x"), rlock.WithOwner(ctx, "bob")
		const callers = 3
		refused := make(chan struct{}, 3*callers) // each of them, some times
		got := make(chan error, callers)
		for range callers {
			go func() {
				_, h, err := m.Lock(bob, rlock.Retry(func(n int) time.Duration {
					if n <= 3 {
						refused <- struct{}{}
					}
					return 20 * time.Millisecond
				}))
				if err == nil {
					err = h.Unlock()
				}
				got <- err
			}()
		}
		for range 3 * callers {
			locktest.Get(t, refused, 20*time.Second, "a refusal")
		}
		must(t, h.Unlock())
		for range callers {
			must(t, locktest.Get(t, got, 20*time.Second, "a caller"))
		}
		// As many attempts as Limit allows, and no longer than Wait, behind one that sleeps.
		_, h, err = rlock.New(other, "x").Lock(ctx)
		must(t, err)
		defer h.Unlock()
		sleeping := make(chan struct{})
		own, end := context.WithCancel(bob)
		go func() {
			_, _, err := m.Lock(own, rlock.Retry(func(int) time.Duration { close(sleeping); return time.Hour }))
			got <- err
		}()
		<-sleeping
		attempts := 0
		_, _, err = m.Lock(bob, rlock.Retry(rlock.Limit(func(n int) time.Duration { attempts = n; return time.Millisecond }, 3)))
		if locktest.Is(t, "after three attempts", err, rlock.ErrNotAcquired); attempts != 2 {
			t.Errorf("it slept %d times, want 2", attempts)
		}
		_, _, err = m.Lock(bob, rlock.Retry(rlock.Linear(10*time.Millisecond)), rlock.Wait(50*time.Millisecond))
		locktest.Is(t, "after Wait", err, rlock.ErrNotAcquired)
		end()
		locktest.Is(t, "the one that slept", locktest.Get(t, got, 20*time.Second, "it"), rlock.ErrNotAcquired, context.Canceled)
	})
}

// While a caller of a named owner sleeps before its next attempt, the others of that name lock, try
// and wait as if it were not there; it nests in what they hold.
func TestACallerOfANameThatSleepsHoldsUpNone(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx, ses, other := within(t, 30*time.Second), dial(t, s, rlock.Config{}), dial(t, s, rlock.Config{})
		_, h, err := rlock.New(other, "x").Lock(ctx)
		must(t, err)
		m, bob := rlock.New(ses, "x"), rlock.WithOwner(ctx, "bob")
		own, wake := context.WithCancel(bob)
		sleeping, got := make(chan struct{}), make(chan error, 1)
		go func() {
			_, _, err := m.Lock(own, rlock.Retry(func(int) time.Duration { close(sleeping); return time.Hour }))
			got <- err
		}()
		<-sleeping
		waiter := locktest.Go(func() error {
			_, h, err := m.Lock(bob)
			if err == nil {
				err = h.Unlock()
			}
			return err
		})
		must(t, h.Unlock())
		must(t, locktest.Get(t, waiter, 10*time.Second, "a Lock of the same name"))
		_, try, err := m.TryLock(bob)
		must(t, err)
		must(t, try.Unlock())
		wake()
		locktest.Is(t, "the one that slept", locktest.Get(t, got, 10*time.Second, "it"), rlock.ErrNotAcquired, context.Canceled)

		_, h, err = m.TryLock(bob)
		must(t, err)
		_, inner, err := m.Lock(bob, rlock.Retry(rlock.Linear(time.Hour)))
		must(t, err)
		st, err := m.State(ctx)
		if must(t, err); st.Owners["bob"] != 2 {
			t.Errorf("owners %v, want bob twice", st.Owners)
		}
		must(t, h.Unlock())
		must(t, inner.Unlock())
	})
}

// Two callers of one named owner that try at the same time get a lock that no other owner holds, both:
// the second waits for the answer to the first.
func TestTryLocksOfANameAtOnce(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, 30*time.Second)
		ses, p := locktest.DialProxy(t, s, rlock.Config{})
		m, bob := rlock.New(ses, "x"), rlock.WithOwner(ctx, "bob")
		try := func() <-chan *rlock.Hold {
			c := make(chan *rlock.Hold, 1)
			go func() {
				_, h, err := m.TryLock(bob)
				if err != nil {
					t.Errorf("TryLock: %v", err)
				}
				c <- h
			}()
			return c
		}
		for range 100 {
			first, second := try(), try()
			a, b := locktest.Get(t, first, 10*time.Second, "the first"), locktest.Get(t, second, 10*time.Second, "the second")
			if a == nil || b == nil {
				t.FailNow()
			}
			must(t, a.Unlock())
			must(t, b.Unlock())
		}
		// Of a lock that another owner holds neither gets anything, and none waits for more than that
		// answer.
		_, h, err := rlock.New(dial(t, s, rlock.Config{}), "x").Lock(ctx)
		must(t, err)
		seen, release := p.HoldReply(func(cmd []string) bool { return len(cmd) > 3 && cmd[3] == "x" })
		refused := func() <-chan error {
			return locktest.Go(func() error { _, _, err := m.TryLock(bob); return err })
		}
		first := refused()
		locktest.Get(t, seen, 10*time.Second, "the first attempt")
		second := refused()
		release()
		locktest.Is(t, "the first", locktest.Get(t, first, 10*time.Second, "the first"), rlock.ErrNotAcquired)
		locktest.Is(t, "the second", locktest.Get(t, second, 10*time.Second, "the second"), rlock.ErrNotAcquired)
		must(t, h.Unlock())
	})
}
