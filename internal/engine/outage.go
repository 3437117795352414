package engine

import "errors"

// enterOutage counts a Lock that waits and whose last attempt has failed with err, if that says
// that Redis does not serve.
func (a *acquisition) enterOutage(err error) {
	s := a.lock.s
	if a.tries.stuck || !errors.Is(err, ErrUnavailable) || s.life.Closing.Err() != nil {
		return
	}
	a.tries.stuck = true
	s.outage.Enter(a.prim.Names().Name(), err)
}

// leaveOutage takes a Lock off the count: it was answered, or gives up.
func (a *acquisition) leaveOutage() {
	if a.tries.stuck {
		a.tries.stuck = false
		a.lock.s.outage.Leave()
	}
}
