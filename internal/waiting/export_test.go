package waiting

// The phases that the model tells apart.
const (
	Queued = queued
	Over   = over
)

func (r *Run[R, W]) Phase() phase     { return r.phase }
func (m *Member[R, W]) Number() int64 { return m.number }
