package fairqueue_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"relock/internal/fairqueue"
)

// Those that come before the run is sent gather in it; a call says up to which number, and how
// many wait.
func TestWaitersOfOneKindGather(t *testing.T) {
	var s session
	a := s.arrive("a", plain)
	s.arrive("b", plain)
	alone := s.arrive("alone", nil)
	other := s.arrive("other", fenced)
	s.arrive("c", plain)
	s.arrive("d", plain)
	runs := s.Collect(2)
	if len(runs) != 2 || !s.Pending() {
		t.Fatalf("%d runs were collected, pending: %v; want 2, and others", len(runs), s.Pending())
	}
	runs = append(runs, s.Collect(10)...)
	for i, who := range []string{"a b", "alone", "other", "c d"} {
		want(t, runs[i], who)
	}
	if a.Run != runs[0] || alone.Run != runs[1] || other.Run != runs[2] {
		t.Error("a waiter does not know its run")
	}
	if got, want := runs[0].Call(), (fairqueue.Position{Entry: "entry1", Last: 2, Waiting: 2}); got != want {
		t.Errorf("the call says %+v, want %+v", got, want)
	}
	if got, want := runs[1].Call(), (fairqueue.Position{Entry: "entry2", Last: 3, Waiting: 1}); got != want {
		t.Errorf("the call says %+v, want %+v", got, want)
	}
	late := s.arrive("late", plain)
	if late.Run == runs[3] {
		t.Error("a waiter has come into a run that was collected")
	}
	if one, two := s.arrive("one", nil), s.arrive("two", nil); one.Run == two.Run {
		t.Error("two that stand alone stand together")
	}
}

// Waiters that have just come wait for others as long as a run of the session is asked about, in
// the queue or being served; not if what is pending is urgent.
func TestWhenWaitersGather(t *testing.T) {
	var s session
	gathers := func(when string, want bool) {
		t.Helper()
		if s.Gathers() != want {
			t.Errorf("%s: they gather: %v", when, !want)
		}
	}
	gathers("nothing is there", false)
	a := s.arrive("a", plain)
	gathers("nothing was sent", false)
	r, _ := s.call(t)
	gathers("a call is on its way", true)
	r.Settled(7)
	gathers("a run is in the queue", true)
	s.arrive("b", plain)
	r.SendNow()
	gathers("a run is urgent", false)
	s.Collect(10)
	gathers("it was sent", true)
	r.Begin(1)
	r.Remove(a)
	gathers("a run is served", true)
	r.End()
	gathers("it is over", false)
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
			fate(t, "joined", second.Settled(0), fairqueue.Gone)
			want(t, first, "a b")
			want(t, second, "")
		} else {
			fate(t, "with a position of its own", second.Settled(8), fairqueue.Lives)
			want(t, first, "a")
			want(t, second, "b")
			second.SendNow()
			if _, p := s.call(t); p.Join != "" || p.Before != 0 {
				t.Errorf("the second call for it says %+v", p)
			}
			_, f := first.First().Leave(false)
			fate(t, "the last waiter of a run that was not joined leaves", f, fairqueue.Ends)
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
			r.Settled(5)
		},
		"alone": func(s *session) {
			s.arrive("x", nil)
			r, _ := s.call(t)
			r.Settled(5)
		},
		"without an answer": func(s *session) {
			s.arrive("x", plain)
			s.call(t)
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
			next.Settled(5)
		},
		"not the last": func(s *session) {
			s.queue(t, "x", 5)
			s.arrive("y", nil)
			r, _ := s.call(t)
			r.Settled(6)
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
		fate(t, "the one that came too late", second.Settled(8), fairqueue.Lives)
		want(t, second, "b")
	}
}

// A message that cannot be trusted is followed by another call: what it said holds.
func TestAMessageThatIsAskedAbout(t *testing.T) {
	var s session
	a := s.arrive("a", plain)
	r, _ := s.call(t)
	r.LetIn(1, 9) // before the answer that it has queued
	r.SendNow()
	if !s.Urgent() {
		t.Error("the call is not urgent")
	}
	if _, p := s.call(t); p.Before != 9 || s.Urgent() {
		t.Errorf("the call says %+v; urgent afterwards: %v", p, s.Urgent())
	}
	r.Settled(9)
	s.arrive("b", plain)
	s.call(t)
	r.LetIn(1, 9) // without the one that was about to join
	_, f := a.Leave(false)
	fate(t, "the last waiter of what was let in leaves", f, fairqueue.Ends)
}

// A call without an answer is sent again and says the same, before all that came later.
func TestUnansweredCallsAreSentAgain(t *testing.T) {
	var s session
	s.queue(t, "a", 7)
	s.arrive("b", plain)
	s.arrive("c", fenced)
	runs := s.Collect(10)
	var before []fairqueue.Position
	for _, r := range runs {
		before = append(before, r.Call())
	}
	s.arrive("d", plain)
	var again []*run
	for _, r := range runs {
		back, f := r.Unanswered()
		fate(t, "without an answer", f, fairqueue.Lives)
		if back {
			again = append(again, r)
		}
	}
	if back, _ := runs[0].Unanswered(); back {
		t.Error("a run is put back twice")
	}
	s.PutBack(again)
	all := s.Collect(10)
	if len(all) != 3 || !slices.Equal(all[:2], runs) {
		t.Fatalf("sent again: %d runs, not those that had no answer first", len(all))
	}
	for i, r := range runs {
		before[i].Again = true
		if got := r.Call(); got != before[i] {
			t.Errorf("the call says %+v the second time, and %+v before", got, before[i])
		}
	}
	want(t, all[2], "d")
}

// A run whose waiters have all left is not sent again, unless it may have taken them along.
func TestUnansweredCallsOfRunsWithoutWaiters(t *testing.T) {
	var s session
	a := s.arrive("a", plain)
	r, _ := s.call(t)
	a.Leave(true)
	if back, f := r.Unanswered(); back || f != fairqueue.Ends {
		t.Errorf("a run that nobody waits for: back %v, fate %d", back, f)
	}
	r.End()
	s.queue(t, "b", 7)
	c := s.arrive("c", plain)
	r, _ = s.call(t)
	c.Leave(true)
	if back, f := r.Unanswered(); !back || f != fairqueue.Lives {
		t.Errorf("a run that may have joined another: back %v, fate %d", back, f)
	}
}

// Waiters that gather are sent after 2 ms, or earlier if there is no reason to wait any more, or when
// the session closes.
func TestHowLongWaitersGather(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		closing, end := context.WithCancel(t.Context())
		defer end()
		var s session
		gathers := func(when string, want time.Duration, meanwhile func()) {
			t.Helper()
			start := time.Now()
			done := make(chan struct{})
			go func() { defer close(done); s.Gather(closing) }()
			time.Sleep(time.Millisecond)
			meanwhile()
			<-done
			if took := time.Since(start); took != want {
				t.Errorf("%s: they gather for %v, want %v", when, took, want)
			}
		}
		if s.Flush() {
			t.Error("nothing is there, and is to be sent")
		}
		_, r := s.queue(t, "a", 7)
		s.arrive("b", plain)
		gathers("nothing happens", 2*time.Millisecond, func() {
			if s.Flush() {
				t.Error("they are to be sent while they gather")
			}
		})
		gathers("it is urgent", time.Millisecond, func() {
			r.SendNow()
			for range 2 { // the second time before the first is noticed
				if !s.Flush() {
					t.Error("what is urgent is not to be sent")
				}
			}
		})
		s.Flush()
		s.Collect(10) // with what Flush has said
		s.arrive("c", plain)
		gathers("all that was urgent was sent", 2*time.Millisecond, func() {})
		gathers("the session closes", time.Millisecond, end)
	})
}
