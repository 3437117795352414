package worker

import (
	"time"

	"relock/torture/oracle"
)

// crowd returns a caller for each session and lock, so that all sessions of all workers stand in the
// line of each lock at the same time.
func (w *worker) crowd() (all []*goroutine) {
	for _, s := range w.callers {
		for i := range w.Locks {
			all = append(all, &goroutine{session: s, mine: []int{i}})
		}
	}
	return all
}

// pass waits for its turn in the line, for as long as it takes, and passes the lock on soon. A wait
// that is given up would hide that it had no end.
func (g *goroutine) pass(i int) {
	spec := &g.Locks[i]
	rec := g.log.Begin(oracle.Section, 0, i, 0, 1, 0)
	l := g.locker(g.session, spec)
	ctx, h, err := l.lock(g.running, attempt{n: 1})
	rec.Returned()
	if err != nil {
		rec.Settle(g.refusal(i, rec, err))
		return
	}
	x := &section{g: g, parent: g.running, lock: i, locker: l, rec: records{rec}, ctx: ctx, holds: []held{h}}
	rec.Settle(oracle.Held)
	x.inside()
	switch p := g.rnd.IntN(1000); {
	case p < 5: // long enough that what fails meanwhile hits the holder
		x.stay(g.upTo(300*time.Millisecond), false)
	case p < 500:
		x.stay(g.upTo(2*time.Millisecond), false)
	}
	x.leave(0)
}
