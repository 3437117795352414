package engine

import (
	"context"
	"strings"

	"github.com/redis/rueidis"

	"relock/internal/deadlock"
	"relock/internal/inbox"
	"relock/internal/script"
	"relock/pubsub"
)

// SessionChannel is what the name of a session's own channel begins with. ForceUnlock tells
// holders there, and the fair lock its waiters.
const SessionChannel = inbox.Prefix

// told takes a message on the session's own channel. It is called by the hub and must not
// block, nor run code of the caller's.
func (s *Session) told(m pubsub.Message) {
	if m.Missed {
		s.recheck()
		return
	}
	if m.Payload == inbox.Question || s.hearGrant(m.Payload) {
		return
	}
	if strings.HasPrefix(m.Payload, deadlock.Prefix) {
		if err := s.deadlocks.Hear(m.Payload); err != nil {
			s.log.Warn("relock: bad message on the session's channel", "error", err)
		}
		return
	}
	r, ok := inbox.ParseRevocation(m.Payload)
	if !ok {
		s.log.Warn("relock: unknown message on the session's channel", "payload", m.Payload)
		return
	}
	s.revoke(r.Owner, r.Key)
}

// revoke ends the claim of an owner that was force-unlocked. For a private owner that is true
// of its claim, whichever section is open by now. For a named owner Redis is asked, which takes
// one round trip: the message may speak of an earlier hold.
func (s *Session) revoke(owner, key string) {
	for _, l := range s.locks.Find(key, "") {
		l.mu.Lock()
		for c := l.claims; c != nil; {
			next := c.next
			if c.ownerID() == owner {
				switch {
				case c.num == 0:
					c.doubts-- // unlike the session's count
					c.askSoon(s.now())
					if c.state == asking { // then it is asked about when it is granted
						s.redis.Conn.Doubt()
					}
				case c.state == asking:
					c.end(nil) // no section opens on it: the caller asks again
				default:
					c.lose("it was force-unlocked", true)
				}
			}
			c = next
		}
		l.unlockBehind()
	}
}

// ForceUnlock ends every owner's holds of the lock, and tells the sessions that may hold under
// them. force is the script that does it: without owners it changes nothing; else it ends all
// holds if one of those owners has one. Either way it returns the owners that it found.
//
// So a command that arrives late, when other owners have the lock, leaves those alone.
func (h *Handle) ForceUnlock(ctx context.Context, force func(owners []string) script.Command) (bool, error) {
	s := h.s
	if h.err == nil && s.life.Enter() == nil { // if not, Call says why; Close waits for the telling too
		defer s.life.Leave()
	}
	var owners []string
	decode := func(r rueidis.RedisResult) (err error) {
		owners, err = r.AsStrSlice()
		return err
	}
	if err := h.calls.Call(ctx, "force unlock", force(nil), decode); err != nil || len(owners) == 0 {
		return false, err
	}
	if err := h.calls.Call(ctx, "force unlock", force(owners), decode); err != nil {
		return false, err
	}
	for _, owner := range owners {
		s.revoke(owner, h.names.Key())
		// An owner may have been named by the caller, so it is not known which sessions hold under
		// it. Forcing a lock is rare, so it pays with a few commands here and nothing elsewhere. The
		// script has told the session that made the owner already. If Redis does not allow it, the
		// holder learns of it at its next renewal.
		inbox.TellAll(ctx, s.redis.Client, &s.life.Background, inbox.Revocation{Owner: owner, Key: h.names.Key()}.String(), func(err error) {
			s.log.Debug("relock: holders may learn of a forced unlock only at their next renewal", "error", err)
		})
	}
	return len(owners) > 0, nil
}
