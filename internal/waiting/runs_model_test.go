package waiting_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"relock/internal/waiting"
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

// A model plays Redis, and a session with claims. Its line is served by one other lock owner.
type model struct {
	session
	t        *testing.T
	rnd      *rand.Rand
	all      []*member // who waits
	inFlight *run      // about which an attempt is on its way: Redis has run it,
	answer   int64     // and answers this
	told     *known    // what was said to that run meanwhile: it has the lock
	redis    []*known  // the line
	runs     []*run
	in       *run
	clock    int64
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
		w := &member{Of: &who, Kind: k}
		m.Arrive(w, 0, func() *run { return m.newRun(k) })
		m.all = append(m.all, w)
	case n < 4 && len(m.all) > 0: // one leaves, but not one whose attempt is on its way
		w := m.all[m.rnd.IntN(len(m.all))]
		r := w.Run
		if r == m.inFlight && r.First() == w {
			return
		}
		_, act, left := w.Leave(r == m.inFlight)
		m.drop(w)
		m.apply(r, act, left)
		if r == m.in && r.Waiting == 0 {
			m.over(r)
		}
	case n < 7 && m.inFlight == nil: // an attempt is sent
		if r := m.Due(later); r != nil {
			m.inFlight, m.Asking = r, true
			m.answer = m.enqueue(r.BeginAttempt())
		}
	case n < 7: // its answer comes, or is lost
		m.answered(m.rnd.IntN(3) == 0)
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
func (m *model) enqueue(p waiting.RunAttempt) int64 {
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
	if m.in != nil || m.told != nil || len(m.redis) == 0 {
		return
	}
	k := m.redis[0]
	m.redis = m.redis[1:]
	r := m.run(k.entry)
	switch {
	case r == nil || r.Phase() > waiting.Queued: // it is given back
	case r == m.inFlight:
		m.told = k
	default:
		m.letIn(r, k)
	}
}

func (m *model) letIn(r *run, k *known) {
	if joined := r.LetIn(k.last, k.position); joined != nil {
		m.over(joined.run)
	}
	r.Begin(k.last)
	if m.in = r; r.Waiting == 0 {
		m.over(r)
	}
}

func (m *model) answered(lost bool) {
	r, told := m.inFlight, m.told
	m.inFlight, m.told, m.Asking = nil, nil, false
	switch {
	case r.Phase() > waiting.Queued:
		if i, k := m.find(r.Entry); k != nil {
			m.redis = slices.Delete(m.redis, i, i+1) // what came behind its release is given back
		}
	case lost:
		act, left := r.Unanswered(0)
		m.apply(r, act, left)
	default:
		act, left := r.Answered(m.answer)
		m.apply(r, act, left)
	}
	if told != nil && r.Phase() <= waiting.Queued {
		m.letIn(r, told)
	}
}

func (m *model) apply(r *run, act waiting.ClaimAction, left *entry) {
	if left != nil {
		m.over(left.run)
	}
	if act != waiting.KeepClaim {
		r.AcknowledgeAllButLast()
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
	if r.Waiting > 0 {
		r.Replace(m.newRun(r.Kind))
	}
	r.Acknowledge()
}

func (m *model) check() {
	stand, queued := 0, []string{}
	for _, h := range m.Heartbeats(later, 3) {
		queued = append(queued, entries(h)...)
		for _, r := range h {
			r.HeartbeatAt = 0 // as if it were due again
		}
	}
	for _, r := range m.runs {
		if slices.Contains(queued, r.Entry) != (r.Phase() == waiting.Queued) {
			m.t.Fatalf("%s in phase %d, Redis hears of it: %v", r.Entry, r.Phase(), slices.Contains(queued, r.Entry))
		}
		stand += r.Waiting
		last := int64(0)
		for w := range r.Members() {
			if w.Run != r || w.Number() <= last {
				m.t.Fatalf("%s: waiter %d behind %d", r.Entry, w.Number(), last)
			}
			last = w.Number()
		}
		if r.Phase() == waiting.Over && r.Waiting > 0 {
			m.t.Fatalf("%s is over and has waiters", r.Entry)
		}
		if r.Phase() != waiting.Queued || m.inFlight != nil || m.Due(later) != nil {
			continue
		}
		// What was said of it last is true, if there is nothing more to be said.
		if _, k := m.find(r.Entry); k != nil && k.last < last {
			m.t.Fatalf("Redis counts %s up to %d, and waiter %d stands there", r.Entry, k.last, last)
		}
		if r.Waiting == 0 {
			m.t.Fatalf("%s stands in the line for nobody", r.Entry)
		}
	}
	if stand != len(m.all) {
		m.t.Fatalf("%d stand in runs, %d wait", stand, len(m.all))
	}
}
