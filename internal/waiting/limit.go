package waiting

// Limit is how many permits one caller may want at most, by the last answer of Redis. The zero value
// is unknown.
type Limit struct {
	// Doubted: a caller that wants more has come since the front asked. The limit may have been raised
	// before it came: so the front is to ask again.
	Doubted bool

	known   bool
	most    int64 // below 0: anything
	arrived int   // how many have queued
	before  int   // how many had when the front asked last
}

// Arrive numbers a caller that has just queued for n.
func (m *Limit) Arrive(n int) (number int, allowed bool) {
	m.arrived++
	return m.arrived, m.allows(n)
}

// allows says whether n is not more than the limit, as far as known.
func (m *Limit) allows(n int) bool { return !m.known || m.most < 0 || int64(n) <= m.most }

// Asked notes that the front asks now.
func (m *Limit) Asked() { m.before = m.arrived }

// Heard notes the limit in the answer to the front, and reports whether callers may have to be
// refused for it.
func (m *Limit) Heard(most int64) bool {
	if m.known && !m.Doubted && m.most == most {
		return false
	}
	m.known, m.most, m.Doubted = true, most, false
	return true
}

// Excludes reports whether the caller with a number, which wants n, can be refused: it wants more than
// the limit, and it was waiting when the front asked for the limit. For a caller that came later the limit
// may have been raised meanwhile: then the front is to ask again.
func (m *Limit) Excludes(number, n int) bool {
	switch {
	case m.allows(n):
		return false
	case number <= m.before:
		return true
	}
	m.Doubted = true
	return false
}
