package clock_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"relock/internal/clock"
)

// Each sleep lies between half of what is meant and all of it, so that callers spread.
func TestSleepsLieInTheirRange(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		name string
		b    clock.Backoff
		n    int
		want time.Duration // at most; at least half of it
	}{
		{"linear", clock.Linear(50 * ms), 7, 50 * ms},
		{"linear below the least", clock.Linear(0), 1, ms},
		{"linear below 0", clock.Linear(-time.Hour), 1, ms},
		{"exponential, the first", clock.Exponential(10*ms, time.Second), 1, 10 * ms},
		{"exponential, the fourth", clock.Exponential(10*ms, time.Second), 4, 80 * ms},
		{"exponential, at its most", clock.Exponential(10*ms, time.Second), 8, time.Second},
		{"exponential, far behind", clock.Exponential(10*ms, time.Second), 1 << 40, time.Second},
		{"exponential, before the first", clock.Exponential(10*ms, time.Second), -3, 10 * ms},
		{"exponential, most below first", clock.Exponential(time.Second, 10*ms), 1, 10 * ms},
	} {
		for range 200 {
			d, ok := c.b.Next(c.n)
			if least := max(c.want/2, ms); !ok || d < least || d > c.want {
				t.Fatalf("%s: %v, %v; want from %v to %v", c.name, d, ok, least, c.want)
			}
		}
	}
}

func TestLimitCountsTheFirstAttempt(t *testing.T) {
	b := clock.Limit(clock.Linear(time.Second), 3)
	for n, want := range map[int]bool{1: true, 2: true, 3: false, 4: false} {
		if _, ok := b.Next(n); ok != want {
			t.Errorf("further attempt %d: %v, want %v", n, ok, want)
		}
	}
}

func TestDoublingStopsAtItsMost(t *testing.T) {
	for n, want := range map[int]time.Duration{0: 10 * time.Millisecond, 3: 80 * time.Millisecond, 20: time.Second} {
		for range 200 {
			if d := clock.Doubling(n, time.Second); d < want/2 || d > want {
				t.Fatalf("after %d failures: %v, want from %v to %v", n, d, want/2, want)
			}
		}
	}
}

func TestSleepEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		if err := clock.Sleep(ctx, time.Millisecond); err != nil || time.Since(began) != time.Millisecond {
			t.Errorf("slept for %v: %v", time.Since(began), err)
		}
		if err := clock.Sleep(ctx, time.Hour); err != context.DeadlineExceeded || time.Since(began) != time.Second {
			t.Errorf("slept until %v: %v", time.Since(began), err)
		}
	})
}
