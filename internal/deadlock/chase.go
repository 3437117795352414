package deadlock

import (
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// A host is what one session knows. Its methods are called without any mutex.
type host interface {
	// Owns reports whether that is the session itself.
	Owns(session string) bool
	// Waits returns the waits that last and lie in an open section of a claim of the session;
	// none if the claim does not hold its lock any more.
	Waits(c Claim) []Wait
	// Holders returns the claims that keep a wait out now, of all sessions if ask is set, which
	// may take a round trip, else those that the session itself knows. There are none if the
	// wait is over, or if what keeps it out is no claim of a session.
	Holders(w Wait, ask bool) []Claim
	// Tell sends a message to a session, through the session that w waits in.
	Tell(w Wait, session string, m *message)
	// End ends a wait, if it still lasts.
	End(w Wait, c Cycle)
	// Now is a monotonic clock.
	Now() time.Duration
}

// confirmedFor is how old the first of the confirmations of a cycle may be when it is ended: a
// wait of the cycle that has ended since then may still cost the victim.
const confirmedFor = 500 * time.Millisecond

// A chaser looks for cycles on behalf of one session.
type chaser struct {
	host host

	mu         sync.Mutex
	seen       map[visit]bool           // where searches have been
	confirming map[uint64]time.Duration // when confirmations began, by their nonces
	hinted     map[string]time.Duration // when waits were last told to seek, by their ids
}

type visit struct {
	nonce uint64
	claim Claim
}

// maxSeen bounds what a chaser remembers of searches. One that is forgotten is followed twice.
const maxSeen = 4096

// hintEvery is how often a wait may be told to seek.
const hintEvery = confirmedFor / 2

// newChaser returns the chaser of a session.
func newChaser(h host) *chaser {
	return &chaser{host: h, seen: map[visit]bool{}, confirming: map[uint64]time.Duration{}, hinted: map[string]time.Duration{}}
}

// Begun looks for a cycle that a wait has closed by its beginning, as far as the session itself
// knows, and ends it.
func (d *chaser) Begun(w Wait) {
	c := d.search(w, w, nil, map[Claim]bool{})
	if c == nil {
		return
	}
	for i, s := range c { // they were not seen at one time
		if before := c[(i+len(c)-1)%len(c)].Holder; !d.lies(s.Wait, before) || !slices.Contains(d.host.Holders(s.Wait, false), s.Holder) {
			return
		}
	}
	v := c.victim()
	d.host.End(c[v].Wait, c.from(v))
}

// search returns the path from w on that leads to a claim in which the first wait lies.
func (d *chaser) search(first, w Wait, path Cycle, been map[Claim]bool) Cycle {
	if len(path) == maxSteps {
		return nil
	}
	for _, c := range d.host.Holders(w, false) {
		if been[c] {
			continue
		}
		been[c] = true
		on := append(path[:len(path):len(path)], Step{w, c})
		for _, next := range oneEach(d.host.Waits(c), first.ID) {
			if next.ID == first.ID {
				return on
			}
			if found := d.search(first, next, on, been); found != nil {
				return found
			}
		}
	}
	return nil
}

// lies reports whether a wait lasts and lies in a section of a claim of this session.
func (d *chaser) lies(w Wait, c Claim) bool {
	return slices.ContainsFunc(d.host.Waits(c), func(o Wait) bool { return o.ID == w.ID })
}

// Seek looks for a cycle that a lock is part of for which w waits. It may take round trips.
func (d *chaser) Seek(w Wait) { d.follow(&message{kind: seek, nonce: rand.Uint64()}, w) }

// follow carries a search from a wait on to the claims that it waits for.
func (d *chaser) follow(m *message, w Wait) {
	if len(m.steps) == maxSteps {
		return
	}
	for _, c := range d.host.Holders(w, true) {
		on := *m
		on.steps = append(m.steps[:len(m.steps):len(m.steps)], Step{w, c})
		d.pass(w, c, &on)
	}
}

// pass carries a message to the session of a claim that w waits for.
func (d *chaser) pass(w Wait, c Claim, m *message) {
	if d.host.Owns(c.Session) {
		d.Handle(m)
		return
	}
	d.host.Tell(w, c.Session, m)
}

// Handle takes a message. It may take round trips.
func (d *chaser) Handle(m *message) {
	switch m.kind {
	case seek:
		d.sought(m)
	case hint:
		if w := m.steps[0].Wait; d.mayHint(w) {
			d.Seek(w)
		}
	case confirm:
		d.confirmed(m)
	}
}

// sought goes on with a search at the claim to which it leads.
func (d *chaser) sought(m *message) {
	c := m.steps[len(m.steps)-1].Holder
	if !d.host.Owns(c.Session) || !d.visits(m.nonce, c) {
		return
	}
	for _, w := range oneEach(d.host.Waits(c), "") {
		switch {
		case w.beside(m.steps[0].Wait):
			cycle := slices.Clone(m.steps)
			cycle[0].Wait = w // which of the session's waits for the lock it is
			d.found(cycle)
		case !slices.ContainsFunc(m.steps, func(s Step) bool { return w.beside(s.Wait) }):
			d.follow(m, w)
		}
	}
}

// visits notes that a search is at a claim, and reports whether it is there for the first time.
func (d *chaser) visits(nonce uint64, c Claim) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	v := visit{nonce, c}
	if d.seen[v] {
		return false
	}
	if len(d.seen) >= maxSeen {
		clear(d.seen)
	}
	d.seen[v] = true
	return true
}

// found has a cycle confirmed if the wait that has sought is the one to end; else that one is to
// seek. So one session alone decides on a cycle, and has done so last.
func (d *chaser) found(c Cycle) {
	if v := c.victim(); v != 0 {
		m := &message{kind: hint, steps: Cycle{c[v]}}
		d.pass(c[0].Wait, Claim{Session: c[v].Wait.Session}, m)
		return
	}
	nonce := rand.Uint64()
	d.mu.Lock()
	now := d.host.Now()
	maps.DeleteFunc(d.confirming, func(_ uint64, began time.Duration) bool { return now-began >= confirmedFor })
	d.confirming[nonce] = now
	d.mu.Unlock()
	d.confirmStep(&message{kind: confirm, nonce: nonce, steps: c})
}

// confirmStep looks whether the wait of the next step still waits for its claim, and has the
// session of that claim go on.
func (d *chaser) confirmStep(m *message) {
	s := m.steps[m.at]
	if slices.Contains(d.host.Holders(s.Wait, true), s.Holder) {
		on := *m
		on.at++
		d.pass(s.Wait, s.Holder, &on)
	}
}

// confirmed goes on with a confirmation at the claim to which it leads: the wait of the next
// step must still lie in it.
func (d *chaser) confirmed(m *message) {
	next := m.steps[m.at%len(m.steps)].Wait
	if c := m.steps[m.at-1].Holder; !d.host.Owns(c.Session) || !d.lies(next, c) {
		return
	}
	if m.at < len(m.steps) {
		d.confirmStep(m)
		return
	}
	d.mu.Lock()
	began, known := d.confirming[m.nonce]
	delete(d.confirming, m.nonce)
	d.mu.Unlock()
	if known && d.host.Now()-began < confirmedFor {
		d.host.End(next, m.steps)
	}
}

// mayHint notes that a wait is told to seek, and reports whether it was not just before.
func (d *chaser) mayHint(w Wait) bool {
	now := d.host.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	if at, ok := d.hinted[w.ID]; ok && now-at < hintEvery {
		return false
	}
	maps.DeleteFunc(d.hinted, func(_ string, at time.Duration) bool { return now-at >= hintEvery })
	d.hinted[w.ID] = now
	return true
}
