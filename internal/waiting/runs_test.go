package waiting_test

import (
	"testing"
	"time"

	"relock/internal/waiting"
)

// Those that come before Redis is asked about the run gather in it; an attempt says up to which number, and how
// many wait. Runs come into the line in their order.
func TestWaitersOfOneKindGather(t *testing.T) {
	var s session
	a := s.arrive("a", plain)
	s.arrive("b", plain)
	alone := s.arrive("alone", nil)
	other := s.arrive("other", fenced)
	s.arrive("c", plain)
	s.arrive("d", plain)
	var runs []*run
	for i, who := range []string{"a b", "alone", "other", "c d"} {
		r, p := s.call(t)
		want(t, r, who)
		if i < 2 {
			if want := []waiting.RunAttempt{{Entry: "entry1", Last: 2, Waiting: 2}, {Entry: "entry2", Last: 3, Waiting: 1}}[i]; p != want {
				t.Errorf("the attempt says %+v, want %+v", p, want)
			}
		}
		if i > 0 {
			s.nothingDue(t, "before the first has a place")
		}
		lives(t, who)(r.Answered(int64(i + 5)))
		runs = append(runs, r)
	}
	s.nothingDue(t, "all stand in the line")
	if a.Run != runs[0] || alone.Run != runs[1] || other.Run != runs[2] {
		t.Error("a waiter does not know its run")
	}
	late := s.arrive("late", plain)
	if late.Run == runs[3] {
		t.Error("a waiter has come into a run that Redis was asked about")
	}
	if one, two := s.arrive("one", nil), s.arrive("two", nil); one.Run == two.Run {
		t.Error("two that stand alone stand together")
	}
}

// Waiters that have just come wait for others as long as a run of the session is asked about, in
// the line or being served: for 2 ms, or until none of those is left.
func TestWhenWaitersGather(t *testing.T) {
	var s session
	gathers := func(when string, want bool) {
		t.Helper()
		m := s.arrive("x", plain)
		if now := s.Leads(m, 0); now == want {
			t.Errorf("%s: they gather: %v", when, !want)
		}
		if !s.Leads(m, 2*time.Millisecond) {
			t.Errorf("%s: they gather for more than 2 ms", when)
		}
		r := m.Run
		if _, act, _ := m.Leave(false); act == waiting.DropClaim {
			r.End()
		}
	}
	gathers("nothing is there", false)
	a := s.arrive("a", plain)
	r, _ := s.call(t)
	r.Answered(7)
	gathers("a run is in the line", true)
	r.Begin(1)
	r.Remove(a)
	gathers("a run is served", true)
	b := s.arrive("b", plain)
	if s.Leads(b, 0) {
		t.Error("they do not gather")
	}
	r.End()
	if !s.Leads(b, 0) {
		t.Error("they gather, and no other run is left")
	}
}

// The first waiter of a run asks, and one attempt is on its way at a time.
func TestWhoAsks(t *testing.T) {
	var s session
	a, b := s.arrive("a", plain), s.arrive("b", plain)
	if !s.Leads(a, 0) || s.Leads(b, 0) {
		t.Error("not the first one asks")
	}
	s.Asking = true
	if s.Leads(a, 0) {
		t.Error("it asks while an attempt is on its way")
	}
	s.Asking = false
	a.Leave(false)
	if !s.Leads(b, 0) {
		t.Error("the next one does not ask")
	}
	if s.Leads(a, 0) {
		t.Error("one that has left asks")
	}
}

// A run that is sent behind one of its session asks to join that. If Redis says that it has, its
// waiters are the other's.
func TestARunJoinsTheOneBefore(t *testing.T) {
	for _, joins := range []bool{true, false} {
		var s session
		_, first := s.queue(t, "a", 7)
		b := s.arrive("b", plain)
		second, p := s.call(t)
		if p.Join != first.Entry || p.Joined != 2 || p.Last != 2 || p.Before != 0 {
			t.Errorf("the call says %+v", p)
		}
		if joins {
			gone(t, "joined")(second.Answered(0))
			want(t, first, "a b")
			want(t, second, "")
		} else {
			lives(t, "with a position of its own")(second.Answered(8))
			want(t, first, "a")
			want(t, second, "b")
			second.AskNow()
			if _, p := s.call(t); p.Join != "" || p.Before != 0 {
				t.Errorf("the second call for it says %+v", p)
			}
			_, act, _ := first.First().Leave(false)
			checkAction(t, "the last waiter of a run that was not joined leaves", act, waiting.ReleaseClaim)
		}
		if (b.Run == first) != joins {
			t.Error("the waiter does not know its run")
		}
		// The next one may join the run that is the last now.
		s.arrive("c", plain)
		if _, p := s.call(t); p.Join != b.Run.Entry {
			t.Errorf("the next one joins %q, want %q", p.Join, b.Run.Entry)
		}
	}
}

// Only the run that was sent last can be joined: in the queue, of the same kind, and not let in.
func TestWhatCannotBeJoined(t *testing.T) {
	for name, prepare := range map[string]func(s *session){
		"of another kind": func(s *session) {
			s.arrive("x", fenced)
			r, _ := s.call(t)
			r.Answered(5)
		},
		"alone": func(s *session) {
			s.arrive("x", nil)
			r, _ := s.call(t)
			r.Answered(5)
		},
		"let in": func(s *session) {
			_, r := s.queue(t, "x", 5)
			r.Begin(1)
		},
		"over": func(s *session) {
			_, r := s.queue(t, "x", 5)
			r.End()
		},
		"at an old position": func(s *session) {
			_, r := s.queue(t, "x", 5)
			r.End()
			r.Replace(s.newRun(plain))
			next, _ := s.call(t)
			next.Answered(5)
		},
		"not the last": func(s *session) {
			s.queue(t, "x", 5)
			s.arrive("y", nil)
			r, _ := s.call(t)
			r.Answered(6)
		},
	} {
		var s session
		prepare(&s)
		s.arrive("a", plain)
		if _, p := s.call(t); p.Join != "" {
			t.Errorf("%s: the next run joins %s", name, p.Join)
		}
		s = session{}
		prepare(&s)
		s.arrive("a", nil)
		if _, p := s.call(t); p.Join != "" {
			t.Errorf("%s: one that stands alone joins %s", name, p.Join)
		}
	}
}

// A message may overtake the answer to the call by which others have joined: whose numbers it
// counts are in.
func TestAMessageOvertakesTheAnswerToAJoin(t *testing.T) {
	for _, last := range []int64{1, 2} {
		var s session
		_, first := s.queue(t, "a", 7)
		s.arrive("b", plain)
		second, _ := s.call(t)
		joined := first.LetIn(last, 7)
		if counted := last == 2; counted != (joined == second.Of) {
			t.Fatalf("let in up to %d: joined is %v", last, joined)
		}
		first.Begin(last)
		if last == 2 {
			want(t, first, "a b")
			continue
		}
		want(t, first, "a")
		first.End()
		// Redis has it at a position of its own: else the message would have counted it.
		lives(t, "the one that came too late")(second.Answered(8))
		want(t, second, "b")
	}
}

// A message that cannot be trusted is followed by another call: what it said holds.
func TestAMessageThatIsAskedAbout(t *testing.T) {
	var s session
	a := s.arrive("a", plain)
	r, _ := s.call(t)
	r.LetIn(1, 9) // before the answer that it has queued
	r.AskNow()
	if _, p := s.call(t); p.Before != 9 {
		t.Errorf("the attempt says %+v", p)
	}
	s.nothingDue(t, "it was sent")
	r.Answered(9)
	s.arrive("b", plain)
	s.call(t)
	r.LetIn(1, 9) // without the one that was about to join
	_, act, _ := a.Leave(false)
	checkAction(t, "the last waiter of what was let in leaves", act, waiting.ReleaseClaim)
}

// An attempt without an answer is sent again and says the same, before all that came later.
func TestUnansweredAttemptsAreSentAgain(t *testing.T) {
	var s session
	s.queue(t, "a", 7)
	s.arrive("b", plain)
	r, before := s.call(t)
	s.arrive("c", fenced)
	lives(t, "without an answer")(r.Unanswered(10 * time.Millisecond))
	if due := s.Due(5 * time.Millisecond); due != nil {
		t.Errorf("Redis is asked about %s before the pause is over", due.Entry)
	}
	again, p := s.call(t)
	before.Again = true
	if again != r || p != before {
		t.Errorf("the attempt for %s says %+v, and before for %s %+v", again.Entry, p, r.Entry, before)
	}
}

// A run whose waiters have all left while its attempt was on its way ends, answer or not.
func TestAnUnansweredRunThatNobodyWaitsForEnds(t *testing.T) {
	var s session
	a := s.arrive("a", plain)
	r, _ := s.call(t)
	a.Leave(true)
	ends(t, "without an answer and waiters")(r.Unanswered(0))
}

// A run that may have joined another ends when its last waiter leaves, and Redis is asked about the other one,
// of which it may count more waiters than there are; that ends as well if nobody waits for it.
func TestTheLastWaiterOfARunThatMayHaveJoinedLeaves(t *testing.T) {
	for _, others := range []bool{true, false} {
		var s session
		b, first := s.queue(t, "b", 7)
		c := s.arrive("c", plain)
		s.call(t)
		if !others {
			if _, act, left := b.Leave(false); act != waiting.KeepClaim || left != nil {
				t.Errorf("the last waiter of a run that may have been joined leaves: action %d, %v", act, left)
			}
		}
		_, act, left := c.Leave(false)
		checkAction(t, "the run that may have joined", act, waiting.ReleaseClaim)
		if ended := left == first.Of; ended == others {
			t.Errorf("the run that may have been joined ends: %v, and others wait: %v", ended, others)
		}
		if asked := s.Due(later) == first; asked != others {
			t.Errorf("Redis is asked about the run that may have been joined: %v, and others wait: %v", asked, others)
		}
	}
}

// A run without waiters that could have been joined ends when it was not.
func TestARunWithoutWaitersWasNotJoined(t *testing.T) {
	var s session
	b, first := s.queue(t, "b", 7)
	s.arrive("c", plain)
	r, _ := s.call(t)
	b.Leave(false)
	act, left := r.Answered(8)
	checkAction(t, "the run that did not join", act, waiting.KeepClaim)
	if left != first.Of {
		t.Error("the run without waiters does not end")
	}
}
