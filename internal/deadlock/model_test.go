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

// A site is one session, and its host.
type site struct {
	w       *world
	id      string
	claims  uint64
	chaser  *chaser
	history map[string]*mwait // by id
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

func (s *site) Owns(session string) bool { return session == s.id }
func (s *site) Now() time.Duration       { return s.w.now }

func (s *site) Waits(c Claim) (waits []Wait) {
	s.w.meanwhile()
	if c.Session != s.id {
		s.w.t.Fatalf("%s is asked about a claim of %s", s.id, c.Session)
	}
	for _, by := range s.w.callers {
		for _, h := range by.holds {
			if h.claim == c && by.wait != nil {
				waits = append(waits, by.wait.w)
			}
		}
	}
	return waits
}

func (s *site) Holders(of Wait, ask bool) (claims []Claim) {
	s.w.meanwhile()
	m := s.history[of.ID]
	if m == nil || m.to != 0 {
		return nil
	}
	for _, h := range m.lock.holders {
		if ask || h.claim.Session == s.id {
			claims = append(claims, h.claim)
		}
	}
	return claims
}

func (s *site) Tell(of Wait, session string, m *message) {
	if s.history[of.ID] == nil {
		s.w.t.Fatalf("%s sends on behalf of %v", s.id, of)
	}
	text, ok := m.encode()
	parsed, err := parse(text)
	if !ok || err != nil {
		s.w.t.Fatal(text, err)
	}
	for _, to := range s.w.sessions {
		if to.id == session {
			s.w.post = append(s.w.post, letter{to, parsed})
		}
	}
}

// End checks the cycle: all its steps were true together, a short while ago at most. If nothing
// but deadlocks ends waits, they still are.
func (s *site) End(of Wait, c Cycle) {
	w := s.w
	m := s.history[of.ID]
	if m == nil {
		w.t.Fatalf("%s is to end %v", s.id, of)
	}
	if m.to != 0 {
		return
	}
	from, to := time.Duration(0), w.now
	for i, st := range c {
		before := c[(i+len(c)-1)%len(c)].Holder
		x := w.waitOf(st.Wait.ID)
		lies, holds := w.holds[before], w.holds[st.Holder]
		if x == nil || lies == nil || holds == nil || lies.by != x.c || holds.claim.Key != x.lock.key {
			w.t.Fatalf("a step was never true: %+v\n%v", st, w.trail)
		}
		for _, stretch := range [][2]time.Duration{{x.from, x.to}, {lies.from, lies.to}, {holds.from, holds.to}} {
			from = max(from, stretch[0])
			if stretch[1] != 0 {
				to = min(to, stretch[1])
			}
		}
		if st.Wait.ID > of.ID {
			w.t.Fatalf("the victim %v is not the youngest of %v", of, c)
		}
	}
	switch {
	case from > to, to < w.now-confirmedFor:
		w.t.Fatalf("no deadlock: all steps were true from %v to %v, now is %v: %v\n%v", from, to, w.now, c, w.trail)
	case to < w.now && !w.timeouts && !w.anyShared():
		w.t.Fatalf("a deadlock that ended at %v has a victim at %v: %v\n%v", to, w.now, c, w.trail)
	}
	w.ended++
	w.note("%s ends %s", s.id, c)
	w.stop(m)
	for len(m.c.holds) > 0 { // the victim unlocks what it holds
		w.release(m.c, m.c.holds[0])
	}
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

// A deadlock that is found by a search of an older wait ends the youngest nevertheless.
func TestTheYoungestIsTold(t *testing.T) {
	w := &world{t: t, r: rand.New(rand.NewPCG(1, 1)), now: time.Hour, holds: map[Claim]*hold{}, depth: 9}
	for i := range 3 {
		s := &site{w: w, id: fmt.Sprint("s", i), history: map[string]*mwait{}}
		s.chaser = newChaser(s)
		w.sessions, w.callers = append(w.sessions, s), append(w.callers, &caller{site: s})
		w.locks = append(w.locks, &mlock{key: fmt.Sprint("k", i)})
		w.lock(w.callers[i], w.locks[i])
	}
	for i, c := range w.callers {
		w.now += time.Second
		w.lock(c, w.locks[(i+1)%3])
	}
	oldest := w.callers[0]
	oldest.site.chaser.Seek(oldest.wait.w)
	for len(w.post) > 0 {
		w.deliver()
	}
	if w.ended != 1 || w.callers[2].wait != nil || w.callers[0].wait == nil || w.callers[1].wait != nil {
		t.Errorf("%d victims:\n%v", w.ended, w.trail)
	}
}

// In random worlds each victim's deadlock is one, the youngest of the cycle ends, and when
// messages arrive again no deadlock is left.
func TestRandomWorlds(t *testing.T) {
	worlds, ended := 1000, 0
	if testing.Short() {
		worlds = 300
	}
	for seed := range worlds {
		w := newWorld(t, uint64(seed))
		w.lossy, w.timeouts = seed&1 != 0, seed&2 != 0
		for _, l := range w.locks {
			l.shared = seed&4 != 0
		}
		for range 150 {
			w.now += time.Duration(w.r.IntN(50)) * time.Millisecond
			switch w.r.IntN(4) {
			case 0:
				w.act()
			case 1:
				if c := w.callers[w.r.IntN(len(w.callers))]; c.wait != nil {
					c.site.chaser.Seek(c.wait.w)
				}
			default:
				w.deliver()
			}
		}
		w.lossy, w.timeouts, w.depth = false, false, 9 // nothing else happens from here on
		for range 20 {
			w.now += time.Second
			w.seekAll()
			for len(w.post) > 0 {
				w.deliver()
			}
		}
		if w.stuck() {
			t.Fatalf("world %d: a deadlock is left\n%v", seed, w.trail)
		}
		ended += w.ended
	}
	t.Logf("%d victims in %d worlds", ended, worlds)
	if ended < worlds/10 {
		t.Error("there were hardly any deadlocks")
	}
}
