package waiting_test

import (
	"testing"
	"time"

	"relock/internal/clock"
	"relock/internal/waiting"
)

// The front asks at once when it was woken, or has nothing to wait for; else at its time; never while the
// lock is left to others.
func TestNextLook(t *testing.T) {
	for what, c := range map[string]struct {
		next    waiting.NextAttempt
		waits   bool
		yielded time.Duration
		want    time.Duration
	}{
		"nothing known":       {waiting.NextAttempt{}, true, 0, 0},
		"at its time":         {waiting.NextAttempt{At: 9}, true, 5, 9},
		"left to others":      {waiting.NextAttempt{At: 3}, true, 5, 5},
		"woken":               {waiting.NextAttempt{Soon: true, At: 9}, true, 5, 5},
		"nothing to wait for": {waiting.NextAttempt{At: 9}, false, 5, 5},
	} {
		if got := c.next.Next(c.waits, c.yielded); got != c.want {
			t.Errorf("%s: %v, want %v", what, got, c.want)
		}
	}
}

// The pause is the floor, less up to a tenth, or what Redis says if that is shorter; never too short.
func TestLookAfter(t *testing.T) {
	const now, floor = time.Hour, 2 * time.Second
	for ms, want := range map[int64][2]time.Duration{
		-1:   {floor * 9 / 10, floor},
		5000: {floor * 9 / 10, floor},
		700:  {701 * time.Millisecond, 701 * time.Millisecond},
		0:    {max(time.Millisecond, clock.Least), max(time.Millisecond, clock.Least)},
	} {
		for range 100 {
			var k waiting.NextAttempt
			k.After(now, floor, ms)
			if d := k.At - now; d < want[0] || d > want[1] {
				t.Fatalf("%d ms: asks after %v, want %v to %v", ms, d, want[0], want[1])
			}
		}
	}
}
