package waiting_test

import (
	"strings"
	"testing"

	"relock/internal/waiting"
)

// What cannot go on has a new run, at the old position and before all others. What joined the old one
// finds the new one.
func TestReplacedRunsKeepTheirPlaces(t *testing.T) {
	var s session
	a, first := s.queue(t, "a", 7)
	s.arrive("b", plain)
	joins, _ := s.call(t)
	s.arrive("c", plain)
	first.LetIn(1, 7)
	first.Begin(1)
	first.End()
	next := s.newRun(plain)
	first.Replace(next)
	if a.Run != next {
		t.Errorf("the waiter is in %s", a.Run.Entry)
	}
	s.arrive("d", plain)
	if r, p := s.call(t); r != next || p.Before != 7 || p.Join != "" || p.Last != 1 {
		t.Errorf("the call says %+v", p)
	}
	gone(t, "joined what was replaced")(joins.Answered(0))
	want(t, next, "a b")
	if p := next.BeginAttempt(); p.Before != 7 || p.Last != 2 || p.Waiting != 2 {
		t.Errorf("the call says %+v", p)
	}
}

// A new run at an old position takes in no waiters that come later. It is before all others, also if
// the position was never heard of.
func TestLaterWaitersDoNotGetAnOldPlace(t *testing.T) {
	var s session
	s.arrive("a", plain)
	r, _ := s.call(t)
	r.Begin(1) // by the answer
	r.End()
	next := s.newRun(plain)
	r.Replace(next)
	if late := s.arrive("b", plain); late.Run == next {
		t.Error("a later waiter gets the old position")
	}
	if r, p := s.call(t); r != next || p.Before != 1 {
		t.Errorf("the attempt for %s says %+v", r.Entry, p)
	}
}

// If what a run has joined is over, its waiters need a run at that position.
func TestJoiningWhatIsOver(t *testing.T) {
	var s session
	a, first := s.queue(t, "a", 7)
	s.arrive("b", plain)
	joins, _ := s.call(t)
	first.Remove(a)
	first.End()
	gone(t, "joined what is over")(joins.Answered(0))
	want(t, joins, "b")
	joins.End()
	next := s.newRun(plain)
	joins.Replace(next)
	want(t, next, "b")
	if _, p := s.call(t); p.Before != 7 {
		t.Errorf("the position before was %d, want 7", p.Before)
	}
}

// A run without waiters stays as long as another one may join it, and ends when that is let in by itself.
func TestWhatIsNotJoinedEnds(t *testing.T) {
	for what, end := range map[string]func(joins *run) *entry{
		"let in by the answer": func(joins *run) *entry { return joins.Begin(2) },
		"let in by a message":  func(joins *run) *entry { joins.LetIn(2, 9); return joins.Begin(2) },
		"settled":              func(joins *run) *entry { _, left := joins.Answered(9); return left },
	} {
		var s session
		a, first := s.queue(t, "a", 7)
		s.arrive("b", plain)
		joins, _ := s.call(t)
		a.Leave(false)
		if left := end(joins); left != first.Of {
			t.Errorf("%s: %v is left, want the run that it has not joined", what, left)
		}
	}
}

// What becomes of a run when a waiter leaves, the last one as a rule, depends on what Redis knows
// of it.
func TestAWaiterLeaves(t *testing.T) {
	for _, tc := range []struct {
		name     string
		prepare  func(t *testing.T, s *session) *member
		inFlight bool
		act      waiting.ClaimAction
		acked    bool // there is something to wait for
		sent     bool // Redis is asked about a run once more
	}{
		{"gathering", gathering, false, waiting.DropClaim, false, false},
		{"gathering with another", gatheringWithAnother, false, waiting.KeepClaim, false, false},
		{"asked", asked, true, waiting.KeepClaim, true, false},
		{"asked, no answer", asked, false, waiting.ReleaseClaim, true, false},
		{"may have joined", mayHaveJoined, false, waiting.ReleaseClaim, true, true},
		{"may have been joined", mayHaveBeenJoined, false, waiting.KeepClaim, true, false},
		{"queued with another", queuedWithAnother, false, waiting.KeepClaim, true, true},
		{"queued", func(t *testing.T, s *session) *member {
			m, _ := s.queue(t, "a", 7)
			return m
		}, false, waiting.ReleaseClaim, true, false},
		{"let in", func(t *testing.T, s *session) *member {
			m, r := s.queue(t, "a", 7)
			r.Begin(1)
			return m
		}, false, waiting.KeepClaim, false, false},
	} {
		var s session
		m := tc.prepare(t, &s)
		r := m.Run
		acked, act, left := m.Leave(tc.inFlight)
		sent := s.Due(later) != nil && s.Due(later).Waiting > 0 && r.Phase() > 0
		if act != tc.act || (acked != nil) != tc.acked || sent != tc.sent || m.Run != nil || left != nil {
			t.Errorf("%s: action %d, acked %v, sent %v, left %v", tc.name, act, acked != nil, sent, left)
		}
	}
}

// The states in which the waiter "a" may be; another one is "x".

func gathering(_ *testing.T, s *session) *member { return s.arrive("a", plain) }

func gatheringWithAnother(_ *testing.T, s *session) *member {
	m := s.arrive("a", plain)
	s.arrive("x", plain)
	return m
}

func asked(t *testing.T, s *session) *member {
	m := s.arrive("a", plain)
	s.call(t)
	return m
}

func mayHaveJoined(t *testing.T, s *session) *member {
	s.queue(t, "x", 7)
	return asked(t, s)
}

func mayHaveBeenJoined(t *testing.T, s *session) *member {
	m, _ := s.queue(t, "a", 7)
	s.arrive("x", plain)
	s.call(t)
	return m
}

func queuedWithAnother(t *testing.T, s *session) *member {
	m := gatheringWithAnother(t, s)
	r, _ := s.call(t)
	r.Answered(7)
	return m
}

// A waiter that leaves others behind is told when a call has said so that was sent since.
func TestAWaiterThatLeavesIsTold(t *testing.T) {
	var s session
	a := s.arrive("a", plain)
	s.arrive("b", plain)
	r, _ := s.call(t)
	acked, act, _ := a.Leave(true)
	checkAction(t, "one of two leaves", act, waiting.KeepClaim)
	r.Answered(7)
	if isClosed(acked) {
		t.Fatal("told by a call that was sent before")
	}
	if _, p := s.call(t); p.Waiting != 1 || p.Last != 2 || p.Before != 0 {
		t.Errorf("the call says %+v", p)
	}
	r.Answered(7)
	if !isClosed(acked) {
		t.Error("not told by the answer")
	}
}

// The same where the run has joined another one: the call for that tells.
func TestAWaiterThatLeavesIsToldByTheRunThatItHasJoined(t *testing.T) {
	var s session
	_, first := s.queue(t, "a", 7)
	b := s.arrive("b", plain)
	s.arrive("c", plain)
	joins, _ := s.call(t)
	acked, _, _ := b.Leave(true)
	gone(t, "joined")(joins.Answered(0))
	joins.End()
	want(t, first, "a c")
	sent, p := s.call(t)
	if sent != first || isClosed(acked) {
		t.Fatalf("Redis is asked about the run that was joined: %v, told before: %v", sent == first, isClosed(acked))
	}
	if p.Waiting != 2 || p.Last != 3 {
		t.Errorf("the attempt says %+v", p)
	}
	first.Answered(7)
	if !isClosed(acked) {
		t.Error("not told by the answer")
	}
}

// All have left while the call was on its way: the entry is taken away, and the one that left last
// is told when that is done.
func TestAllHaveLeftBeforeTheAnswer(t *testing.T) {
	var s session
	a, b := s.arrive("a", plain), s.arrive("b", plain)
	r, _ := s.call(t)
	first, _, _ := a.Leave(true)
	second, _, _ := b.Leave(true)
	ends(t, "nobody is left")(r.Answered(7))
	last := r.AcknowledgeAllButLast()
	if last != second || !isClosed(first) || isClosed(second) {
		t.Errorf("the one that left last is told: %v, the other one: %v", isClosed(second), isClosed(first))
	}
	r.End()
	if r.AcknowledgeAllButLast() != nil {
		t.Error("the same waiter is told twice")
	}
	s.nothingDue(t, "the run is over")
}

// A run that Redis refuses for good loses its waiters. An entry that it had is taken away, and what an attempt before may
// have taken.
func TestRefused(t *testing.T) {
	for _, before := range []string{"", "queued", "unanswered"} {
		var s session
		a, b := s.arrive("a", plain), s.arrive("b", plain)
		r, _ := s.call(t)
		wants := waiting.ReleaseClaim
		switch before {
		case "queued":
			r.Answered(7)
		case "unanswered":
			r.MayHaveRun = true
		default:
			wants = waiting.DropClaim
		}
		who, act, left := r.Refused()
		becomes(t, "refused", wants)(act, left)
		if len(who) != 2 || who[0] != a.Of || who[1] != b.Of || a.Run != nil || r.Waiting != 0 {
			t.Errorf("%d waiters are turned away", len(who))
		}
	}
}

// A run is let in up to a waiter. Those that cannot be served are passed by.
func TestTheNextWaiterOfARun(t *testing.T) {
	var s session
	for _, who := range []string{"a", "b", "c"} {
		s.arrive(who, plain)
	}
	r, _ := s.call(t)
	r.Begin(2)
	for _, tc := range []struct{ cannot, next string }{{"", "a"}, {"a", "b"}, {"ab", ""}} {
		next := ""
		if m := r.Next(func(who *string) bool { return !strings.Contains(tc.cannot, *who) }); m != nil {
			next = *m
		}
		if next != tc.next {
			t.Errorf("without %q the next is %q, want %q", tc.cannot, next, tc.next)
		}
	}
}
