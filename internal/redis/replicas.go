package redis

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/rueidis"

	"relock/internal/api"
	"relock/internal/kind"
	"relock/internal/script"
)

var touchScript = script.Load(scripts, "lua/touch.lua")

// An Asker asks the replicas of one session's Redis.
type Asker struct {
	Run     Runner
	Want    int           // how many must acknowledge; 0: none is asked
	Timeout time.Duration // bounds the wait of one attempt
	Answer  time.Duration // how much longer Redis may take to say how many have
}

// A Runner sends commands over a connection that may block; see [script.Runner].
type Runner interface {
	Replicated(ctx context.Context, cs []script.Command, n int, bound time.Duration) (replies []rueidis.RedisResult, acknowledged int64, err error)
}

// ErrNotYet is an acknowledgement that the end of a context has cut off.
var ErrNotYet = fmt.Errorf("%w: no acknowledgement yet by the replicas that Config.Replicas waits for", api.ErrUnavailable)

// errGone is a grant or an end that is not there when the replicas are asked.
var errGone = errors.New("it was gone by then")

// TooFew is the error for what too few replicas have acknowledged in time.
type TooFew struct {
	got   int64
	want  int
	bound time.Duration
}

func (e *TooFew) Error() string {
	return fmt.Sprintf("%v: %d of %d replicas acknowledged it within %v, and Config.Replicas waits for %[3]d", api.ErrUnavailable, e.got, e.want, e.bound)
}

func (e *TooFew) Unwrap() error { return api.ErrUnavailable }

// Granted waits until the replicas have acknowledged what Redis has granted to op. An error is the
// context's, or one that matches [api.ErrUnavailable] and is [script.Unknown] like that: the
// grant stands, whatever the replicas have.
func (a *Asker) Granted(ctx context.Context, p kind.Leased, op *kind.Op) error {
	return a.ask(ctx, p, holdOf(op), op.Lease)
}

// Extend sends an extension, as s does, until replicas have acknowledged the new end too: a fixed
// lease is not renewed, so a failover that loses its extension would end the lock in Redis while
// the hold is trusted.
func (a *Asker) Extend(ctx context.Context, s *Sender, p kind.Leased, op *kind.Op) Extended {
	all := s.Extend(ctx, p, op)
	there := kind.Op{Owner: op.Owner, N: op.N, Lease: op.Lease, Private: op.Private, ByIDs: op.ByIDs,
		Known: kind.Known{Held: op.Held, IDs: op.IDs}, Move: kind.Move{Away: true}}
	acknowledged := func() error {
		if a.Want == 0 || all.Err != nil || !all.Alive {
			return all.Err
		}
		return a.ask(ctx, p, &there, op.Lease)
	}
	if err := acknowledged(); err != nil && all.Err == nil {
		all.Err = again(ctx, err, func() error {
			before := all
			all = s.Extend(ctx, p, op) // it may have been lost with the server
			all.Late, all.Voided = all.Late || before.Late, all.Voided || before.Voided
			return acknowledged()
		})
	}
	return all
}

// ask asks the replicas to acknowledge what hold finds, which is the Op of an Extend that does no
// harm when it comes late. lease is that of the lock.
func (a *Asker) ask(ctx context.Context, p kind.Leased, hold *kind.Op, lease time.Duration) error {
	bound := a.bound(ctx, lease)
	asked, cancel := context.WithTimeout(ctx, bound+a.Answer)
	defer cancel()
	extend := p.Extend(hold)
	replies, got, err := a.Run.Replicated(asked, []script.Command{
		extend, {Script: touchScript, Keys: extend.Keys[:1]},
	}, a.Want, bound)
	for _, r := range replies {
		if err != nil {
			break
		}
		var there int64
		if there, err = r.AsInt64(); err == nil && there != 1 {
			err = errGone
		}
	}
	switch {
	case err == nil && got >= int64(a.Want):
		return nil
	case err == nil:
		return &TooFew{got, a.Want, bound}
	case ctx.Err() != nil:
		return ctx.Err()
	}
	// By its text, since an error reply would say that nothing was granted.
	return fmt.Errorf("%w: %d replicas were asked to acknowledge it: %v", api.ErrUnavailable, a.Want, err)
}

// holdOf returns the command that finds out whether what op asked for is held, and moves no end.
// The first hold of a private owner is there if the owner is.
func holdOf(op *kind.Op) *kind.Op {
	first := op.Private && op.Held == 0 && op.Other == 0
	hold := &kind.Op{Owner: op.Owner, N: op.N, Lease: time.Millisecond, Move: kind.Move{Away: true}, Private: first}
	if !first {
		hold.ByIDs, hold.IDs = true, []string{op.ID}
	}
	return hold
}

// waitsLate is how much later than it was told an idle Redis ends a WAIT: it looks ten times in a
// second.
const waitsLate = 100 * time.Millisecond

// bound is for how long the replicas may take: so that something of the lease is left, and their
// number is told before ctx ends.
func (a *Asker) bound(ctx context.Context, lease time.Duration) time.Duration {
	bound := min(a.Timeout, lease/2)
	if end, ok := ctx.Deadline(); ok {
		left := time.Until(end)
		bound = min(bound, max(left/2, left-left/10-waitsLate))
	}
	return max(bound, time.Millisecond).Truncate(time.Millisecond)
}
