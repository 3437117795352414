package waiting

import "time"

const (
	// Slice is for how long a session hands the lock over among its own goroutines while
	// others may wait. Passing the lock to another process costs some 0.3 ms, so this keeps
	// what is lost by that at 3 %.
	Slice = 10 * time.Millisecond

	// SliceAlone is the slice after a release that no other session has heard: others may poll,
	// or listen where they are not counted. Going through Redis so seldom costs nothing.
	SliceAlone = 100 * time.Millisecond

	// yieldTime is how long the session leaves the lock to others after a slice, at least;
	// in round trips, yieldTrips. It counts from when the release is known to have reached Redis, which
	// a busy machine may send late. The others' attempts are there a round trip after the
	// message; the rest is for a busy machine to wake up in. After a slice of its own it leaves
	// the lock for yieldTime times the number of others, at most yieldOthers times: if the one whose
	// turn has come wakes up late, the lock goes to one that came before, and not to this session.
	//
	// The others may be further away: if none took the lock, twice as long is left next time,
	// yieldSteps times and at most yieldMost. If then still none did, they seem to be asleep, and
	// it begins again after yieldPatience slices.
	yieldTime     = 500 * time.Microsecond
	yieldMost     = 10 * time.Millisecond
	yieldTrips    = 3
	yieldOthers   = 4
	yieldSteps    = 8
	yieldPatience = 128

	// tripSteps is in how many releases the round trip that the session reckons with grows to a
	// longer one. A single release that took long would make for a yield about as long as a slice,
	// which ends when another session's slice does: the lock would go to a session that asks at that moment,
	// instead of to the one whose turn it is.
	tripSteps = 8
)

// Turns is what a session remembers of one lock in order to alternate with other sessions.
// A slice begins when Redis grants the lock to the session. While it lasts the lock passes
// from goroutine to goroutine in memory; then the session releases it and yields: none of its
// goroutines asks for a moment. The zero value knows nothing of others.
type Turns struct {
	Alone     bool // the last release was heard by no other session; to be read only
	Expecting bool // the session has left the lock to others by a release whose message is still to come; to be read only

	passes       int           // hand-overs in this slice
	yielded      time.Duration // until when the lock is left to others
	trip         time.Duration // how long a release takes
	counted      bool          // a release has counted the others
	others       int64         // how many heard it beside this session; below 0: not known
	untaken      int           // how often in a row no other session took what was left to it
	skipReleases int64         // releases by others to let pass, one for each other listener
	left         bool          // the lock was left to others, and none has taken it since
	sent         time.Duration // until when the release that has left it may not have reached Redis; 0: it has
}

// Begin notes that Redis has granted the lock, and returns when the slice ends.
func (t *Turns) Begin(now time.Duration) (end time.Duration) {
	if t.left && !t.Alone {
		t.untaken++
	}
	t.passes, t.yielded, t.sent, t.skipReleases, t.left, t.Expecting = 0, 0, 0, 0, false, false
	if t.Alone {
		return now + SliceAlone
	}
	return now + Slice
}

// Pass notes a hand-over and reports true, or reports that the slice is over: then the lock
// must go through Redis. limit bounds the hand-overs in a slice; 0: no bound.
func (t *Turns) Pass(now, end time.Duration, limit int) bool {
	if now < end && (limit <= 0 || t.passes < limit) {
		t.passes++
		return true
	}
	if t.passes > 0 { // the session has had the lock for longer than its share
		t.yield(now)
	}
	return false
}

// yield leaves the lock to others, from now on.
func (t *Turns) yield(now time.Duration) {
	t.left, t.skipReleases = true, max(0, t.others-1)
	t.yielded = now + t.yieldFor()
}

func (t *Turns) yieldFor() time.Duration {
	d := yieldTime
	if !t.Alone {
		d = max(d*time.Duration(min(max(t.others, 1), yieldOthers)), yieldTrips*t.trip)
		if n := t.untaken % yieldPatience; n <= yieldSteps {
			d <<= n
		}
	}
	return min(d, yieldMost)
}

// Released notes the answer to a release: how long it took, and how many others heard it
// (below 0: not known).
func (t *Turns) Released(now, trip time.Duration, others int64) {
	first := !t.counted
	if first || trip < t.trip {
		t.trip = trip
	} else {
		t.trip += (trip - t.trip) / tripSteps
	}
	t.others, t.counted, t.Alone = others, true, others == 0
	if t.left && first && others != 0 {
		t.yielded = max(t.yielded, now+t.yieldFor()) // it was too short for what is known now
	}
	if t.left {
		t.skipReleases = max(0, others-1)
	}
	if t.sent > 0 {
		t.arrived(now)
	}
}

// arrived notes that the session's own release has reached Redis: only from now on is the lock there
// for others.
func (t *Turns) arrived(now time.Duration) {
	t.sent = 0
	t.yielded = max(t.yielded, now+t.yieldFor())
}

// Expect notes that the session's own release is about to be sent, and its message still to come. The
// lock is left to others at least until one of message and answer is there, unless that takes too long.
func (t *Turns) Expect(now time.Duration) {
	if now < t.yielded {
		t.Expecting, t.sent = true, now+yieldMost
	}
}

// Heard takes a message that the lock is free, and reports whether it is news: the message
// of the session's own release is not. Where several others listen, the quickest of them has
// had the lock, and would alternate with this session from then on: so the lock is
// left to the others once more.
func (t *Turns) Heard(now time.Duration) (news bool) {
	if t.Expecting {
		if t.sent > 0 {
			t.arrived(now)
		}
		t.Expecting = false
		return false
	}
	t.Taken()
	if t.skipReleases > 0 {
		t.skipReleases--
		t.yielded = now + min(max(yieldTime, yieldTrips*t.trip), yieldMost)
	}
	return true
}

// Taken notes that another session has got the lock.
func (t *Turns) Taken() {
	t.yielded, t.sent = 0, 0
	if t.left {
		t.left, t.untaken = false, min(t.untaken, yieldSteps)/2
	}
}

// Asked notes that the session asks Redis: older messages say nothing any more.
func (t *Turns) Asked() { t.Expecting, t.sent = false, 0 }

// Yielded is until when the session leaves the lock to others.
func (t *Turns) Yielded() time.Duration { return max(t.yielded, t.sent) }

// LeaveToListeners leaves the lock to those who listened at the last release, if any did. They ask when they have heard
// the next one.
func (t *Turns) LeaveToListeners(now time.Duration) {
	if t.HeardByOthers() {
		t.yield(now)
	}
}

// HeardByOthers reports whether others have heard the last release.
func (t *Turns) HeardByOthers() bool { return t.others > 0 }

// LeaveFor leaves the lock to others for d from now on.
func (t *Turns) LeaveFor(now, d time.Duration) { t.yielded = now + d }
