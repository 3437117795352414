package election

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"relock/internal/calls"
	"relock/internal/script"
	"relock/rlock"
)

// Leadership is one successful Campaign. It is not bound to the goroutine that got it. Safe for
// concurrent use. The methods of a nil or zero Leadership return [rlock.ErrNotHeld] or 0.
type Leadership struct {
	election *Election
	hold     *rlock.Hold
	resigned atomic.Bool
	forget   func() // for IsLeader, once it has begun
}

// Term returns the number of this leadership. It is greater than that of every earlier leader of
// this election, and a fencing token: send it along with every write, and let the resource
// refuse a term lower than the highest it has seen. See [rlock.Hold.Token].
func (l *Leadership) Term() int64 {
	if l == nil {
		return 0
	}
	return l.hold.Token()
}

// Publish changes the value that [Election.Leader] and [Election.Observe] give. Of values that
// are published at the same time one stays; a call that is sent again, because its answer was
// lost, never replaces a later value.
//
// Publish blocks for one round trip, and tries again for at most Config.ReleaseTimeout while
// the answer is lost. Errors: [rlock.ErrLost] if Redis says that the caller does not lead any
// more; [rlock.ErrNotHeld] after Resign; [rlock.ErrClosed], [rlock.ErrArgument]; ctx's error if
// it was done before (nothing was sent); Redis's own; else [rlock.ErrUnavailable], after which the
// value may be published or not.
func (l *Leadership) Publish(ctx context.Context, value string) error {
	const op = "publish"
	if l == nil || l.hold == nil {
		return fmt.Errorf("%s: %w", op, rlock.ErrNotHeld)
	}
	// The number is drawn first: then the value of a next leader of this session, which may have the
	// same owner, is the later one, whatever Resign does meanwhile.
	revision := revisions.Add(1)
	if l.resigned.Load() {
		return l.election.wrap(op, rlock.ErrNotHeld)
	}
	return l.send(ctx, l.election.handle.Session().Config().ReleaseTimeout, op, value, revision)
}

// revisions orders the values of a leader. All of a leader's values come from this process.
var revisions atomic.Int64

func (l *Leadership) send(ctx context.Context, bound time.Duration, op, value string, revision int64) error {
	e := l.election
	cmd := script.Command{Script: publishScript, Keys: e.keys(), Args: []string{
		l.hold.Owner(), script.Itoa(l.Term()), script.Itoa(revision), value, e.channel(), e.names.Publish,
	}}
	var leads int64
	err := e.handle.Calls().CallWithin(ctx, bound, op, cmd, calls.Integer(&leads))
	if err == nil && leads == 0 {
		err = e.wrap(op, rlock.ErrLost)
	}
	return err
}

// Resign ends the leadership: its context ends with the cause [rlock.ErrReleased], and the same
// command makes the next candidate the leader. It works although the context is done. Resign
// blocks for one round trip, at most Config.ReleaseTimeout.
//
// Errors are those of [rlock.Hold.Unlock]: [rlock.ErrLost] if the leadership was lost before,
// [rlock.ErrNotHeld] for a second call. After any error the leadership has ended.
func (l *Leadership) Resign() error {
	if l == nil {
		return fmt.Errorf("resign: %w", rlock.ErrNotHeld)
	}
	l.resigned.Store(true)
	if l.forget != nil {
		defer l.forget()
	}
	if err := l.hold.Unlock(); err != nil {
		return fmt.Errorf("resign: %w", err)
	}
	return nil
}
