package rlock

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"relock/pubsub"
)

// revoked takes a message on the session's own channel. It is called by the hub and
// must not block.
func (s *Session) revoked(m pubsub.Message) {
	if m.Missed {
		s.recheck()
		return
	}
	if s.gotTurn(m.Payload) {
		return
	}
	owner, key, ok := parseRevocation(m.Payload)
	if !ok {
		s.log.Warn("relock: unknown message on the session's channel", "payload", m.Payload)
		return
	}
	s.revokeOwner(owner, key)
}

// revokeOwner ends the tenure of an owner that was force-unlocked. Where the message may
// speak of an earlier tenure (the owner is known to others, or is just being let in),
// Redis is asked instead, which takes one round trip.
func (s *Session) revokeOwner(owner, key string) {
	s.mu.Lock()
	defer s.unlock()
	for t := range s.pending {
		if t.owner.id == owner && t.prim.Key() == key {
			s.doubt(t)
		}
	}
	t := s.held[tenureKey{key, owner}]
	if t != nil && t.state == ended && t.transfer != nil && t.transfer.cur != nil {
		t = t.transfer.cur // who has the lock that Redis still knows by that owner
	}
	switch {
	case t == nil || t.state != holding || t.live() == 0:
	case t.parts[0].first || t.parts[1].first:
		t.lose("it was force-unlocked")
	default:
		s.doubt(t)
	}
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

// SessionChannel returns the name of a session's own channel, as scripts need it that
// tell sessions something.
func SessionChannel(id string) string { return sessionChannel + id }

// ForceUnlock runs a script of force_unlock.lua's shape for p; see
// [Mutex.ForceUnlock].
func (s *Session) ForceUnlock(ctx context.Context, p Primitive, cmd func(sessionChannel string) Command) (bool, error) {
	if s.enter() == nil { // if not, Call says why; Close waits for the telling too
		defer s.leave()
	}
	var owners []string
	err := s.Call(ctx, "force unlock", p, cmd(sessionChannel), func(r rueidis.RedisResult) (err error) {
		owners, err = r.AsStrSlice()
		return err
	})
	if err != nil {
		return false, err
	}
	for _, owner := range owners {
		s.revokeOwner(owner, p.Key())
		s.tellEverybody(ctx, revocation(owner, p.Key()))
	}
	return len(owners) > 0, nil
}

// tellEverybody sends a message to every session: an owner's id may have been given by
// the caller, or passed on, so nobody knows which sessions hold under it. Forcing a
// lock is rare, so it pays with a few commands here and nothing elsewhere. The script
// has told the session that made the owner already. If Redis does not allow it, the holder
// learns of it at its next renewal.
func (s *Session) tellEverybody(ctx context.Context, payload string) {
	ctx, cancel := context.WithTimeout(ctx, tellTimeout)
	defer cancel()
	nodes := s.client.Nodes()
	told := make(chan error, len(nodes))
	for _, node := range nodes {
		s.background.Go(func() { told <- tellNode(ctx, node, payload) })
	}
	for range nodes {
		select {
		case err := <-told:
			if err != nil {
				s.log.Debug("relock: holders may learn of a forced unlock only at their next renewal", "error", err)
			}
		case <-ctx.Done(): // rueidis may take longer than that to give up on a node
			return
		}
	}
}

// tellTimeout bounds the telling: a node that is dead has no sessions to tell.
const tellTimeout = time.Second

// tellNode sends payload to the sessions that listen at one node.
func tellNode(ctx context.Context, node rueidis.Client, payload string) error {
	// Not by its own builder: rueidis would repeat a read until ctx ends.
	channels, err := node.Do(ctx, node.B().Arbitrary("PUBSUB", "CHANNELS", sessionChannel+"*").Build()).AsStrSlice()
	if err != nil || len(channels) == 0 {
		return err
	}
	cmds := make(rueidis.Commands, len(channels))
	for i, c := range channels {
		cmds[i] = node.B().Publish().Channel(c).Message(payload).Build()
	}
	var errs error
	for _, r := range node.DoMulti(ctx, cmds...) {
		errs = errors.Join(errs, r.Error())
	}
	return errs
}

// Call runs a script of p that may run twice, until decode accepts its reply, Redis
// refuses it for good, ctx ends, or the release timeout is over. Errors: [ErrClosed],
// ctx's error if it was done before (nothing was sent), else decode's, all with op and
// the lock's name in front.
func (s *Session) Call(ctx context.Context, op string, p Primitive, c Command, decode func(rueidis.RedisResult) error) error {
	if err := s.enter(); err != nil {
		return opError(op, p, err)
	}
	defer s.leave()
	if ctx == nil {
		return opError(op, p, fmt.Errorf("%w: ctx is nil; use context.Background()", ErrArgument))
	}
	if err := ctx.Err(); err != nil {
		return opError(op, p, ctxError(ctx))
	}
	bounded, cancel := context.WithTimeout(ctx, s.cfg.ReleaseTimeout)
	defer cancel()
	for n := 0; ; n++ {
		err := decode(s.run(bounded, c))
		switch {
		case err == nil:
			return nil
		case classify(err) == refused || ctx.Err() != nil:
			return opError(op, p, err)
		case bounded.Err() != nil || pause(bounded, n) != nil:
			return opError(op, p, fmt.Errorf("no answer within the release timeout: %w", err))
		}
	}
}
