package history

import "github.com/anishathalye/porcupine"

// mutexOp is one call of a fenced mutex.
type mutexOp struct {
	lock   bool
	client int
}

// mutexReply is what a call returned.
type mutexReply struct {
	token   int64
	unknown bool // the unlock was not confirmed
}

// mutexState is who holds the mutex, 0 if nobody does, and the highest token drawn.
type mutexState struct {
	holder int
	token  int64
}

// mutexModel is a mutex that never loses a lock: a history is of sections that are much
// shorter than the lease. Calls that were not granted are left out, for what they may have
// taken is taken back.
func mutexModel() porcupine.Model {
	return porcupine.Model{
		Init: func() interface{} { return mutexState{} },
		Step: func(state, input, output interface{}) (bool, interface{}) {
			s, op, reply := state.(mutexState), input.(mutexOp), output.(mutexReply)
			if op.lock {
				if s.holder != 0 || reply.token <= s.token {
					return false, s
				}
				return true, mutexState{op.client, reply.token}
			}
			if s.holder != op.client {
				return reply.unknown, s
			}
			return true, mutexState{0, s.token}
		},
	}
}
