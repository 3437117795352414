package holds_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"relock/internal/clock"
	"relock/internal/holds"
	"relock/internal/report"
)

const never = time.Duration(1<<63 - 1)

// fixed returns a hold of a side with a lease that began at 0, and is trusted up to 10 less.
func fixed(side uint8, ends time.Duration) *holds.Hold {
	h := &holds.Hold{Side: side}
	h.Fix(0, ends, ends-10)
	return h
}

func add(s *holds.Set, end time.Duration, hs ...*holds.Hold) {
	for _, h := range hs {
		s.Add(h, end)
	}
}

// counts asserts how many holds a set has, of both sides, and of them renewed.
func counts(t *testing.T, when string, s *holds.Set, held, renewed int, until time.Duration) {
	t.Helper()
	if s.Held() != held || s.Renewed() != renewed || s.Until != until {
		t.Errorf("%s: %d held, %d renewed, until %v; want %d, %d, %v", when, s.Held(), s.Renewed(), s.Until, held, renewed, until)
	}
}

// A section that the watchdog renews has no end of its own; one that only fixed leases keep ends with the
// last of them.
func TestTheLastFixedLeaseEndsASection(t *testing.T) {
	var s holds.Set
	renewed, short, long := &holds.Hold{}, fixed(0, 100), fixed(1, 200)
	add(&s, never, renewed, short, long)
	counts(t, "all", &s, 3, 1, never)
	if until, ends := s.LastFixed(nil); until != 190 || ends != 200 {
		t.Errorf("the last fixed lease: until %v, ends %v", until, ends)
	}
	if until, ends := s.LastFixed(long); until != 90 || ends != 100 {
		t.Errorf("but for that one: until %v, ends %v", until, ends)
	}
	if left := s.Remove(renewed); left != 2 {
		t.Errorf("%d left", left)
	}
	counts(t, "without the renewed one", &s, 2, 0, 190)
	s.Remove(long)
	counts(t, "without the longer one", &s, 1, 0, 90)
	short.Fix(50, 500, 450)
	s.Reset()
	counts(t, "extended", &s, 1, 0, 500)
	if short.Began != 0 {
		t.Errorf("an extension has begun the hold anew, at %v", short.Began)
	}
}

// The first of the fixed leases is looked after; asked about in the middle is one that is long enough.
func TestFirstFixed(t *testing.T) {
	var s holds.Set
	for _, c := range []struct {
		h               *holds.Hold // added before
		least           time.Duration
		until, shortest time.Duration
	}{
		{&holds.Hold{}, 0, clock.Never, clock.Never},
		{fixed(1, 200), 200, 190, 200},
		{fixed(0, 100), 101, 90, 200},
		{fixed(0, 300), 100, 90, 100},
		{fixed(1, 300), 301, 90, clock.Never},
	} {
		s.Add(c.h, never)
		if until, shortest := s.FirstFixed(c.least); until != c.until || shortest != c.shortest {
			t.Errorf("of at least %v: until %v, the shortest has %v; want %v, %v", c.least, until, shortest, c.until, c.shortest)
		}
	}
}

// Where sections share a claim, a renewed hold keeps the section as long as the claim is trusted, and a
// later one does not cut it.
func TestUntilOfARenewedHold(t *testing.T) {
	var s holds.Set
	add(&s, 300, &holds.Hold{})
	counts(t, "the first", &s, 1, 1, 300)
	add(&s, 200, &holds.Hold{})
	counts(t, "a second, when the trust is shorter", &s, 2, 2, 300)

	var after holds.Set
	add(&after, 0, fixed(0, 1000))
	add(&after, 300, &holds.Hold{})
	counts(t, "a renewed one on a fixed lease: its end no longer counts", &after, 2, 1, 300)
}

// Holds that have run out live no more, but Redis keeps them until they are unlocked.
func TestRunOut(t *testing.T) {
	var s holds.Set
	short, long := fixed(0, 100), fixed(0, 200)
	add(&s, never, short, long)
	if over := s.RunOut(89); over != nil {
		t.Errorf("too early: %v", over)
	}
	over := s.RunOut(90)
	if len(over) != 1 || over[0] != short || !short.RanOut || long.RanOut {
		t.Fatalf("over: %v", over)
	}
	counts(t, "after", &s, 1, 0, 190)
	if s.Needed(0) != 2 || s.Needed(1) != 0 {
		t.Errorf("needed: %d and %d", s.Needed(0), s.Needed(1))
	}
	if left := s.Remove(short); left != 1 || s.Needed(0) != 1 {
		t.Errorf("unlocked: %d left, %d needed", left, s.Needed(0))
	}
}

// A nested Lock that is under way keeps the section, and what it may bring is needed.
func TestEnter(t *testing.T) {
	var s holds.Set
	first := &holds.Hold{}
	add(&s, never, first)
	s.Enter(1)
	if left := s.Remove(first); left != 1 || s.Needed(1) != 1 || s.Needed(0) != 0 {
		t.Errorf("%d left, needed %d and %d", left, s.Needed(0), s.Needed(1))
	}
	s.Leave(1)
	if s.Held() != 0 || s.Needed(1) != 0 {
		t.Errorf("when it has its answer: %d held", s.Held())
	}
}

// Of a section that has ended only the number changes: its contexts may just be cancelled.
func TestRemoveAfterTheEnd(t *testing.T) {
	var s holds.Set
	one, other := fixed(0, 100), fixed(0, 200)
	add(&s, never, one, other)
	s.Until = holds.Over
	if left := s.Remove(other); left != 1 || len(s.Fixed()) != 2 || s.Until != holds.Over {
		t.Errorf("%d left, %d fixed, until %v", left, len(s.Fixed()), s.Until)
	}
}

// Callers that came in by the owner's name want the claim as long as they hold.
func TestCallers(t *testing.T) {
	var s holds.Set
	one, other := &holds.Hold{}, &holds.Hold{}
	add(&s, never, one, other)
	s.NeedNested().Callers = []holds.Caller{{Hold: one, Ctx: t.Context()}, {Hold: other, Ctx: t.Context()}}
	s.Remove(other)
	if c := s.Nested.Callers; len(c) != 1 || c[0].Hold != one {
		t.Errorf("%v is left, want the first one", c)
	}
}

// The contexts of the holds end with the section, by its cause; those of nested Locks too.
func TestCancel(t *testing.T) {
	var s holds.Set
	h, plain := fixed(0, 100), fixed(0, 100)
	add(&s, never, h, plain)
	own, cancel := context.WithCancelCause(t.Context())
	h.Cancel = cancel
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	nested := s.Nested.Contexts.Derive(ctx, "key", "value")
	why := errors.New("why")
	(*holds.Nested)(nil).Cancel(why, holds.AtOnce)
	s.Nested.Cancel(why, holds.AtOnce)
	if context.Cause(own) != why || context.Cause(nested) != why {
		t.Errorf("causes %v and %v", context.Cause(own), context.Cause(nested))
	}
	(&holds.Hold{}).EndContext(why) // has none
}

// The hooks follow a hold until it is taken out, once: by an Unlock, or by what ends it otherwise.
func TestFollow(t *testing.T) {
	var s holds.Set
	a, b := new(holds.Hold), new(holds.Hold)
	if s.Trace(a) != nil || s.Unfollow(a) != nil || s.Followed() != nil {
		t.Error("a hold is followed before anything is")
	}
	da, db := new(report.Hold), new(report.Hold)
	for h, d := range map[*holds.Hold]*report.Hold{a: da, b: db} {
		s.Add(h, time.Hour)
		s.Follow(h, d)
	}
	if s.Trace(a) != da || s.Trace(b) != db || len(s.Followed()) != 2 {
		t.Errorf("%d holds are followed, or by another's trace", len(s.Followed()))
	}
	if s.Remove(a); s.Trace(a) != nil || s.Unfollow(a) != nil {
		t.Error("a hold that was unlocked is followed")
	}
	if s.Unfollow(b) != db || s.Unfollow(b) != nil || len(s.Followed()) != 0 {
		t.Error("a hold was not taken out, or twice")
	}
}
