package engine

import (
	"fmt"
	"math"
	"reflect"
	"time"

	"relock/internal/holds"
)

// What tests see and set: by the clock alone they could not know which caller waits, or when a
// slice is over.

// Counts is how much a session keeps account of; all 0 when nothing is held and no caller waits.
type Counts struct {
	Held, Asking, Waiters, Scheduled, Locks, Cleaning int
}

// Counts counts.
func (s *Session) Counts() (n Counts) {
	for _, l := range s.locks.All() {
		l.mu.Lock()
		if !l.idle() {
			n.Locks++
		}
		for c := l.claims; c != nil; c = c.next {
			if c.state == asking {
				n.Asking++
			} else {
				n.Held++
			}
		}
		n.Waiters += l.queue.Len(math.MaxInt)
		l.mu.Unlock()
	}
	n.Scheduled = s.schedule.Len()
	if s.cleanup.Busy() {
		n.Cleaning = 1
	}
	return n
}

// Records returns how many locks the registry has, idle ones included.
func (s *Session) Records() int { return s.locks.Len() }

// Keep has the registry keep idle locks up to n locks in all, from now on.
func (s *Session) Keep(n int) { s.locks.Keep(n) }

// onLock runs fn with the lock of that family and name, with its mutex held, if the session has
// to do with it.
func (s *Session) onLock(family, name string, fn func(l *lock)) {
	for _, l := range s.locks.Find(family, s.cfg.Prefix+name) {
		l.mu.Lock()
		fn(l)
		l.unlock()
	}
}

// WaitersOf returns how many callers stand in the session's queue for a lock.
func (s *Session) WaitersOf(family, name string) (n int) {
	s.onLock(family, name, func(l *lock) { n += l.queue.Len(math.MaxInt) })
	return n
}

// SliceFor lets the time slice of the claim that is held last for d from now on; it is over at
// once if d is negative.
func (s *Session) SliceFor(family, name string, d time.Duration) {
	s.onLock(family, name, func(l *lock) {
		for c := l.claims; c != nil; c = c.next {
			c.passUntil = s.now() + d
		}
	})
}

// Stall keeps the mutex of a lock, and with it the watchdog as soon as that visits the lock, until
// resume is called. It reports whether the session has to do with the lock.
func (s *Session) Stall(family, name string) (resume func(), ok bool) {
	stalled, end := make(chan bool, 1), make(chan struct{})
	go func() {
		s.onLock(family, name, func(*lock) { stalled <- true; <-end })
		stalled <- false
	}()
	return func() { close(end) }, <-stalled
}

// Yield ends the time slice, and leaves the lock to other sessions for d from now on.
func (s *Session) Yield(family, name string, d time.Duration) {
	s.onLock(family, name, func(l *lock) {
		for c := l.claims; c != nil; c = c.next {
			c.passUntil = 0
		}
		l.needContention().turns.LeaveFor(s.now(), d)
		l.wakeFront()
	})
}

// Awaited reports whether a caller waits for a command of the hold's claim to be answered.
func (h *Hold) Awaited() bool {
	c := h.section.claim
	c.lock.mu.Lock()
	defer c.lock.mu.Unlock()
	return c.account != nil && c.account.Awaited()
}

// Suspects returns how many callers wait of whom the session knows that a deadlock may concern
// them.
func (s *Session) Suspects() int { return s.deadlocks.Len() }

// checking has check run whenever lock.unlock releases a mutex, and checkEntry at each entry. Tests turn it
// on before they make a session.
var checking bool

// CheckInvariants turns the checks of the invariants on or off.
func CheckInvariants(on bool) { checking = on }

// check panics if one of the invariants I2, I3 and I6 of docs/architecture.md does not hold, as far as
// it checks them.
func (l *lock) check() {
	fail := func(c *claim, format string, args ...any) {
		panic(fmt.Sprintf("relock: %s, claim of %s in state %v: ", l.Key(), c.ownerID(), c.state) + fmt.Sprintf(format, args...))
	}
	owners := map[uint64]bool{}
	ct := l.contention
	if l.idle() && (ct != nil && (ct.keeper == nil || ct.keeper.claim != nil || ct.idlePart() == nil) ||
		l.holder != nil || l.share != nil || l.runs != nil && !reflect.ValueOf(*l.runs).IsZero()) {
		panic(fmt.Sprintf("relock: %s is idle, and has something left: %+v", l.Key(), ct))
	}
	for c := l.claims; c != nil; c = c.next {
		if c.state > releasing {
			fail(c, "it is on the list although it has ended")
		}
		if c.num != 0 && owners[c.num] || c.num > l.s.owners.Load() && l.s.cfg.ID == "" {
			fail(c, "I3: its owner is another's")
		}
		owners[c.num] = c.num != 0
		open := 0
		for x := c.sections; x != nil; x = x.next {
			open++
			if x.ctx.HasEnded() || x.holds.Until == holds.Over || x.claim != c || x.holds.Live[0] < 0 || x.holds.Live[1] < 0 || x.holds.Held() == 0 {
				fail(c, "a section is on its list that is not open: ended %d, holds %v", x.ctx.Ended(), x.holds.Live)
			}
		}
		if k := c.kind; open > 1 && !k.Shares {
			fail(c, "I6: %d sections are open", open)
		}
		if open > 0 && (c.state != held || c.awaits != nothing) {
			fail(c, "I2: sections are open; it awaits %d", c.awaits)
		}
		if is := ct != nil && ct.keeper != nil && ct.keeper.claim == c; is != (c.awaits == itsReuse) {
			fail(c, "it is kept: %v; it awaits %d", is, c.awaits)
		}
	}
	if h := l.holder; h != nil && (h.lock != l || h.state > releasing || !h.kind.Exclusive) {
		fail(h, "it is not a holder")
	}
}

// checkEntry panics unless a caller may enter a claim now: invariant I5, with a third of the trust,
// since time passes.
func (c *claim) checkEntry(now time.Duration) {
	if c.state != held || c.trust-now < trustIn(min(c.lock.s.cfg.Lease, c.safeLease))/3 || c.except == unrenewed {
		panic(fmt.Sprintf("relock: I5: %s was entered in state %v with %v of trust left, unrenewed: %v", c.lock.Key(), c.state, c.trust-now, c.except == unrenewed))
	}
}
