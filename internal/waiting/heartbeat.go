package waiting

import (
	"slices"
	"time"

	"relock/internal/clock"
)

// A Heartbeat is one sign of life for runs whose entries stand in the line: it keeps them there, and asks Redis
// how they stand.
type Heartbeat[R, W any] []*Run[R, W]

// Heartbeats returns those that are due until a time, each of so many runs at most. They are due no more until they are
// answered.
func (n *Runs[R, W]) Heartbeats(until time.Duration, most int) (all []Heartbeat[R, W]) {
	var runs []*Run[R, W]
	for r := range n.queue.All() {
		if r.phase == queued && r.HeartbeatAt <= until {
			r.HeartbeatAt = clock.Never
			r.Heartbeats++
			runs = append(runs, r)
		}
	}
	for some := range slices.Chunk(runs, most) {
		all = append(all, some)
	}
	return all
}

// NextHeartbeat returns when that of the run is due: only while its entry stands in the line.
func (r *Run[R, W]) NextHeartbeat() time.Duration {
	if r.phase != queued {
		return clock.Never
	}
	return r.HeartbeatAt
}

// Answered handles the reply: for each entry the milliseconds after which the next heartbeat is due at the latest,
// -1 if unknown; or 0 if an attempt for the run is to be sent at once, whose answer says why. The last element is
// Redis's time in ms, which is returned. A reply of any other length, or none, says that Redis refuses the
// heartbeat: then an attempt is sent for each run. next converts the milliseconds to a time.
func (h Heartbeat[R, W]) Answered(answers []int64, next func(ms int64) time.Duration) (clock int64) {
	refused := len(answers) != len(h)+1
	if !refused {
		clock = answers[len(h)]
	}
	for i, r := range h {
		switch {
		case r.phase > queued: // since the question was sent
		case refused || answers[i] == 0:
			r.AskNow()
			r.HeartbeatAt = next(-1)
		default:
			r.HeartbeatAt = next(answers[i])
		}
	}
	return clock
}
