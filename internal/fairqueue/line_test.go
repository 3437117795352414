package fairqueue_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"relock/internal/fairqueue"
)

type (
	run    = fairqueue.Run[entry, string]
	member = fairqueue.Member[entry, string]
)

// An entry is what a test keeps of a run.
type entry struct{ run *run }

// kind is what waiters have in common that may stand together.
type kind struct{ _ int }

var plain, fenced = &kind{}, &kind{}

// session is a session with one lock, as far as the queue is concerned.
type session struct {
	fairqueue.Line[entry, string]
	opened int
}

func (s *session) newRun(k any) *run {
	s.opened++
	r := &run{Entry: fmt.Sprint("entry", s.opened), Kind: k}
	r.Of = &entry{r}
	return r
}

// arrive has a waiter come; of the kind nil it stands alone.
func (s *session) arrive(who string, k any) *member {
	m := &member{Of: &who}
	if !s.Arrive(m, k) {
		s.Open(m, s.newRun(k))
	}
	return m
}

// call collects the one run that is to be sent, and returns it with what is said of it.
func (s *session) call(t *testing.T) (*run, fairqueue.Place) {
	t.Helper()
	runs := s.Collect(10)
	if len(runs) != 1 {
		t.Fatalf("%d runs are to be sent, want 1", len(runs))
	}
	return runs[0], runs[0].Call()
}

// queue has a waiter come and queue, with a place.
func (s *session) queue(t *testing.T, who string, place int64) (*member, *run) {
	t.Helper()
	m := s.arrive(who, plain)
	r, _ := s.call(t)
	fate(t, "a run with a place", r.Settled(place), fairqueue.Lives)
	return m, r
}

func fate(t *testing.T, what string, got, want fairqueue.Fate) {
	t.Helper()
	if got != want {
		t.Errorf("%s: fate %d, want %d", what, got, want)
	}
}

// waiters are those of a run, in their order.
func waiters(r *run) string {
	var all []string
	for m := r.First(); m != nil; m = m.Next() {
		all = append(all, *m.Of)
		if m.Run != r {
			all = append(all, "(who thinks to be elsewhere)")
		}
	}
	if len(all) != r.Waiting() {
		all = append(all, fmt.Sprintf("(counted as %d)", r.Waiting()))
	}
	return strings.Join(all, " ")
}

func want(t *testing.T, r *run, who string) {
	t.Helper()
	if got := waiters(r); got != who {
		t.Errorf("in %s wait %q, want %q", r.Entry, got, who)
	}
}

// isClosed reports whether a waiter that left has been told.
func isClosed(told <-chan struct{}) bool {
	select {
	case <-told:
		return true
	default:
		return false
	}
}

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
	if got, want := runs[0].Call(), (fairqueue.Place{Entry: "entry1", Last: 2, Waiting: 2, Open: true}); got != want {
		t.Errorf("the call says %+v, want %+v", got, want)
	}
	if got, want := runs[1].Call(), (fairqueue.Place{Entry: "entry2", Last: 3, Waiting: 1}); got != want {
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
			fate(t, "with a place of its own", second.Settled(8), fairqueue.Lives)
			want(t, first, "a")
			want(t, second, "b")
			second.Hurry()
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
			r.Begin()
		},
		"over": func(s *session) {
			_, r := s.queue(t, "x", 5)
			r.End()
		},
		"at an old place": func(s *session) {
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
		first.Begin()
		if last == 2 {
			want(t, first, "a b")
			continue
		}
		want(t, first, "a")
		first.End()
		// Redis has it at a place of its own: else the message would have counted it.
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
	r.Hurry()
	if !s.Urgent {
		t.Error("the call is not urgent")
	}
	if _, p := s.call(t); p.Before != 9 || s.Urgent {
		t.Errorf("the call says %+v; urgent afterwards: %v", p, s.Urgent)
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
	var before []fairqueue.Place
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

// What cannot go on has a new run, at the old place and before all others. What joined the old one
// finds the new one.
func TestReplacedRunsKeepTheirPlaces(t *testing.T) {
	var s session
	a, first := s.queue(t, "a", 7)
	s.arrive("b", plain)
	joins, _ := s.call(t)
	s.arrive("c", plain)
	first.LetIn(1, 7)
	first.Begin()
	first.End()
	next := s.newRun(plain)
	first.Replace(next)
	if !s.Urgent || a.Run != next {
		t.Errorf("urgent: %v; the waiter is in %s", s.Urgent, a.Run.Entry)
	}
	s.arrive("d", plain)
	runs := s.Collect(10)
	if len(runs) != 2 || runs[0] != next {
		t.Fatalf("%d runs are to be sent, and the one with the old place is not the first", len(runs))
	}
	want(t, runs[1], "c d")
	if p := next.Call(); p.Before != 7 || p.Join != "" || p.Last != 1 {
		t.Errorf("the call says %+v", p)
	}
	fate(t, "joined what was replaced", joins.Settled(0), fairqueue.Gone)
	want(t, next, "a b")
	if p := next.Call(); p.Before != 7 || p.Last != 2 || p.Waiting != 2 {
		t.Errorf("the call says %+v", p)
	}
}

// A new run at an old place takes in no waiters that come later. It is before all others, also if
// the place was never heard of.
func TestLaterWaitersDoNotGetAnOldPlace(t *testing.T) {
	var s session
	s.arrive("a", plain)
	r, _ := s.call(t)
	r.Begin() // by the answer
	r.End()
	next := s.newRun(plain)
	r.Replace(next)
	if late := s.arrive("b", plain); late.Run == next {
		t.Error("a later waiter gets the old place")
	}
	if p := s.Collect(1)[0].Call(); p.Before != 1 {
		t.Errorf("the call says %+v", p)
	}
}

// If what a run has joined is over, its waiters need a run at that place.
func TestJoiningWhatIsOver(t *testing.T) {
	var s session
	a, first := s.queue(t, "a", 7)
	s.arrive("b", plain)
	joins, _ := s.call(t)
	first.Remove(a)
	first.End()
	fate(t, "joined what is over", joins.Settled(0), fairqueue.Gone)
	want(t, joins, "b")
	joins.End()
	next := s.newRun(plain)
	joins.Replace(next)
	want(t, next, "b")
	if _, p := s.call(t); p.Before != 7 {
		t.Errorf("the place before was %d, want 7", p.Before)
	}
}

// What becomes of a run when a waiter leaves, the last one as a rule, depends on what Redis knows of it.
func TestTheLastWaiterLeaves(t *testing.T) {
	for _, tc := range []struct {
		name    string
		prepare func(s *session) *member
		flying  bool
		fate    fairqueue.Fate
		told    bool // there is something to wait for
		sent    bool // the run is sent once more
	}{
		{"gathering", func(s *session) *member { return s.arrive("a", plain) }, false, fairqueue.Gone, false, false},
		{"gathering with another", func(s *session) *member {
			m := s.arrive("a", plain)
			s.arrive("x", plain)
			return m
		}, false, fairqueue.Lives, false, false},
		{"asked", func(s *session) *member {
			m := s.arrive("a", plain)
			s.call(t)
			return m
		}, true, fairqueue.Lives, true, false},
		{"asked, no answer", func(s *session) *member {
			m := s.arrive("a", plain)
			r, _ := s.call(t)
			r.Unanswered()
			return m
		}, false, fairqueue.Ends, true, false},
		{"may have joined", func(s *session) *member {
			s.queue(t, "x", 7)
			m := s.arrive("a", plain)
			s.call(t)
			return m
		}, false, fairqueue.Lives, true, true},
		{"may have been joined", func(s *session) *member {
			m, _ := s.queue(t, "a", 7)
			s.arrive("x", plain)
			s.call(t)
			return m
		}, false, fairqueue.Lives, true, true},
		{"queued", func(s *session) *member {
			m, _ := s.queue(t, "a", 7)
			return m
		}, false, fairqueue.Ends, true, false},
		{"let in", func(s *session) *member {
			m, r := s.queue(t, "a", 7)
			r.Begin()
			return m
		}, false, fairqueue.Lives, false, false},
	} {
		var s session
		m := tc.prepare(&s)
		told, f := m.Leave(tc.flying)
		if f != tc.fate || (told != nil) != tc.told || s.Urgent != tc.sent || m.Run != nil {
			t.Errorf("%s: fate %d, told %v, sent %v", tc.name, f, told != nil, s.Urgent)
		}
	}
}

// A waiter that leaves others behind is told when a call has said so that was sent since.
func TestAWaiterThatLeavesIsTold(t *testing.T) {
	var s session
	a := s.arrive("a", plain)
	s.arrive("b", plain)
	r, _ := s.call(t)
	told, f := a.Leave(true)
	fate(t, "one of two leaves", f, fairqueue.Lives)
	r.Settled(7)
	if isClosed(told) {
		t.Fatal("told by a call that was sent before")
	}
	if _, p := s.call(t); p.Waiting != 1 || p.Last != 2 || p.Before != 0 {
		t.Errorf("the call says %+v", p)
	}
	r.Settled(7)
	if !isClosed(told) {
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
	told, _ := b.Leave(true)
	fate(t, "joined", joins.Settled(0), fairqueue.Gone)
	want(t, first, "a c")
	var sent *run
	for _, r := range s.Collect(10) {
		if r == first {
			sent = r
		}
	}
	if sent == nil || isClosed(told) {
		t.Fatalf("the run that was joined is sent: %v, told before: %v", sent != nil, isClosed(told))
	}
	if p := first.Call(); p.Waiting != 2 || p.Last != 3 {
		t.Errorf("the call says %+v", p)
	}
	first.Settled(7)
	if !isClosed(told) {
		t.Error("not told by the answer")
	}
}

// All have left while the call was on its way: the entry is taken away, and the one that left last
// is told when that is done.
func TestAllHaveLeftBeforeTheAnswer(t *testing.T) {
	var s session
	a, b := s.arrive("a", plain), s.arrive("b", plain)
	r, _ := s.call(t)
	first, _ := a.Leave(true)
	second, _ := b.Leave(true)
	fate(t, "nobody is left", r.Settled(7), fairqueue.Ends)
	last := r.TellAllBut()
	if last != second || !isClosed(first) || isClosed(second) {
		t.Errorf("the one that left last is told: %v, the other one: %v", isClosed(second), isClosed(first))
	}
	r.End()
	if r.TellAllBut() != nil {
		t.Error("the same waiter is told twice")
	}
	if s.Pending() && len(s.Collect(10)) > 0 {
		t.Error("a run that is over is sent")
	}
}

// A run that Redis refuses for good loses its waiters. An entry that it had is taken away.
func TestRefused(t *testing.T) {
	for _, queued := range []bool{true, false} {
		var s session
		a, b := s.arrive("a", plain), s.arrive("b", plain)
		r, _ := s.call(t)
		wants := fairqueue.Gone
		if queued {
			r.Settled(7)
			wants = fairqueue.Ends
		}
		who, f := r.Refused()
		fate(t, "refused", f, wants)
		if len(who) != 2 || who[0] != a.Of || who[1] != b.Of || a.Run != nil || r.Waiting() != 0 {
			t.Errorf("%d waiters are turned away", len(who))
		}
	}
}

// Whatever happens, each waiter that is neither served nor gone stands in one run that is not over
// or is about to be replaced, in the order of arrival; and what is said of a run is true.
func TestNoWaiterIsLost(t *testing.T) {
	for seed := range uint64(300) {
		m := newModel(t, seed)
		for range 200 {
			m.step()
			m.check()
		}
	}
}

// A model plays Redis, and a session with claims. Its queue is served by one other lock owner.
type model struct {
	session
	t      *testing.T
	rnd    *rand.Rand
	all    []*member // who waits
	flying []*run
	redis  []*known // the queue
	runs   []*run
	in     *run
	clock  int64
}

// known is what Redis knows of an entry.
type known struct {
	entry string
	place int64
	last  int64
	n     int
}

func newModel(t *testing.T, seed uint64) *model {
	return &model{t: t, rnd: rand.New(rand.NewPCG(seed, 1)), clock: 10}
}

func (m *model) find(entry string) (int, *known) {
	for i, k := range m.redis {
		if k.entry == entry {
			return i, k
		}
	}
	return -1, nil
}

func (m *model) run(entry string) *run {
	for _, r := range m.runs {
		if r.Entry == entry {
			return r
		}
	}
	return nil
}

func (m *model) newRun(k any) *run {
	r := m.session.newRun(k)
	m.runs = append(m.runs, r)
	return r
}

func (m *model) step() {
	switch n := m.rnd.IntN(10); {
	case n < 3: // one comes
		var k any = plain
		if m.rnd.IntN(4) == 0 {
			k = []any{fenced, nil}[m.rnd.IntN(2)]
		}
		who := fmt.Sprint("w", m.clock)
		m.clock++
		w := &member{Of: &who}
		if !m.Arrive(w, k) {
			m.Open(w, m.newRun(k))
		}
		m.all = append(m.all, w)
	case n < 4 && len(m.all) > 0: // one leaves
		w := m.all[m.rnd.IntN(len(m.all))]
		r := w.Run
		_, f := w.Leave(slices.Contains(m.flying, r))
		m.drop(w)
		m.meet(r, f)
		if r == m.in && r.Waiting() == 0 {
			m.over(r)
		}
	case n < 7 && m.flying == nil: // a call is sent, and arrives, or not
		m.flying = m.Collect(3)
		lost := m.rnd.IntN(4) == 0
		var places []int64
		for _, r := range m.flying {
			places = append(places, m.enqueue(r.Call()))
		}
		if m.rnd.IntN(3) == 0 {
			m.grant()
		}
		m.answer(places, lost || m.rnd.IntN(6) == 0)
	case n < 8:
		m.grant()
	case n < 9 && m.in != nil: // one is served
		if w := m.in.First(); w != nil {
			m.in.Remove(w)
			m.drop(w)
		}
		if m.in.Waiting() == 0 {
			m.over(m.in)
		}
	case n < 10 && m.in != nil && m.rnd.IntN(5) == 0: // it is forced
		m.over(m.in)
	}
}

func (m *model) drop(w *member) {
	m.all = slices.DeleteFunc(m.all, func(o *member) bool { return o == w })
}

// enqueue is what acquire.lua does for a lock that is held.
func (m *model) enqueue(p fairqueue.Place) int64 {
	i, own := m.find(p.Entry)
	j, other := m.find(p.Join)
	switch {
	case own != nil:
		own.last, own.n = p.Last, p.Waiting
		return own.place
	case other != nil && (other.last >= p.Last || j == len(m.redis)-1):
		if other.last < p.Last {
			other.last, other.n = p.Last, p.Joined
		}
		return 0
	case p.Before > 0:
		for i = 0; i < len(m.redis) && m.redis[i].place <= p.Before; i++ {
		}
		m.redis = slices.Insert(m.redis, i, &known{p.Entry, p.Before, p.Last, p.Waiting})
		return p.Before
	}
	m.clock++
	m.redis = append(m.redis, &known{p.Entry, m.clock, p.Last, p.Waiting})
	return m.clock
}

// grant lets the first entry in, by a message.
func (m *model) grant() {
	if m.in != nil || len(m.redis) == 0 {
		return
	}
	k := m.redis[0]
	m.redis = m.redis[1:]
	r := m.run(k.entry)
	if r == nil || r.Phase() > fairqueue.Queued {
		return // it is given back
	}
	if joined := r.LetIn(k.last, k.place); joined != nil {
		m.over(joined.run)
	}
	r.Begin()
	if m.in = r; r.Waiting() == 0 {
		m.over(r)
	}
}

func (m *model) answer(places []int64, lost bool) {
	var again []*run
	for i, r := range m.flying {
		switch {
		case r.Phase() > fairqueue.Queued:
			if k, known := m.find(r.Entry); known != nil {
				m.redis = slices.Delete(m.redis, k, k+1) // what came behind its release is given back
			}
		case lost:
			back, f := r.Unanswered()
			if back {
				again = append(again, r)
			}
			m.meet(r, f)
		default:
			m.meet(r, r.Settled(places[i]))
		}
	}
	m.PutBack(again)
	m.flying = nil
}

func (m *model) meet(r *run, f fairqueue.Fate) {
	if f != fairqueue.Lives {
		r.TellAllBut()
		m.over(r)
	}
}

// over ends the claim of a run: its release takes its entry away.
func (m *model) over(r *run) {
	if i, k := m.find(r.Entry); k != nil {
		m.redis = slices.Delete(m.redis, i, i+1)
	}
	if r.End(); r == m.in {
		m.in = nil
	}
	if r.Waiting() > 0 {
		r.Replace(m.newRun(r.Kind))
	}
	r.Tell()
}

func (m *model) check() {
	waiting := 0
	for _, r := range m.runs {
		waiting += r.Waiting()
		last := int64(0)
		for w := r.First(); w != nil; w = w.Next() {
			if w.Run != r || w.Number <= last {
				m.t.Fatalf("%s: waiter %d behind %d", r.Entry, w.Number, last)
			}
			last = w.Number
		}
		if r.Phase() == fairqueue.Over && r.Waiting() > 0 {
			m.t.Fatalf("%s is over and has waiters", r.Entry)
		}
		// What is said of it once more is true, if nothing is to be sent.
		if _, k := m.find(r.Entry); k != nil && r.Phase() == fairqueue.Queued && !m.Pending() && k.last < last {
			m.t.Fatalf("Redis counts %s up to %d, and waiter %d stands there", r.Entry, k.last, last)
		}
	}
	if waiting != len(m.all) {
		m.t.Fatalf("%d stand in runs, %d wait", waiting, len(m.all))
	}
}
