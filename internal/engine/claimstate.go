package engine

import (
	"fmt"
	"slices"
)

// A claimState is what has become of a claim; docs/architecture.md has the drawing.
type claimState uint8

const (
	asking       claimState = iota
	held                    // granted; it has sections, awaits something, or is about to be released
	releasing               // an Unlock is sending the release
	finished                // ending in the background, or gone
	lostStanding            // it may stand in Redis; it is released when its sections are unlocked, or by Close
	lostGone                // Redis has said that it does not stand, or the clean-up ends it
	leftStanding            // neither renewed nor handed over nor joined nor released
)

// An exception is in what a claim differs from others of its state.
type exception uint8

const (
	ordinary  exception = iota
	slowTaker           // asking: its session takes long from a message to its section
	unrenewed           // held: no context of a section wanted a renewal when that was due
)

// followers is the table of transitions: which states may follow each one. Of those that are missing nothing follows.
var followers = [...][]claimState{
	asking:       {held, finished, leftStanding},
	held:         {releasing, finished, lostStanding, lostGone, leftStanding},
	releasing:    {finished, leftStanding},
	lostStanding: {lostGone},
	leftStanding: nil,
}

func (s claimState) String() string {
	return [...]string{"asking", "held", "releasing", "finished", "lostStanding", "lostGone", "leftStanding"}[s]
}

// become changes the state of the claim. Nothing else does.
func (c *claim) become(to claimState) {
	if checking && !slices.Contains(followers[c.state], to) {
		panic(fmt.Sprintf("relock: claim of %s: %v cannot follow %v", c.ownerID(), to, c.state))
	}
	c.state = to
}

// retire takes a claim off the lock's list: nothing of it stands, or the clean-up ends
// what may stand.
func (c *claim) retire(to claimState) {
	l := c.lock
	if c.state == lostStanding { // an Unlock that still cancels its contexts is to see the loss
		to = lostGone
		l.s.standing.lost.of.Delete(c)
	}
	if c.state <= releasing {
		if c.prev != nil {
			c.prev.next = c.next
		} else {
			l.claims = c.next
		}
		if c.next != nil {
			c.next.prev = c.prev
		}
		c.next, c.prev = nil, nil
	}
	if c.state == held || c.run != nil {
		l.s.schedule.Set(c, never)
	}
	if c.state == held && l.s.unrenewed.On.Load() {
		l.s.unrenewed.Over(c, to == lostStanding || to == lostGone)
	}
	c.become(to)
	if l.holder == c {
		l.holder = nil
		if front := l.queue.First; front != nil {
			front.Of.wake.Up() // while a claim held the lock it waited for neither messages nor its next attempt
		}
	}
	if l.share == c {
		l.share = nil
	}
	if c.awaits == itsReuse {
		l.contention.keeper.keepNoMore()
	}
	if c.account != nil {
		c.account.Answered()
	}
	if r := c.run; r != nil {
		l.requeue(r) // the waiters that are left
		r.Acknowledge()
	}
	if l.runs != nil { // a run may also have waited for the end of a release
		l.wakeDueRun()
	}
	if to == lostStanding || to == leftStanding {
		c.noteStanding(to)
	}
	if l.contention != nil {
		if head, stands := l.contention.place.Behind[c]; stands {
			c.takeOut(head)
		}
		l.contention.place.Over(c)
	}
}
