package history

import (
	"time"

	"github.com/anishathalye/porcupine"
)

// Op is that a section takes a lock, or that it gives the lock back.
type Op struct {
	Section uint64 // a number of its own, not 0
	Gives   bool
	Shared  bool  // permits, or the read side; else nobody else may be in
	N       int64 // how many permits, 1 for a reader
	Token   int64 // of a take, 0 without one
}

// Held is what a lock is held by: one section, or a number of permits or readers.
type Held struct {
	Section uint64
	Out     int64
	Token   int64 // the highest one drawn
}

// Lock is a lock as a sequential object, of which limit permits can be out; 0: any number, of readers.
// first is by what it is held in the beginning.
//
// A section whose process was killed, whose lease ended, or whose Unlock was not confirmed has given the
// lock back at an unknown time, or never: its operation has no end ([Forever]). A call that gave nothing is
// no operation. What it may have taken for a while can keep others out, and lets nobody in.
func Lock(limit int64, first Held) porcupine.Model {
	return porcupine.Model{
		Init: func() interface{} { return first },
		Step: func(state, input, _ interface{}) (bool, interface{}) {
			return step(limit, state.(Held), input.(Op))
		},
	}
}

func step(limit int64, h Held, op Op) (bool, interface{}) {
	switch {
	case op.Gives && op.Shared:
		if h.Out < op.N {
			return false, h
		}
		h.Out -= op.N
	case op.Gives:
		if h.Section != op.Section {
			return false, h
		}
		h.Section = 0
	case h.Section != 0 || op.Token != 0 && op.Token <= h.Token:
		return false, h
	case op.Shared:
		if limit != 0 && h.Out+op.N > limit {
			return false, h
		}
		h.Out += op.N
	default:
		if h.Out != 0 {
			return false, h
		}
		h.Section = op.Section
	}
	h.Token = max(h.Token, op.Token)
	return true, h
}

// Forever is when an operation of unknown outcome has certainly ended.
const Forever = time.Duration(1) << 62

// Explains reports whether an order of the operations explains them, or that none was found in time.
func Explains(m porcupine.Model, ops []porcupine.Operation) porcupine.CheckResult {
	return porcupine.CheckOperationsTimeout(m, ops, 30*time.Second)
}
