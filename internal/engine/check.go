package engine

import (
	"fmt"
	"time"
)

// checking has the invariants asserted whenever the mutex of a lock is released. Tests turn it
// on before they make a session.
var checking bool

// CheckInvariants turns that on or off.
func CheckInvariants(on bool) { checking = on }

// check panics if an invariant of claim.go does not hold. The lock's mutex must be held.
func (l *lock) check() {
	fail := func(c *claim, format string, args ...any) {
		panic(fmt.Sprintf("relock: %s, claim of %s in state %d: ", l.Key(), c.ownerID(), c.state) + fmt.Sprintf(format, args...))
	}
	owners := map[uint64]bool{}
	for c := l.claims; c != nil; c = c.next {
		if c.state > releasing {
			fail(c, "it is on the account although it has ended")
		}
		if c.num != 0 && owners[c.num] || c.num > l.s.owners.Load() && l.s.cfg.ID == "" {
			fail(c, "I3: its owner is another's")
		}
		owners[c.num] = c.num != 0
		open := 0
		for x := c.sections; x != nil; x = x.next {
			open++
			if x.over() || x.claim != c || x.live[0] < 0 || x.live[1] < 0 || x.held() == 0 {
				fail(c, "a section is on its list that is not open: ended %d, holds %v", x.ended.Load(), x.live)
			}
		}
		if k := c.prim.Kind(); open > 1 && !k.Shares {
			fail(c, "I6: %d sections are open", open)
		}
		if open > 0 && c.state != held {
			fail(c, "I2: sections are open")
		}
	}
	if h := l.holder; h != nil && (h.lock != l || h.state > releasing || !h.prim.Kind().Exclusive) {
		fail(h, "it is not a holder")
	}
}

// checkEntry panics unless a caller may enter a claim now: invariant I5. The lock's mutex must
// be held.
func (c *claim) checkEntry(now time.Duration) {
	if c.state != held || c.trust-now < trustIn(c.lock.s.cfg.Lease)/3 || c.stopped {
		panic(fmt.Sprintf("relock: I5: %s was entered in state %d with %v of trust left, stopped: %v", c.lock.Key(), c.state, c.trust-now, c.stopped))
	}
}
