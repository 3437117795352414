package engine

import (
	"errors"

	"relock/internal/script"
)

// enterOutage counts a Lock that waits and whose last attempt has failed with err, if that says
// that Redis does not serve. What the user is not allowed is told apart: no Lock waits for that.
func (a *acquisition) enterOutage(err error) {
	s := a.lock.s
	switch {
	case !errors.Is(err, ErrUnavailable) || s.life.Closing.Err() != nil:
	case script.Denied(err):
		s.outage.Denied(a.prim.Names().Name(), err)
	case !a.tries.stuck:
		a.tries.stuck = true
		s.outage.Enter(a.prim.Names().Name(), err)
	}
}

// leaveOutage takes a Lock off the count: it was answered, or gives up.
func (a *acquisition) leaveOutage() {
	if a.tries.stuck {
		a.tries.stuck = false
		a.lock.s.outage.Leave()
	}
}
