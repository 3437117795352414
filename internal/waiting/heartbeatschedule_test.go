package waiting_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"relock/internal/waiting"
)

// takes takes what is due at a time, and 10 after it.
func takes(t *testing.T, d *waiting.HeartbeatSchedule[string], now time.Duration, next time.Duration, want ...string) {
	t.Helper()
	got, at := d.Take(now, 10)
	slices.Sort(got)
	if !slices.Equal(got, want) || at != next {
		t.Errorf("at %d: took %q, the next at %d; want %q and %d", now, got, at, want, next)
	}
}

// What is due soon goes along with what is due, and a time that was agreed stays unless an earlier
// one comes.
func TestDue(t *testing.T) {
	var d waiting.HeartbeatSchedule[string]
	takes(t, &d, 0, math.MaxInt64)
	d.Set("a", 100)
	d.Set("a", 120)
	d.Set("b", 110)
	d.Set("c", 111)
	takes(t, &d, 99, 100)
	takes(t, &d, 100, 111, "a", "b")
	d.Set("c", 105)
	takes(t, &d, 104, 105)
	takes(t, &d, 105, math.MaxInt64, "c")
	takes(t, &d, 1000, math.MaxInt64)
}

// What may have been missed is asked for at once.
func TestDueAllAtOnce(t *testing.T) {
	var d waiting.HeartbeatSchedule[string]
	d.SetAll(5)
	d.Set("a", 100)
	takes(t, &d, 95, 100)
	d.Set("b", 200)
	takes(t, &d, 6, 100)
	d.SetAll(7)
	takes(t, &d, 6, 7)
	takes(t, &d, 7, math.MaxInt64, "a", "b")
}
