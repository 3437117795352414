package waiting

import (
	"slices"
	"time"

	"relock/internal/clock"
)

// A Heartbeat is one question to Redis about runs whose entries stand in the line, which keeps them
// there.
type Heartbeat[R, W any] struct {
	runs []*Run[R, W]
}

// Heartbeats returns those that Redis must hear until a time, each of so many runs at most.
func (n *Line[R, W]) Heartbeats(until time.Duration, most int) (all []Heartbeat[R, W]) {
	var runs []*Run[R, W]
	for r := range n.runs.All() {
		if r.phase == queued && r.heartbeatAt <= until {
			runs = append(runs, r)
		}
	}
	for some := range slices.Chunk(runs, most) {
		all = append(all, Heartbeat[R, W]{some})
	}
	return all
}

// NextHeartbeat returns when Redis must hear of a run next.
func (n *Line[R, W]) NextHeartbeat() time.Duration {
	at := clock.Never
	for r := range n.runs.All() {
		if r.phase == queued {
			at = min(at, r.heartbeatAt)
		}
	}
	return at
}

// HeartbeatNow has Redis hear of all runs at once.
func (n *Line[R, W]) HeartbeatNow() {
	for r := range n.runs.All() {
		r.heartbeatAt = 0
	}
}

// Of returns what the session keeps of the first of the runs.
func (h Heartbeat[R, W]) Of() *R { return h.runs[0].Of }

// Entries returns the entries that the question is about.
func (h Heartbeat[R, W]) Entries() []string {
	entries := make([]string, len(h.runs))
	for i, r := range h.runs {
		entries[i] = r.Entry
	}
	return entries
}

// Answered takes in what Redis said: for each of the entries the milliseconds after which it is to hear of that
// again at the latest, -1 if unknown; or 0 if Redis is to be asked about the run at once, for the answer will say
// why; and behind those Redis's time in ms, which is returned. Any other number of answers, as none, says that
// Redis refuses the question: then it is asked about each run. next makes a time of the milliseconds.
func (h Heartbeat[R, W]) Answered(answers []int64, next func(ms int64) time.Duration) (clock int64) {
	refused := len(answers) != len(h.runs)+1
	if !refused {
		clock = answers[len(h.runs)]
	}
	for i, r := range h.runs {
		switch {
		case r.phase > queued: // since the question was sent
		case refused || answers[i] == 0:
			r.AskNow()
			r.heartbeatAt = next(-1)
		default:
			r.heartbeatAt = next(answers[i])
		}
	}
	return clock
}
