package fairqueue_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"relock/internal/fairqueue"
)

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
	entry    string
	position int64
	last     int64
	n        int
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
	case n < 7 && m.flying == nil: // calls are sent, and their answers may get lost
		m.flying = m.Collect(3)
		var positions []int64
		for _, r := range m.flying {
			positions = append(positions, m.enqueue(r.Call()))
		}
		if m.rnd.IntN(3) == 0 {
			m.grant()
		}
		m.answer(positions, m.rnd.IntN(3) == 0)
	case n < 8:
		m.grant()
	case n < 9 && m.in != nil: // one is served
		w := m.in.First()
		if next := m.in.Next(func(*string) bool { return true }); next == nil {
			m.over(m.in) // those that are left have come too late for this run
		} else if w.Of != next {
			m.t.Fatalf("%s is served before %s", *next, *w.Of)
		} else {
			m.in.Remove(w)
			m.drop(w)
		}
	case n < 10 && m.in != nil && m.rnd.IntN(5) == 0: // it is forced
		m.over(m.in)
	}
}

func (m *model) drop(w *member) {
	m.all = slices.DeleteFunc(m.all, func(o *member) bool { return o == w })
}

// enqueue is what acquire.lua does for a lock that is held.
func (m *model) enqueue(p fairqueue.Position) int64 {
	_, own := m.find(p.Entry)
	j, other := m.find(p.Join)
	switch {
	case own != nil:
		own.last, own.n = p.Last, p.Waiting
		return own.position
	case other != nil && (other.last >= p.Last || j == len(m.redis)-1):
		if other.last < p.Last {
			other.last, other.n = p.Last, p.Joined
		}
		return 0
	case p.Before > 0:
		i := 0
		for i < len(m.redis) && m.redis[i].position <= p.Before {
			i++
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
	if joined := r.LetIn(k.last, k.position); joined != nil {
		m.over(joined.run)
	}
	r.Begin(k.last)
	if m.in = r; r.Waiting() == 0 {
		m.over(r)
	}
}

func (m *model) answer(positions []int64, lost bool) {
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
			m.meet(r, r.Settled(positions[i]))
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
	waiting, queued := 0, []string{}
	for _, h := range m.Heartbeats(3) {
		queued = append(queued, h.Entries()...)
	}
	for _, r := range m.runs {
		if slices.Contains(queued, r.Entry) != (r.Phase() == fairqueue.Queued) {
			m.t.Fatalf("%s in phase %d, Redis hears of it: %v", r.Entry, r.Phase(), slices.Contains(queued, r.Entry))
		}
		waiting += r.Waiting()
		last := int64(0)
		for w := r.First(); w != nil; w = w.Next() {
			if w.Run != r || w.Number() <= last {
				m.t.Fatalf("%s: waiter %d behind %d", r.Entry, w.Number(), last)
			}
			last = w.Number()
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
