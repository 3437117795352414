package deadlock

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// The world of the model: sessions with callers that take locks, hold several, and wait for one
// at a time, and a network that loses messages, delivers them late, twice and in any order.
type world struct {
	t        *testing.T
	r        *rand.Rand
	sessions []*site
	locks    []*mlock
	callers  []*caller
	holds    map[Claim]*hold // that ever were
	post     []letter
	now      time.Duration
	waits    uint64
	depth    int

	lossy    bool // messages are lost, and come twice
	timeouts bool // waits, and what they lie in, end from outside
	ended    int
	trail    []string
}

type letter struct {
	to *site
	m  message
}

// A mlock is held by several readers or by one writer.
type mlock struct {
	key     string
	shared  bool
	holders []*hold
	queue   []*caller
}

type hold struct {
	claim    Claim
	by       *caller
	from, to time.Duration // to: 0 while it stands
}

type caller struct {
	site  *site
	holds []*hold
	wait  *mwait
}

type mwait struct {
	w        Wait
	c        *caller
	lock     *mlock
	shared   bool
	from, to time.Duration
}

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{t: t, r: rand.New(rand.NewPCG(seed, 1)), now: time.Hour, holds: map[Claim]*hold{}}
	for i := range 2 + w.r.IntN(3) {
		s := &site{w: w, id: fmt.Sprint("s", i), history: map[string]*mwait{}}
		s.chaser = newChaser(s)
		w.sessions = append(w.sessions, s)
		for range 1 + w.r.IntN(3) {
			w.callers = append(w.callers, &caller{site: s})
		}
	}
	for i := range 2 + w.r.IntN(3) {
		w.locks = append(w.locks, &mlock{key: fmt.Sprint("k", i)})
	}
	return w
}

func (w *world) note(format string, args ...any) {
	w.trail = append(w.trail, fmt.Sprintf("\n%v: ", w.now)+fmt.Sprintf(format, args...))
}

func (w *world) anyShared() bool {
	return slices.ContainsFunc(w.locks, func(l *mlock) bool { return l.shared })
}

func (w *world) waitOf(id string) *mwait {
	for _, s := range w.sessions {
		if m := s.history[id]; m != nil {
			return m
		}
	}
	return nil
}

// meanwhile lets something happen between two looks of a host.
func (w *world) meanwhile() {
	w.now += time.Duration(w.r.IntN(3)) * time.Millisecond
	if w.depth < 2 && w.r.IntN(4) == 0 {
		w.depth++
		w.act()
		w.depth--
	}
}

// act is one step of a caller.
func (w *world) act() {
	c := w.callers[w.r.IntN(len(w.callers))]
	switch {
	case c.wait != nil:
		if w.timeouts && w.r.IntN(8) == 0 {
			w.note("%s gives up", c.wait.w.ID)
			w.stop(c.wait)
		} else if w.timeouts && len(c.holds) > 0 && w.r.IntN(8) == 0 {
			w.note("%s goes on, but what it lies in is lost", c.wait.w.ID)
			w.release(c, c.holds[0])
		}
	case len(c.holds) > 0 && w.r.IntN(3) == 0:
		w.release(c, c.holds[w.r.IntN(len(c.holds))])
	default:
		w.lock(c, w.locks[w.r.IntN(len(w.locks))])
	}
}

func (w *world) lock(c *caller, l *mlock) {
	if slices.ContainsFunc(c.holds, func(h *hold) bool { return h.claim.Key == l.key }) {
		return
	}
	if shared := l.shared && w.r.IntN(2) == 0; len(l.holders) == 0 || shared && l.readers() {
		w.grant(c, l, shared)
		return
	} else {
		w.waits++
		m := &mwait{c: c, lock: l, shared: shared, from: w.now}
		m.w = Wait{ID: waitID(time.Unix(0, int64(w.now)), c.site.id, w.waits), Session: c.site.id, Key: l.key}
		c.wait, c.site.history[m.w.ID] = m, m
		l.queue = append(l.queue, c)
		w.note("%s waits for %s", m.w.ID, l.key)
		c.site.chaser.Begun(m.w)
	}
}

func (l *mlock) readers() bool {
	return !slices.ContainsFunc(l.holders, func(h *hold) bool { return h.claim.Number%2 == 0 })
}

// grant gives readers' claims odd numbers.
func (w *world) grant(c *caller, l *mlock, shared bool) {
	c.site.claims += 2
	h := &hold{claim: Claim{c.site.id, c.site.claims, l.key}, by: c, from: w.now}
	if shared {
		h.claim.Number++
	}
	w.holds[h.claim] = h
	l.holders, c.holds = append(l.holders, h), append(c.holds, h)
	w.note("%s is granted to %v", l.key, h.claim)
}

func (w *world) stop(m *mwait) {
	m.to, m.c.wait = w.now, nil
	m.lock.queue = slices.DeleteFunc(m.lock.queue, func(c *caller) bool { return c == m.c })
}

func (w *world) release(c *caller, h *hold) {
	h.to = w.now
	c.holds = slices.DeleteFunc(c.holds, func(o *hold) bool { return o == h })
	for _, l := range w.locks {
		if l.key != h.claim.Key {
			continue
		}
		l.holders = slices.DeleteFunc(l.holders, func(o *hold) bool { return o == h })
		w.note("%v is released", h.claim)
		if len(l.holders) == 0 && len(l.queue) > 0 {
			next := l.queue[w.r.IntN(len(l.queue))]
			m := next.wait
			w.stop(m)
			w.grant(next, l, m.shared)
		}
	}
}

// deliver delivers a letter, in any order.
func (w *world) deliver() {
	if len(w.post) == 0 {
		return
	}
	i := w.r.IntN(len(w.post))
	e := w.post[i]
	switch fate := w.r.IntN(10); {
	case w.lossy && fate == 0: // it comes once more
	case w.lossy && fate == 1:
		w.post = slices.Delete(w.post, i, i+1)
		return
	default:
		w.post = slices.Delete(w.post, i, i+1)
	}
	e.to.chaser.Handle(&e.m)
}

func (w *world) seekAll() {
	for _, c := range w.callers {
		if c.wait != nil {
			c.site.chaser.Seek(c.wait.w)
		}
	}
}

// stuck reports whether a caller waits, for whom no running one can do anything.
func (w *world) stuck() bool {
	free := map[*caller]bool{}
	for again := true; again; {
		again = false
		for _, c := range w.callers {
			ok := c.wait == nil
			if !ok {
				ok = !slices.ContainsFunc(c.wait.lock.holders, func(h *hold) bool { return !free[h.by] })
			}
			if ok && !free[c] {
				free[c], again = true, true
			}
		}
	}
	return len(free) < len(w.callers)
}
