package engine

import (
	"relock/internal/cleanup"
	"relock/internal/script"
)

// A call may be overtaken. While it is about to be written, by a goroutine that is not scheduled,
// the run that it asks about is granted by a message, served and released. Redis does not know the
// run any more when the call arrives: so it gives the run the lock, or a position in the queue. No
// claim accounts for that, and the lock would stand for a whole lease with no section.

// A flight is where the attempt for a claim is that was sent last. It may run after its claim has
// ended.
type flight uint8

const (
	landed    flight = iota // answered, or none was sent
	flying                  // being sent: what ends the claim must come after it
	overtaken               // answered while the claim's release was on its way
)

// overtaken gives back what the call for a run has got that had been granted, or had ended, before
// the answer came.
func (l *lock) overtaken(e *runCall) {
	c := e.c
	switch {
	case e.err != nil && script.Classify(e.err) != script.Unknown && !script.Midway(e.err):
		return // nothing was changed
	case e.err == nil && e.g.Status == refused && e.g.Position == 0:
		return // the waiters have joined another run
	}
	switch c.state {
	case releasing:
		// If the claim's own release is still to be written, it must find the lock.
		c.flight = overtaken
	case finished, lostGone:
		c.dismiss()
	}
	// Else the release of the claim is still to come.
}

// dismiss releases in the background what the entry of a run has in Redis.
func (c *claim) dismiss() {
	s, r := c.lock.s, c.run
	op := Op{Owner: c.ownerID(), Private: c.num != 0, All: c.num != 0}
	if !op.Private {
		op.Ends, op.ByIDs = []string{r.id}, true
	}
	op.Line.Named, op.Line.Head = true, c.entryHead()
	s.cleanup.Add(cleanup.Job{Name: c.prim.Names().Name(), Cmds: []script.Command{c.prim.Release(&op)}, Until: s.now() + max(s.cfg.Lease, r.lease)})
}
