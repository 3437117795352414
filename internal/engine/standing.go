package engine

import (
	"sync"
	"sync/atomic"
	"time"
)

// standing is what a session knows of claims that are over and may stand in Redis. It is not guarded by their locks'
// mutexes, for these may have left the registry meanwhile.
type standing struct {
	private, lost expiring
}

// noteStanding notes a claim that was lost, or left to its lease.
func (c *claim) noteStanding(to claimState) {
	s, now := c.lock.s, c.lock.s.now()
	if c.kind.Lines && c.num != 0 { // a late message for its entry must not end it
		s.standing.private.note(c.num, c.latestEnd(now), now)
	}
	if to == lostStanding { // its sections may not have been unlocked when the session closes
		s.standing.lost.note(c, c.latestEnd(now), now)
	}
}

// releaseLost releases what may stand of the claims that were lost, and whose sections are not unlocked yet: Close waits
// for no Unlock.
func (s *Session) releaseLost() {
	now := s.now()
	s.standing.lost.of.Range(func(key, until any) bool {
		c := key.(*claim)
		c.lock.mu.Lock()
		switch {
		case c.state != lostStanding || until.(time.Duration) < now: // Redis has nothing of it
		case c.trust <= now && now < c.trust+time.Second:
			// The rest of its lease is its callers' time to notice, a second at most; see trustIn.
		default:
			c.endBy(now+s.cfg.ReleaseTimeout, nil)
		}
		c.lock.unlock()
		return true
	})
}

// expiring are things that are over by themselves at some time, each at its own.
type expiring struct {
	of    sync.Map
	swept atomic.Int64 // when those that were over were removed last
}

// note notes until when something lasts. Those that are over are removed once in a while, for a session may
// lose a great many claims at once.
func (e *expiring) note(key any, until, now time.Duration) {
	if last := e.swept.Load(); now-time.Duration(last) >= time.Second && e.swept.CompareAndSwap(last, int64(now)) {
		e.of.Range(func(other, end any) bool {
			if end.(time.Duration) < now {
				e.of.Delete(other)
			}
			return true
		})
	}
	e.of.Store(key, until)
}

// lasts reports whether something was noted that is not over yet.
func (e *expiring) lasts(key any, now time.Duration) bool {
	until, ok := e.of.Load(key)
	return ok && now < until.(time.Duration)
}
