package engine

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"relock/internal/deadlock"
)

// host is what a session is for package deadlock.
type host Session

var _ deadlock.Host = (*host)(nil)

func (h *host) Owns(session string) bool { return session == h.id }
func (h *host) Now() time.Duration       { return (*Session)(h).now() }

// claimOf returns the claim if it holds its lock, and nil otherwise.
func (h *host) claimOf(c deadlock.Claim) *claim {
	for _, l := range h.registry.find(c.Key) {
		l.mu.Lock()
		for o := l.claims; o != nil; o = o.next {
			if o.num == c.Number && o.holds() {
				l.mu.Unlock()
				return o
			}
		}
		l.mu.Unlock()
	}
	return nil
}

// holds reports whether the claim of a private owner holds its lock until a section ends.
func (c *claim) holds() bool { return c.num != 0 && c.state == held && c.sections != nil }

func (h *host) Waits(of deadlock.Claim) (waits []deadlock.Wait) {
	c := h.claimOf(of)
	if c == nil {
		return nil
	}
	w := &h.deadlocks
	w.mu.Lock()
	all := slices.Collect(maps.Keys(w.inside[c]))
	w.mu.Unlock()
	for _, x := range all {
		open := slices.ContainsFunc(x.sections, func(in *section) bool { return in.claim == c && !in.over() })
		if open && x.lasts() {
			waits = append(waits, x.wait)
		}
	}
	return waits
}

// lasts reports whether the caller waits. The mutex of its lock must not be held.
func (x *suspect) lasts() bool {
	x.lock.mu.Lock()
	defer x.lock.mu.Unlock()
	return x.waits()
}

// waits is lasts with the mutex held.
func (x *suspect) waits() bool {
	return !x.over && x.a.queued && x.a.given.Load() == nil && x.a.hopeless == nil
}

// find returns the suspect of a wait; nil if it is over.
func (h *host) find(wait deadlock.Wait) *suspect {
	w := &h.deadlocks
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.waits[wait.ID]
}

func (h *host) Holders(wait deadlock.Wait, ask bool) []deadlock.Claim {
	x := h.find(wait)
	if x == nil {
		return nil
	}
	l := x.lock
	l.mu.Lock()
	if !x.waits() {
		l.mu.Unlock()
		return nil
	}
	prim := x.a.prim
	exclusive := prim.Kind().Exclusive
	var holders []deadlock.Claim
	for c := l.claims; c != nil; c = c.next {
		if c.holds() && (exclusive || c.excludes()) {
			holders = append(holders, deadlock.Claim{Session: l.s.id, Number: c.num, Key: l.Key()})
		}
	}
	known := l.holder != nil // no other session has it
	l.mu.Unlock()
	b, can := prim.(Blocker)
	if !ask || known || !can || l.s.life.silent.Load() {
		return holders
	}
	ctx, cancel := context.WithTimeout(l.s.life.closing, lookTimeout)
	defer cancel()
	fields, err := l.s.client.Do(ctx, l.s.client.B().Hgetall().Key(l.Key()).Build()).AsStrMap()
	if err != nil || !x.lasts() {
		return nil
	}
	for _, owner := range b.Blockers(fields) {
		c, ok := deadlock.ParseClaim(owner, l.Key())
		if ok && !slices.Contains(holders, c) && len(holders) < maxHolders {
			holders = append(holders, c)
		}
	}
	return holders
}

func (h *host) Tell(wait deadlock.Wait, session string, m *deadlock.Message) {
	x := h.find(wait)
	payload, ok := m.Encode()
	if x == nil || !ok || x.lock.s.life.silent.Load() {
		return
	}
	s := x.lock.s
	ctx, cancel := context.WithTimeout(s.life.closing, lookTimeout)
	defer cancel()
	// One that is lost is made up for by the next search.
	err := s.client.Do(ctx, s.client.B().Publish().Channel(SessionChannel+session).Message(payload).Build()).Error()
	if err != nil {
		s.notify(func() { s.cfg.Logger.Debug("relock: a search for a deadlock has ended early", "error", err) })
	}
}

func (h *host) End(wait deadlock.Wait, c deadlock.Cycle) {
	x := h.find(wait)
	if x == nil {
		return
	}
	l := x.lock
	l.mu.Lock()
	defer l.unlockBehind()
	if !x.waits() {
		return
	}
	x.a.hopeless = fmt.Errorf("%w: %w: %s", ErrNotAcquired, ErrDeadlock, c)
	wakeUp(x.a.wake)
	name, text := x.a.prim.Names().Name(), c.String()
	l.s.notify(func() { l.s.cfg.Logger.Warn("relock: deadlock; this Lock ends", "name", name, "cycle", text) })
}
