package waiting

import "slices"

// A Heartbeat is one question to Redis about runs whose entries stand in the queue, which keeps them
// there.
type Heartbeat[R, W any] struct {
	line *Line[R, W]
	runs []*Run[R, W]
}

// Heartbeats returns those that Redis must hear now, each of so many runs at most.
func (n *Line[R, W]) Heartbeats(most int) (all []Heartbeat[R, W]) {
	var runs []*Run[R, W]
	for r := range n.runs.All() {
		if r.phase == queued {
			runs = append(runs, r)
		}
	}
	for some := range slices.Chunk(runs, most) {
		all = append(all, Heartbeat[R, W]{n, some})
	}
	return all
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

// Answered takes in what Redis said: for each of the entries the milliseconds after which to ask at the
// latest, -1 if unknown; or 0 if Redis is to be asked about the run at once, for the answer will say why; and behind those
// Redis's time in ms, which is returned with the least of those milliseconds. Any other number of answers, as
// none, says that Redis refuses the question: then it is asked about each run.
func (h Heartbeat[R, W]) Answered(answers []int64) (soonest, clock int64) {
	soonest = -1
	refused := len(answers) != len(h.runs)+1
	if !refused {
		clock = answers[len(h.runs)]
	}
	for i, r := range h.runs {
		switch {
		case r.phase > queued: // since the question was sent
		case refused || answers[i] == 0:
			r.AskNow()
		case answers[i] > 0 && (soonest < 0 || answers[i] < soonest):
			soonest = answers[i]
		}
	}
	return soonest, clock
}
