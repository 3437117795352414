package waiting_test

import (
	"testing"
	"time"

	"relock/internal/waiting"
)

// What Redis did is taken to be no later than it can have been: Redis's clock is read some time
// after it was asked for, and shows whole milliseconds.
func TestWhenRedisDidSomething(t *testing.T) {
	var c waiting.Clock
	if _, known := c.When(1000, time.Hour, 1); known {
		t.Error("known before the clock was read")
	}
	c.Read(5*time.Second, 5*time.Second+20*time.Millisecond, 1000, 1)
	c.Read(6*time.Second, 6*time.Second+30*time.Millisecond, 0, 1) // an answer without the time
	if c.Trip != 30*time.Millisecond {
		t.Errorf("the last answer took %v", c.Trip)
	}
	if at, known := c.When(1020, time.Hour, 1); !known || at != 5*time.Second+19*time.Millisecond {
		t.Errorf("20 ms later: %v, known: %v", at, known)
	}
	c.Read(7*time.Second, 7*time.Second, 2900, 1)
	if at, known := c.When(2900, time.Hour, 1); !known || at != 7*time.Second-time.Millisecond {
		t.Errorf("in the millisecond in which the clock was read: %v, known: %v", at, known)
	}
	if _, known := c.When(2899, time.Hour, 1); known {
		t.Error("known although Redis has been asked since: it may be over")
	}
	if _, known := c.When(2900, time.Hour, 2); known {
		t.Error("known although the connection was made anew: another server may have another clock")
	}
	if _, known := c.When(9000, 8*time.Second, 1); known {
		t.Error("known although it would be later than now")
	}
}
