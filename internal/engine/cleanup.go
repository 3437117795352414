package engine

import (
	"time"

	"relock/internal/redis"
	"relock/internal/script"
)

// What the clean-up ends in the background, since no caller waits for it: claims whose attempt was
// abandoned or whose release was not confirmed, and surplus holds.
//
// retire takes a claim off the lists of the session and sends nothing. end and endBy retire it, and release what it may
// have in Redis. dismiss releases once more what is retired already. giveUp is for a caller that did not get the lock: it
// retires its claim if Redis cannot have anything of it, and else ends it.

// end ends a claim in the background, until the lock is over in Redis anyway; done, which may be nil, is
// closed when that is confirmed or given up. One of which a hold was abandoned is left standing, and done
// stays open: no caller waits for it.
func (c *claim) end(done chan struct{}) { c.endBy(c.latestEnd(c.lock.s.now()), done) }

// endBy is end, but gives up at a time.
func (c *claim) endBy(until time.Duration, done chan struct{}) {
	if c.account != nil && c.account.Left > 0 {
		c.leaveStanding()
		return
	}
	op := c.op()
	op.Lease = c.mustStand(c.lock.s.now())
	j := c.endJob(op, until)
	if op.Lease > 0 {
		c.retire(leftStanding)
	} else {
		c.retire(finished)
	}
	late := j.Done
	j.Gone, j.Done = done, func(err error) {
		c.endRequest()
		late(err)
	}
	c.lock.s.cleanup.Add(j)
}

// endJob is what the clean-up has to do until a time to end all of a claim, and its entry in the line if op names that.
func (c *claim) endJob(op Op, until time.Duration) redis.Job {
	s, entry := c.lock.s, op.Line.Head != ""
	j := redis.Job{Name: c.prim.Names().Name(), Until: until}
	for _, cmd := range c.account.Releases(nil, c.prim, op) {
		if entry {
			cmd.Command = c.wholly(cmd.Command, until)
		}
		j.Cmds = append(j.Cmds, cmd.Command)
	}
	cmds := j.Cmds // the job goes on with those that have no answer
	j.Done = func(err error) {
		if entry {
			s.takeOutLate(cmds, err)
		}
	}
	return j
}

// entryPatience is for how much longer than what a claim may hold in Redis the clean-up tries to take its entry out of
// the line. The time bounds what a session keeps in an outage; it outlasts a failover.
const entryPatience = time.Minute

// takeOutLate goes on with commands that end a claim and its entry, if they got no answer until the lease was over: err is
// how the clean-up has ended them. An entry does not end with a lease: it counts as long as its session gives signs of life
// in that line, by other callers. When its turn comes it would be given the lock, and stand in the way of others until the
// session has given that back; or for the whole of that grant, if the session has closed by then.
func (s *Session) takeOutLate(cmds []script.Command, err error) {
	if !script.Unavailable(err) || script.Denied(err) {
		return
	}
	for _, cmd := range cmds {
		s.cleanup.AddSpare(cmd, s.now()+entryPatience)
	}
}

// endSurplus ends in the background the holds that Redis may count beyond those of the claim's section. The section
// is open, and a nested Lock of it has ended.
func (c *claim) endSurplus() {
	x := c.sections
	for side := range x.holds.Live {
		if ends := c.surplus(side, x); len(ends) > 0 {
			c.noHandOver = true
			c.releasePart(side, ends)
		}
	}
	c.clearHolder()
}

// releasePart ends holds of a side in the background, while others stay. They are off the account already: an Unlock that
// ended one of them as well would take "not there" for a loss.
func (c *claim) releasePart(side int, ends []string) {
	l, cmd := c.lock, c.account.Partial(c.kind, side, ends, 0, c.op())
	l.s.cleanup.Add(redis.Job{
		Name: c.prim.Names().Name(), Cmds: []script.Command{cmd}, Until: c.latestEnd(l.s.now()),
		Done: func(err error) {
			if err == nil {
				l.mu.Lock()
				c.account.Ended(side, ends)
				l.unlock()
			}
		},
	})
}
