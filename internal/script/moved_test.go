package script_test

import (
	"testing"
	"time"

	"relock/internal/script"
)

// A replica refuses commands at made-up times.
type replica struct {
	script.Pauses
	now   time.Time
	every time.Duration // between two refusals
	reads bool          // it executes a command before each
}

// left returns after how long the connections to the replica are made anew.
func (r *replica) left() (after time.Duration) {
	for began := r.now; ; r.now = r.now.Add(r.every) {
		if r.reads {
			r.Executed()
		}
		if r.Due(r.now) {
			return r.now.Sub(began)
		}
	}
}

func newReplica() *replica { return &replica{now: time.Now(), every: 10 * time.Millisecond} }

// From one time to the next the pause doubles, from a quarter to a half of a second up to 2 to 4 s.
func TestPausesDouble(t *testing.T) {
	r := newReplica()
	if after := r.left(); after != 0 {
		t.Errorf("it is left after %v", after)
	}
	for i := range 10 {
		most := min(500*time.Millisecond<<i, 4*time.Second)
		if d := r.left(); d < most/2 || d > most+r.every {
			t.Errorf("pause %d was %v, want %v to %v", i, d, most/2, most)
		}
	}
}

// A server that has executed commands, and is a replica later, is left at once, and the pauses are short
// again. So it is after a quiet time.
func TestPausesAreShortAgain(t *testing.T) {
	for _, c := range []struct {
		quiet           time.Duration
		executed, short bool
	}{
		{3 * time.Second, true, true},
		{time.Second, true, false}, // of a replica that executes what only reads
		{3 * time.Second, false, false},
		{5 * time.Second, false, true},
	} {
		for range 100 { // the pauses are jittered
			r := newReplica()
			for range 10 {
				r.left()
			}
			if c.executed {
				r.Executed()
			}
			r.now = r.now.Add(c.quiet)
			after, pause := r.left(), r.left()
			if c.short && (after != 0 || pause > time.Second) || !c.short && pause < time.Second {
				t.Fatalf("%v after the last refusal, executed %v: left after %v, and again after %v", c.quiet, c.executed, after, pause)
			}
		}
	}
}

// A replica that executes what only reads is left no more often than one that refuses all.
func TestPausesOfAReplicaThatIsRead(t *testing.T) {
	r := newReplica()
	r.every, r.reads = time.Second, true
	for range 10 {
		r.left()
	}
	for range 10 {
		if d := r.left(); d < 2*time.Second {
			t.Fatalf("it is left again after %v", d)
		}
	}
}
