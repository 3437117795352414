package claim_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"

	"relock/internal/test/locktest"
	"relock/rlock"
)

// Lock waits for as long as its context lives, whatever the lease; the holder is
// renewed all the while; and the section has the deadline that was given, not the
// lease's (R17).
func TestLockWaitsForHours(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := miniredis.NewMiniRedis()
		m.ClockTTL(true)
		defer m.Close()
		a, b := locktest.DialBubble(t, m, rlock.Config{}), locktest.DialBubble(t, m, rlock.Config{})
		defer a.Close()
		defer b.Close()
		began := time.Now()
		section, h, err := rlock.New(a, "x").Lock(context.Background())
		must(t, err)
		deadline := time.Now().Add(24 * time.Hour)
		ctx, cancel := context.WithDeadline(context.Background(), deadline)
		defer cancel()
		in := make(chan error, 1)
		go func() {
			section, h, err := rlock.New(b, "x").Lock(ctx)
			if err == nil {
				if d, _ := section.Deadline(); !d.Equal(deadline) {
					t.Errorf("the section's deadline is %v, want the one given, %v", d, deadline)
				}
				err = h.Unlock()
			}
			in <- err
		}()
		long := 3 * time.Hour
		if testing.Short() {
			long /= 6
		}
		time.Sleep(long) // of the bubble's clock: next to no time
		select {
		case err := <-in:
			t.Fatalf("in after %v: %v", time.Since(began), err)
		default:
		}
		if section.Err() != nil {
			t.Fatalf("the hold was lost: %v", context.Cause(section))
		}
		must(t, h.Unlock())
		must(t, <-in)
		if waited := time.Since(began); waited < long || waited > long+time.Second {
			t.Errorf("in after %v", waited)
		}
	})
}

// The margin of the trust window is 5 % of the lease, at most one second; a hold whose
// renewals fail ends then, not before and not later.
func TestTrustWindow(t *testing.T) {
	for lease, want := range map[time.Duration]time.Duration{
		10 * time.Second:  9500 * time.Millisecond,
		100 * time.Second: 99 * time.Second,
	} {
		synctest.Test(t, func(t *testing.T) {
			m := miniredis.NewMiniRedis()
			m.ClockTTL(true)
			defer m.Close()
			a := locktest.DialBubble(t, m, rlock.Config{Lease: lease})
			defer a.Close()
			section, h, err := rlock.New(a, "x").Lock(context.Background())
			must(t, err)
			if left := h.Remaining(); left != want {
				t.Errorf("lease %v: Remaining() = %v, want %v", lease, left, want)
			}
			began := time.Now()
			m.SetError("LOADING as after a restart")
			<-section.Done()
			if d := time.Since(began); d != want || context.Cause(section) != rlock.ErrLost {
				t.Errorf("lease %v: ended after %v with cause %v, want %v", lease, d, context.Cause(section), want)
			}
			m.SetError("")
			if err := h.Unlock(); err == nil {
				t.Error("Unlock of a lost lock succeeded")
			}
			synctest.Wait()
			time.Sleep(time.Second)
			if m.Exists("x") {
				t.Error("the lock still stands a second after it was unlocked")
			}
		})
	}
}

// Renewals come every third of the lease and keep the TTL above half of it.
func TestRenewalKeepsTheTTLUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := miniredis.NewMiniRedis()
		m.ClockTTL(true)
		defer m.Close()
		a := locktest.DialBubble(t, m, rlock.Config{})
		defer a.Close()
		section, h, err := rlock.New(a, "x").Lock(context.Background())
		must(t, err)
		for range 600 {
			time.Sleep(time.Second)
			if ttl := m.TTL("x"); ttl < 15*time.Second || ttl > 30*time.Second {
				t.Fatalf("TTL %v", ttl)
			}
		}
		if section.Err() != nil {
			t.Fatal(context.Cause(section))
		}
		must(t, h.Unlock())
	})
}
