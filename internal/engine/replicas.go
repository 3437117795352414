package engine

import (
	"context"
	"embed"
	"fmt"
	"strings"
	"time"

	"relock/internal/lockerr"
	"relock/internal/script"
)

// Where Config.Replicas is set, what Redis has granted counts when so many replicas have
// acknowledged it, and an end that Hold.Extend has moved. An acquisition asks them when it has its
// grant: over a connection that WAIT may block, it sends
//
//	Extend  which finds that the hold is there, and changes nothing; behind a Hold.Extend it
//	        moves the end as that did, should a failover have lost it, but only away
//	touch   which writes the lock as it is, so that WAIT has a write to wait for
//	WAIT
//
// A replica that has the write has all that came before it on the same server. That it is the
// server which has granted the lock, and not one that was promoted since without it, is what
// Extend tells: a grant is looked for by its private owner, its permits or the id of the hold,
// none of which any other grant has. Neither of the two does harm when it comes late, so there
// is no need for an order between this connection and the others.
//
// What is not acknowledged has an unknown outcome for the rest of the machine: it is asked for
// again or taken back.

//go:embed lua/*.lua
var scripts embed.FS

var touchScript = script.Load(scripts, "lua/touch.lua")

// errNotYet is an acknowledgement that the end of a context has cut off.
var errNotYet = fmt.Errorf("%w: no acknowledgement by replicas", ErrUnavailable)

// An unacknowledged grant is one that too few replicas have acknowledged in time.
type unacknowledged struct {
	got   int64
	want  int
	bound time.Duration
}

func (e *unacknowledged) Error() string {
	return fmt.Sprintf("%v: %d of %d replicas acknowledged it within %v", ErrUnavailable, e.got, e.want, e.bound)
}

func (e *unacknowledged) Unwrap() error { return ErrUnavailable }

// acknowledged waits until Config.Replicas replicas have acknowledged what was granted, if
// anything was. An error is the context's, or one that matches ErrUnavailable and is
// [script.Unknown] like that: the grant stands, whatever the replicas have.
func (s *Session) acknowledged(ctx context.Context, g *grant, p Primitive, op *Op, trusted time.Duration) error {
	leased, ok := p.(Leased)
	if !ok || g.status != granted { // what is not leased has no holder
		return nil
	}
	err := s.askReplicas(ctx, leased, holdOf(op), op.Lease)
	if err == nil && s.now() >= g.sent+trustIn(trusted) {
		err = errLate
	}
	g.asked = err != nil
	return err
}

// askReplicas asks the replicas to acknowledge what hold finds, which is the Op of an Extend that
// does no harm when it comes late. lease is that of the lock.
func (s *Session) askReplicas(ctx context.Context, leased Leased, hold *Op, lease time.Duration) error {
	bound := s.replicaBound(ctx, lease)
	asked, cancel := context.WithTimeout(ctx, bound+s.answerTime())
	defer cancel()
	extend := leased.Extend(hold)
	replies, got, err := s.run.Replicated(asked, []script.Command{
		extend, {Script: touchScript, Keys: extend.Keys[:1]},
	}, s.cfg.Replicas, bound)
	for _, r := range replies {
		if err != nil {
			break
		}
		var there int64
		if there, err = r.AsInt64(); err == nil && there != 1 {
			err = fmt.Errorf("it was gone by then")
		}
	}
	switch {
	case err == nil && got >= int64(s.cfg.Replicas):
		return nil
	case err == nil:
		return &unacknowledged{got, s.cfg.Replicas, bound}
	case ctx.Err() != nil:
		return ctx.Err()
	}
	// By its text, since an error reply would say that nothing was granted.
	return fmt.Errorf("%w: %d replicas were asked to acknowledge it: %v", ErrUnavailable, s.cfg.Replicas, err)
}

// holdOf returns the command that finds out whether what op asked for is held, and moves no end.
// The first hold of a private owner is there if the owner is.
func holdOf(op *Op) *Op {
	first := op.Private && op.Held == 0 && op.Other == 0
	hold := &Op{Owner: op.Owner, N: op.N, Lease: time.Millisecond, Move: Move{Away: true}, Private: first}
	if !first {
		hold.ByIDs, hold.IDs = true, []string{op.ID}
	}
	return hold
}

// waitsLate is how much later than it was told an idle Redis ends a WAIT: it looks ten times in a
// second.
const waitsLate = 100 * time.Millisecond

// replicaBound is for how long the replicas may take: so that something of the lease is left, and
// their number is told before ctx ends.
func (s *Session) replicaBound(ctx context.Context, lease time.Duration) time.Duration {
	bound := min(s.cfg.ReplicaTimeout, lease/2)
	if end, ok := ctx.Deadline(); ok {
		left := time.Until(end)
		bound = min(bound, max(left/2, left-left/10-waitsLate))
	}
	return max(bound, time.Millisecond).Truncate(time.Millisecond)
}

// replicasAtStart is how long a session that begins looks for replicas at most.
const replicasAtStart = 100 * time.Millisecond

// checkReplicas finds out whether replicas can be waited for here. That they are not there yet is
// no error.
func (s *Session) checkReplicas(ctx context.Context) error {
	if s.cfg.Replicas == 0 {
		return nil
	}
	got, err := s.run.Replicas(ctx, s.cfg.Replicas, min(s.cfg.ReplicaTimeout, replicasAtStart))
	remedy := ""
	switch {
	case err == nil && got < int64(s.cfg.Replicas) && !s.cluster:
		s.cfg.Logger.Warn("relock: fewer replicas are connected than acquisitions wait for", "connected", got, "Config.Replicas", s.cfg.Replicas)
		return nil
	case err == nil:
		return nil
	case script.Denied(err):
		remedy = "the ACL does not let this user wait for replicas; allow +wait, or leave Config.Replicas at 0"
	case strings.HasPrefix(script.Text(err), "unknown command"):
		remedy = "the server does not know WAIT, with which replicas acknowledge; leave Config.Replicas at 0"
	case s.cluster:
		return nil // one node does not answer, and others may
	default:
		return lockerr.Unavailable(err)
	}
	return fmt.Errorf("%w: %s: %w", ErrConfig, remedy, lockerr.Unavailable(err))
}
