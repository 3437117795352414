package rlock

import (
	"context"
	"strconv"
	"strings"

	"relock/internal/idgen"
	"relock/pubsub"
)

// revoked takes a message on the session's own channel. It is called by the hub and
// must not block.
func (s *Session) revoked(m pubsub.Message) {
	if m.Missed {
		s.recheck()
		return
	}
	owner, key, ok := parseRevocation(m.Payload)
	if !ok {
		s.log.Warn("relock: unknown message on the session's channel", "payload", m.Payload)
		return
	}
	s.revokeOwner(owner, key)
}

func (s *Session) revokeOwner(owner, key string) {
	s.mu.Lock()
	defer s.unlock()
	t := s.held[tenureKey{key, owner}]
	if t == nil || t.state != holding || t.live() == 0 {
		return
	}
	t.lose("it was force-unlocked")
}

// A revocation is "lost:<length of owner>:<owner><key>"; force_unlock.lua makes it.
func parseRevocation(payload string) (owner, key string, ok bool) {
	rest, ok := strings.CutPrefix(payload, "lost:")
	length, rest, ok2 := strings.Cut(rest, ":")
	n, err := strconv.Atoi(length)
	if !ok || !ok2 || err != nil || n < 0 || n > len(rest) {
		return "", "", false
	}
	return rest[:n], rest[n:], true
}

func revocation(owner, key string) string {
	return "lost:" + strconv.Itoa(len(owner)) + ":" + owner + key
}

// ForceUnlock runs a script of force_unlock.lua's shape for p; see
// [Mutex.ForceUnlock].
func (s *Session) ForceUnlock(ctx context.Context, p Primitive, cmd func(sessionChannel string) Command) (bool, error) {
	var owners []string
	err := s.ask(ctx, "force unlock", p, func() (err error) {
		owners, err = s.run(ctx, cmd(sessionChannel)).AsStrSlice()
		return err
	})
	if err != nil {
		return false, err
	}
	for _, owner := range owners {
		s.revokeOwner(owner, p.Key())
		if _, ok := idgen.SessionOf(owner); !ok {
			s.tellEverybody(ctx, revocation(owner, p.Key()))
		}
	}
	return len(owners) > 0, nil
}

// tellEverybody sends a message to every session: of an owner that was named nobody
// knows which session it belongs to. Force-unlocking one is rare, so it pays with
// two commands here and nothing elsewhere. If Redis does not allow it, the holder
// learns of it at its next renewal.
func (s *Session) tellEverybody(ctx context.Context, payload string) {
	seen := make(map[string]bool)
	for _, node := range s.client.Nodes() {
		channels, err := node.Do(ctx, node.B().PubsubChannels().Pattern(sessionChannel+"*").Build()).AsStrSlice()
		if err != nil {
			s.log.Debug("relock: PUBSUB CHANNELS failed; holders learn of a forced unlock at their next renewal", "error", err)
			continue
		}
		for _, c := range channels {
			if seen[c] {
				continue
			}
			seen[c] = true
			if err := s.client.Do(ctx, s.client.B().Publish().Channel(c).Message(payload).Build()).Error(); err != nil {
				s.log.Debug("relock: PUBLISH failed", "channel", c, "error", err)
			}
		}
	}
}

// ask runs a query, or a script that may run twice, until it is answered, ctx ends,
// or the release timeout is over.
func (s *Session) ask(ctx context.Context, op string, p Primitive, fn func() error) error {
	if err := s.enter(); err != nil {
		return opError(op, p, err)
	}
	defer s.leave()
	if err := ctx.Err(); err != nil {
		return opError(op, p, ctxError(ctx))
	}
	until := s.now() + s.cfg.ReleaseTimeout
	for n := 0; ; n++ {
		err := fn()
		if err == nil {
			return nil
		}
		if classify(err) == refused || ctx.Err() != nil || s.now() >= until || pause(ctx, n) != nil {
			return opError(op, p, err)
		}
	}
}
