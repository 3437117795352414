package engine

import (
	"math/bits"
	"time"

	"relock/internal/waiting"
)

// watch is a round of the session's watchdog: one goroutine that ends what can no longer be
// trusted, has the rest renewed, and sends the heartbeats of fair locks' entries. It never waits for Redis itself,
// nor runs code of the caller's, so that no claim is trusted too long because either hangs. It
// visits the claims that are due, and returns when the next round is to be at the latest.
func (s *Session) watch(now time.Duration) (next time.Duration) {
	ask := map[int][]*claim{} // by the trust that is left: 1 for more than half a lease, 2 for more than a quarter, and so on
	var beats []waiting.Heartbeat[claim, acquisition]
	for c, ok := s.schedule.Due(now); ok; c, ok = s.schedule.Due(now) {
		l := c.lock
		l.mu.Lock()
		c.expire(now)
		if c.account != nil && c.account.Opens {
			c.releaseOpened(now)
		}
		if c.awaits == itsReuse && l.contention.keeper.until <= now {
			l.giveBack()
		}
		if c.state == held && c.renewAt <= now {
			c.renewAt = renewalUnderWay
			// One that ends soon leaves little time for the answers, so it goes with such ones only.
			left := bits.Len64(uint64(s.cfg.Lease / max(1, min(c.trust-now, s.cfg.Lease))))
			ask[left] = append(ask[left], c)
		}
		if c.run != nil && c.state == asking { // entries of the lock that need a heartbeat soon go along
			for _, b := range l.runs.Heartbeats(now+s.cfg.HeartbeatEvery()/2, heartbeatBatch) {
				beats = append(beats, b)
				for _, r := range b {
					r.Of.reschedule()
				}
			}
		}
		c.reschedule()
		l.unlockInBackground()
	}
	for _, claims := range ask {
		s.life.Background.Go(func() { s.renew(claims) })
	}
	if len(beats) > 0 {
		s.life.Background.Go(func() { s.heartbeat(beats) })
	}
	return min(s.redis.Record.Tick(now), s.deadlocks.Seek(now))
}

// renewalUnderWay is the renewAt of a claim while a renewal is under way, so none is scheduled. It stays if the
// answer schedules no other one.
const renewalUnderWay = never - 1

// reschedule sets when the watchdog visits the claim next: never, unless the claim is held, or its run needs a heartbeat.
func (c *claim) reschedule() { c.renewAfter(never) }

// renewAfter has Redis asked about a held claim again after having been asked at a time: a third
// of the lease later, unless it is to be asked sooner. Holds with a fixed lease are not
// prolonged, but asked for, so that a lock that was deleted under them is noticed too; only
// those whose lease another process may cut off are renewed up to their end. Times are rounded
// to a common grid, so that locks taken one by one are renewed together. Then it sets when
// the watchdog visits the claim next, which may also be the end of a hold or of the trust.
func (c *claim) renewAfter(asked time.Duration) {
	s := c.lock.s
	if c.state != held {
		at := never
		if c.run != nil && c.state == asking {
			at = c.run.NextHeartbeat()
		}
		s.schedule.Set(c, at)
		return
	}
	due, lease := c.trust, min(s.cfg.Lease, c.safeLease)
	if c.awaits == itsReuse {
		due = min(due, c.lock.contention.keeper.until)
	}
	// A claim between two sections is renewed for the next; shortest is the shortest fixed lease that
	// is checked.
	renewed, shortest := c.sections == nil, never
	for x := c.sections; x != nil; x = x.next {
		due = min(due, x.holds.Until)
		if x.holds.Nested == nil { // and so no fixed lease
			renewed = true
			continue
		}
		until, d := x.holds.FirstFixed(min(minChecked, lease+1))
		due, shortest = min(due, until, c.opensAt()), min(shortest, d)
		renewed = renewed || x.isRenewed()
	}
	if asked != never && !renewed {
		if lease = min(lease, shortest); shortest == never {
			asked = never
		}
	}
	if asked != never {
		at, grid := asked+lease/3, lease/30
		c.renewAt = min(c.renewAt, max(at-at%grid, asked+lease/6))
	}
	s.schedule.Set(c, min(due, c.renewAt))
}

// minChecked is the shortest fixed lease in the middle of which Redis is asked whether the lock still stands.
const minChecked = 100 * time.Millisecond

// isRenewed reports whether the section has a hold that the watchdog renews.
func (x *section) isRenewed() bool {
	n := x.holds.Nested
	return n == nil || x.holds.Renewed() > 0 || len(n.Fixed) > 0 && !x.claim.noHandOver && x.claim.kind.Shares
}

// recheck has Redis asked about every claim at once: the session was not listening for a
// moment, so it may have missed that one was ended.
func (s *Session) recheck() {
	if s.unheard.Load() != 0 {
		s.hearsItself()
	}
	s.redis.Conn.Doubt()
	for _, l := range s.locks.All() {
		l.mu.Lock()
		for c := l.claims; c != nil; c = c.next {
			c.askSoon(s.now())
			if c.run != nil && c.state == asking {
				c.run.HeartbeatAt = 0
				c.reschedule()
			}
		}
		if l.contention != nil && l.contention.place.Claim != nil {
			l.askAtOnce()
		}
		l.unlockInBackground()
	}
}

// askSoon has Redis asked about a held claim at once; a claim that is asking is asked about as
// soon as it is granted, since the session's count of doubts has changed.
func (c *claim) askSoon(now time.Duration) {
	if c.state == held {
		c.renewAt = min(c.renewAt, now)
		c.reschedule()
	}
}
