package waiting_test

import (
	"container/heap"
	"math/rand/v2"
	"testing"
	"time"

	"relock/internal/waiting"
)

// A model of sessions that take turns with one lock, in made-up time: each has callers enough for
// whole slices, sends attempts and hears releases over a network, and sometimes wakes up late.

const trip = 150 * time.Microsecond // of a command

type queueModel struct {
	now    time.Duration
	next   events
	random *rand.Rand
	stalls float64 // how often a session wakes up to 4 ms late
	all    []*taker
	holder *taker // as Redis sees it
	held   time.Duration
}

type taker struct {
	turns  waiting.Turns
	waits  bool // has callers that want the lock; else it only listens
	inside bool
	asks   int // of them only the latest counts
	ended  time.Duration
	waited []time.Duration // between its slices
}

type event struct {
	at time.Duration
	do func()
}

type events []event

func (e events) Len() int           { return len(e) }
func (e events) Less(i, j int) bool { return e[i].at < e[j].at }
func (e events) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)        { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

func (m *queueModel) after(d time.Duration, do func()) { heap.Push(&m.next, event{m.now + d, do}) }

// ask sends an attempt when the session does not leave the lock to others any more.
func (m *queueModel) ask(s *taker) {
	s.asks++
	mine := s.asks
	wait := s.turns.Yielded() - m.now
	if wait > 0 { // an idle process sleeps for whole milliseconds
		wait = max(wait, time.Millisecond)
	}
	m.after(max(0, wait), func() {
		switch {
		case mine != s.asks || s.inside:
			return
		case s.turns.Yielded() > m.now:
			m.ask(s)
			return
		}
		s.turns.Asked()
		m.after(trip/2, func() {
			if m.holder == nil {
				m.holder, s.inside = s, true
				m.after(trip/2, func() { m.slice(s) })
				return
			}
			m.after(trip/2, func() {
				if !s.inside && !s.turns.Expecting {
					s.turns.Taken()
				}
			})
		})
	})
}

// slice is that of a session that was granted the lock.
func (m *queueModel) slice(s *taker) {
	began := m.now
	s.waited = append(s.waited, began-s.ended)
	end := s.turns.Begin(m.now)
	s.turns.Pass(m.now, end, 0)
	m.after(end-m.now, func() {
		m.held += m.now - began
		m.release(s)
	})
}

func (m *queueModel) release(s *taker) {
	s.turns.Pass(m.now, m.now, 0)
	s.turns.Expect(m.now)
	s.ended, s.inside = m.now, false
	m.ask(s)
	m.after(m.late(trip/2), func() {
		m.holder = nil
		for _, o := range m.all {
			m.after(m.wakeUp(), func() {
				if !o.inside && o.turns.Heard(m.now) && o.waits {
					m.ask(o)
				}
			})
		}
		m.after(m.late(trip/2), func() {
			s.turns.Released(m.now, m.now-s.ended, int64(len(m.all)-1))
			m.ask(s)
		})
	})
}

// wakeUp is how long a message takes until the session acts on it.
func (m *queueModel) wakeUp() time.Duration {
	return m.late(60*time.Microsecond + time.Duration(m.random.IntN(60))*time.Microsecond)
}

// late returns d, and some more if the session wakes up late.
func (m *queueModel) late(d time.Duration) time.Duration {
	if m.random.Float64() < m.stalls {
		d += time.Duration(m.random.IntN(4000)) * time.Microsecond
	}
	return d
}

// run has so many sessions of n want the lock for a minute.
func (m *queueModel) run(n, waiting int) {
	m.random = rand.New(rand.NewPCG(1, 2))
	for i := range n {
		m.all = append(m.all, &taker{waits: i < waiting})
	}
	for _, s := range m.all[:waiting] {
		m.ask(s)
	}
	for m.now < time.Minute {
		e := heap.Pop(&m.next).(event)
		m.now = e.at
		e.do()
	}
}

// Sessions that want the lock have it by turns, most of the time, and no turn is missed for long,
// even if sessions wake up late now and then, and if others listen that want nothing. Four that all
// want it wait for 60 ms at most, but for a few waits when they wake up late all the time.
func TestSessionsTakeTurns(t *testing.T) {
	for _, c := range []struct {
		n, waiting int
		stalls     float64
		held       float64       // of the time, at least
		late       float64       // of the waits are longer than two turns of all others, at most
		most       time.Duration // that at most three waits exceed; 0: any
	}{
		{2, 2, 0, 0.96, 0, 11 * time.Millisecond},
		{2, 2, 0.05, 0.95, 0.045, 0},
		{4, 4, 0, 0.96, 0, 32 * time.Millisecond},
		{4, 4, 0.01, 0.96, 0.0005, 60 * time.Millisecond},
		{4, 4, 0.05, 0.94, 0.002, 80 * time.Millisecond},
		{4, 3, 0.05, 0.86, 0.035, 60 * time.Millisecond},
		{8, 8, 0.05, 0.93, 0.0006, 0},
		{8, 2, 0.05, 0.82, 0.06, 60 * time.Millisecond},
	} {
		m := queueModel{stalls: c.stalls}
		m.run(c.n, c.waiting)
		late, long, most, least, waits := 0, 0, 0, 1<<30, 0
		for _, s := range m.all[:c.waiting] {
			for _, w := range s.waited {
				if w > time.Duration(2*(c.waiting-1))*waiting.Slice {
					late++
				}
				if c.most > 0 && w > c.most {
					long++
				}
			}
			waits += len(s.waited)
			most, least = max(most, len(s.waited)), min(least, len(s.waited))
		}
		held, part := float64(m.held)/float64(m.now), float64(late)/float64(waits)
		t.Logf("%d of %d, %v: held %.3f, late %.4f, %d longer than %v, slices %d to %d",
			c.waiting, c.n, c.stalls, held, part, long, c.most, least, most)
		if held < c.held || part > c.late || long > 3 || float64(least) < 0.9*float64(most) {
			t.Errorf("%d of %d, %v stalls: held %.3f (want %v), %.4f wait long (want %v), %d of %d for more than %v, %d to %d slices",
				c.waiting, c.n, c.stalls, held, c.held, part, c.late, long, waits, c.most, least, most)
		}
	}
}
