package history

import "github.com/anishathalye/porcupine"

// counterOp is one call of a counter.
type counterOp struct {
	what string // add, take, drain, read, phantom, undo
	n    int64  // of add and take
	i    uint   // which phantom
}

// counterReply is what a call returned.
type counterReply struct {
	value   int64 // of drain and read
	unknown bool  // the call may have counted
	refused bool  // nothing was taken, since there was not enough
}

// counterState is the number, and which phantoms have taken permits and not yet given back.
type counterState struct {
	value int64
	out   uint64
}

// counterModel is a counter in which an attempt with an unknown outcome may take permits and
// give them back later.
func counterModel(first int64) porcupine.NondeterministicModel {
	return porcupine.NondeterministicModel{
		Init:  func() []interface{} { return []interface{}{counterState{value: first}} },
		Step:  stepCounter,
		Equal: func(a, b interface{}) bool { return a == b },
	}
}

func stepCounter(state, input, output interface{}) []interface{} {
	s, op, reply := state.(counterState), input.(counterOp), output.(counterReply)
	same := []interface{}{s}
	switch op.what {
	case "add":
		added := counterState{s.value + op.n, s.out}
		if reply.unknown {
			return []interface{}{s, added}
		}
		return []interface{}{added}
	case "take":
		if reply.refused {
			// A phantom may have been in the way, or another caller of the session.
			return same
		}
		if s.value < op.n {
			return nil
		}
		return []interface{}{counterState{s.value - op.n, s.out}}
	case "drain":
		drained := counterState{0, s.out}
		if reply.unknown {
			return []interface{}{s, drained}
		}
		if reply.value != s.value {
			return nil
		}
		return []interface{}{drained}
	case "read":
		if reply.value != s.value {
			return nil
		}
		return same
	case "phantom":
		if s.value < op.n {
			return same
		}
		return []interface{}{s, counterState{s.value - op.n, s.out | 1<<op.i}}
	case "undo":
		if s.out&(1<<op.i) == 0 {
			return same
		}
		return []interface{}{counterState{s.value + op.n, s.out &^ (1 << op.i)}}
	}
	return nil
}
