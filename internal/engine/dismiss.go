package engine

// enteredLate returns what the clean-up does when Redis answers a release that had no answer in time. The release may
// have entered a claim that was over already; the command that ended the claim ran before, and did not find the entry.
// It returns nil if the release enters no claim.
func (e *claimRelease) enteredLate() (done func(error)) {
	entering := e.entering // e stays off the heap
	if entering == nil {
		return nil
	}
	return func(err error) {
		if err == nil {
			l := entering.lock
			l.mu.Lock()
			entering.dismissLate()
			l.unlockInBackground()
		}
	}
}

// dismissLate dismisses a claim that was over before a release has entered it. c may be nil.
func (c *claim) dismissLate() {
	if c != nil && c.state == finished { // one that still asks ends behind this
		c.dismiss()
	}
}

// dismiss releases in the background what a claim that is over may have in Redis, its entry in the line included: its
// attempt, or the release that has entered it, may have run after its own release.
func (c *claim) dismiss() {
	s, now, op := c.lock.s, c.lock.s.now(), c.op()
	op.Line.Head = c.entryHead()
	until := c.latestEnd(now)
	if r := c.run; r != nil {
		until = max(until, now+r.Lease)
	}
	s.cleanup.Add(c.endJob(op, until))
}
