package holds

import (
	"context"
	"maps"
	"slices"
	"time"

	"relock/internal/clock"
	"relock/internal/report"
)

// A Set is the holds of one section. The zero value is empty.
type Set struct {
	// Until is when the section ends whatever the claim's trust is: the last of its fixed
	// leases, or, where sections share a claim, the claim's trust at the last renewal that
	// the section's context wanted; Over once it has ended. See invariant I2.
	Until  time.Duration
	Live   [2]int32 // holds that are neither unlocked nor run out, by side
	Nested *Nested  // nil without nested Locks, fixed leases and further callers
}

// Over is the Until of a section that has ended: of its holds only the number changes from then on.
const Over = time.Duration(-1)

// Nested is what a section has besides its outermost hold and context: most have none of it.
type Nested struct {
	Fixed    []*Hold  // live holds with a fixed lease
	Contexts Contexts // of nested Locks; not guarded
	Callers  []Caller // that came in under the owner's name, not through the section
	spent    [2]int32 // holds that have run out and are not unlocked, by side
	entering [2]int32 // nested Locks that ask Redis, or wait to: they keep the section open

	traces map[*Hold]*report.Hold // of holds that stand
}

// A Caller is a hold with a context of its own, which wants the claim to be renewed as long as that lives.
type Caller struct {
	Hold *Hold
	Ctx  context.Context
}

// NeedNested returns s.Nested, made if need be.
func (s *Set) NeedNested() *Nested {
	if s.Nested == nil {
		s.Nested = new(Nested)
	}
	return s.Nested
}

// Cancel ends the contexts of the holds of a section that has ended. It runs code of the caller's contexts:
// no mutex may be held. run runs what ends each of them, as AtOnce does. A nil Nested has none.
func (n *Nested) Cancel(cause error, run func(end func())) {
	if n == nil {
		return
	}
	n.Contexts.End(cause, run)
	for _, h := range n.Fixed {
		if h.HasContext() {
			run(func() { h.EndContext(cause) })
		}
	}
}

// Add counts a hold. One that the watchdog renews keeps the section for as long as the claim is renewed,
// at least until end.
func (s *Set) Add(h *Hold, end time.Duration) {
	s.Live[h.Side]++
	switch {
	case h.Fixed != nil:
		n := s.NeedNested()
		n.Fixed = append(n.Fixed, h)
		s.Reset()
	case s.Nested != nil && s.Renewed() == 1: // fixed leases no longer count; renewals move the end
		s.Until = end
	default:
		s.Until = max(s.Until, end)
	}
}

// Remove takes a hold out of the count, and returns how many are left: see Held.
func (s *Set) Remove(h *Hold) (left int) {
	n := s.Nested
	if !h.RanOut {
		s.Live[h.Side]--
	}
	if n == nil {
		return int(s.Live[0] + s.Live[1])
	}
	delete(n.traces, h)
	switch {
	case h.RanOut:
		n.spent[h.Side]--
	case s.Until != Over:
		n.Fixed = slices.DeleteFunc(n.Fixed, func(f *Hold) bool { return f == h })
		n.Callers = slices.DeleteFunc(n.Callers, func(c Caller) bool { return c.Hold == h })
		s.Reset()
	}
	return s.Held()
}

// Follow has the hooks follow a hold as long as it stands. What takes it out, Unfollow or Remove, decides
// how the hold has ended.
func (s *Set) Follow(h *Hold, d *report.Hold) {
	n := s.NeedNested()
	if n.traces == nil {
		n.traces = map[*Hold]*report.Hold{}
	}
	n.traces[h] = d
}

// Trace returns what the hooks follow a hold by; nil if they do not, or if it has ended.
func (s *Set) Trace(h *Hold) *report.Hold {
	if s.Nested == nil {
		return nil
	}
	return s.Nested.traces[h]
}

// Unfollow takes out what the hooks follow a hold by, and returns it.
func (s *Set) Unfollow(h *Hold) *report.Hold {
	d := s.Trace(h)
	if d != nil {
		delete(s.Nested.traces, h)
	}
	return d
}

// Followed returns the holds that the hooks follow.
func (s *Set) Followed() []*Hold {
	if s.Nested == nil {
		return nil
	}
	return slices.Collect(maps.Keys(s.Nested.traces))
}

// Enter notes that a nested Lock begins to ask for one side, and Leave that it has its answer.
func (s *Set) Enter(side uint8) { s.NeedNested().entering[side]++ }

// Leave is the end of Enter.
func (s *Set) Leave(side uint8) { s.Nested.entering[side]-- }

// Held returns the number of live holds of both sides, and of those that are just being taken.
func (s *Set) Held() int {
	n := s.Live[0] + s.Live[1]
	if s.Nested != nil {
		n += s.Nested.entering[0] + s.Nested.entering[1]
	}
	return int(n)
}

// Needed returns how many holds of a side Redis is to keep: also those that have run out, which end by
// their Unlock.
func (s *Set) Needed(side int) int {
	n := s.Live[side]
	if s.Nested != nil {
		n += s.Nested.spent[side] + s.Nested.entering[side]
	}
	return int(n)
}

// Renewed returns how many of the live holds the watchdog renews, as long as the section has not ended.
func (s *Set) Renewed() int { return int(s.Live[0]+s.Live[1]) - len(s.Fixed()) }

// Fixed returns the live holds with a fixed lease.
func (s *Set) Fixed() []*Hold {
	if s.Nested == nil {
		return nil
	}
	return s.Nested.Fixed
}

// Reset sets the end of a section that only holds with fixed leases keep: it ends with the
// last of them.
func (s *Set) Reset() {
	if fixed := s.Fixed(); len(fixed) > 0 && s.Renewed() == 0 {
		s.Until, _ = s.LastFixed(nil)
	}
}

// LastFixed returns until when the last of the fixed leases may be trusted, and when the last of them
// ends, but for that of one hold, which may be nil; 0 if there are none.
func (s *Set) LastFixed(but *Hold) (until, ends time.Duration) {
	for _, h := range s.Fixed() {
		if h != but {
			until, ends = max(until, h.Until), max(ends, h.Ends)
		}
	}
	return until, ends
}

// FirstFixed returns until when the first of the fixed leases may be trusted, and the shortest of those
// that are at least as long as least; both are [clock.Never] if there are none.
func (s *Set) FirstFixed(least time.Duration) (until, shortest time.Duration) {
	until, shortest = clock.Never, clock.Never
	for _, h := range s.Fixed() {
		until = min(until, h.Until)
		if d := h.Ends - h.Began; d >= least {
			shortest = min(shortest, d)
		}
	}
	return until, shortest
}

// RunOut takes the holds out of those that live whose fixed lease is over, and returns them: their
// contexts are to be ended. There must be a Nested.
func (s *Set) RunOut(now time.Duration) (over []*Hold) {
	n := s.Nested
	n.Fixed = slices.DeleteFunc(n.Fixed, func(h *Hold) bool {
		if h.Until > now {
			return false
		}
		h.RanOut = true
		s.Live[h.Side]--
		n.spent[h.Side]++
		over = append(over, h)
		return true
	})
	s.Reset()
	return over
}
