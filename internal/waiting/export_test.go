package waiting

import "iter"

// The phases that the model tells apart.
const (
	Queued = queued
	Over   = over
)

func (r *Run[R, W]) Phase() phase     { return r.phase }
func (m *Member[R, W]) Number() int64 { return m.number }

// Members are the waiters of a run, in their order.
func (r *Run[R, W]) Members() iter.Seq[*Member[R, W]] { return r.members.All() }
