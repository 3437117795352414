package engine

import (
	"context"

	"relock/internal/kind"
	"relock/internal/script"
)

// revoke ends the claim of an owner that was force-unlocked. The claim of a private owner
// is lost, whichever section is open by now. For a named owner Redis is asked, which takes one round
// trip: the message may concern an earlier hold.
func (s *Session) revoke(owner, key string) {
	for _, l := range s.locks.Find("", key) {
		l.mu.Lock()
		for c := l.claims; c != nil; {
			next := c.next
			if c.ownerID() == owner {
				switch {
				case c.num == 0:
					c.doubts-- // unlike the session's count of doubts
					c.askSoon(s.now())
					if c.state == asking { // then it is asked about when it is granted
						s.redis.Conn.Doubt()
					}
				case c.state == asking:
					c.end(nil) // no section opens on it: the caller asks again
					l.askAtOnce()
				default:
					c.lose("it was force-unlocked", true)
				}
			}
			c = next
		}
		l.unlockInBackground()
	}
}

// ForceUnlock ends every owner's holds of the lock, and informs the sessions that may hold under
// them; force is as for [calls.Handle.ForceUnlock].
func (h *Handle) ForceUnlock(ctx context.Context, force func(*kind.Force) script.Command) (bool, error) {
	s := h.s
	if h.err == nil && s.life.Enter() == nil { // if not, the call says why; Close waits for the messages too
		defer s.life.Leave()
	}
	owners, err := h.calls.ForceUnlock(ctx, force)
	for _, owner := range owners {
		s.revoke(owner, h.names.Key())
		s.redis.Revoke(ctx, owner, h.names.Key())
	}
	return len(owners) > 0, err
}
