package fairqueue

import "time"

// Queued returns the runs whose entries stand in the queue, so that Redis must hear of them.
func (n *Line[R, W]) Queued() (runs []*Run[R, W]) {
	for r := n.runs.Front(); r != nil; r = r.node.Next() {
		if r.phase == Queued {
			runs = append(runs, r)
		}
	}
	return runs
}

// Heard takes in what Redis answered, when it was asked about runs at a time: for each of them the
// milliseconds after which to ask at the latest, -1 if unknown; or 0 if the run is to be sent at
// once, for its call will say why; and behind those Redis's time in ms. It returns the least of
// those milliseconds. Nil answers say that Redis refuses the question: then all are sent.
func (n *Line[R, W]) Heard(runs []*Run[R, W], asked time.Duration, answers []int64) (soonest int64) {
	soonest = -1
	if answers != nil {
		n.Clock.Read(asked, answers[len(runs)])
	}
	for i, r := range runs {
		switch {
		case r.phase > Queued: // since the question was sent
		case answers == nil || answers[i] == 0:
			r.Hurry()
		case answers[i] > 0 && (soonest < 0 || answers[i] < soonest):
			soonest = answers[i]
		}
	}
	return soonest
}

// A Clock tells by the session's clock when Redis did something, of which only Redis's own time is
// known. The zero value knows nothing.
type Clock struct {
	asked time.Duration // when Redis's clock was asked for,
	ms    int64         // and what it said
}

// Read takes in what Redis's clock said when it was asked for at a time; 0: nothing.
func (c *Clock) Read(asked time.Duration, ms int64) {
	if ms > 0 {
		c.asked, c.ms = asked, ms
	}
}

// When returns when that was which happened at ms by Redis's clock, or earlier. Since that clock
// was read, at least as much time has passed here since it was asked for.
func (c *Clock) When(ms int64) (at time.Duration, known bool) {
	return c.asked + time.Duration(ms-c.ms-1)*time.Millisecond, c.ms > 0
}
