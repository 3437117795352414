package rlock

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/redis/rueidis"
)

// The errors of this package and of the variants built on it. They are matched
// with [errors.Is]; what is returned wraps them with the operation and the name
// of the lock.
var (
	// ErrNotAcquired: somebody else holds the lock, and TryLock does not wait, or
	// the time given with Wait is over, or the context ended while waiting (then
	// the error matches the context's error too). Nothing is held, nothing is
	// left behind in Redis or in a queue.
	ErrNotAcquired = errors.New("rlock: not acquired")

	// ErrNotHeld: the hold was unlocked before. Nothing was changed, and nobody
	// who has taken the lock since was touched.
	ErrNotHeld = errors.New("rlock: not held")

	// ErrLost: the hold ended without being unlocked: its lease ran out, or the
	// key was deleted, evicted, force-unlocked or lost in a failover. Others may
	// hold the lock.
	ErrLost = errors.New("rlock: lock lost")

	// ErrReleased is the cause with which the context of a critical section ends
	// when the owner's last hold of the lock is released.
	ErrReleased = errors.New("rlock: lock released")

	// ErrClosed: the session is closed. What it held has been released.
	ErrClosed = errors.New("rlock: session closed")

	// ErrName: the lock's name cannot be used. A name has at least one byte.
	ErrName = errors.New("rlock: bad name")

	// ErrConfig: a field of Config, or the client, cannot be used; the text names
	// it and says what would do.
	ErrConfig = errors.New("rlock: bad config")

	// ErrArgument: an argument of the call cannot be used; the text says which
	// and what would do. Nothing was sent.
	ErrArgument = errors.New("rlock: bad argument")
)

// An outcome says what is known of a script after its call returned an error.
type outcome int

const (
	notRun  outcome = iota // it has certainly not run; trying again may help
	unknown                // it may have run, may still run, or not
	refused                // Redis refused it for good; trying again does not help
)

// classify tells what an error of the client means for a script that writes. The
// table stands on experiments with rueidis; whatever it does not name counts as
// unknown, which costs a second look and is never wrong.
func classify(err error) outcome {
	if re, ok := rueidis.IsRedisErr(err); ok {
		text := re.Error()
		for _, p := range transient {
			if strings.HasPrefix(text, p) {
				return notRun
			}
		}
		return refused
	}
	if errors.Is(err, errShape) {
		return refused // Redis speaks nonsense
	}
	// rueidis.ErrClosing is unknown: it also comes up while a client fails over.
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" {
		return notRun
	}
	return unknown
}

// errShape is a reply that the scripts never give.
var errShape = errors.New("rlock: unexpected reply")

// transient are the error replies that pass by themselves: a server that loads
// or fails over, a Cluster in motion, a script that is in the way.
var transient = []string{
	"LOADING", "READONLY", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "NOREPLICAS", "BUSY", "MOVED", "ASK",
}

// opError names the operation and the lock in front of what went wrong.
func opError(op string, p Primitive, err error) error {
	if tr := p.Traits(); tr.Anonymous || tr.Fleeting { // permits
		op = strings.NewReplacer("unlock", "release", "lock", "acquire").Replace(op)
	}
	return fmt.Errorf("%s %q: %w", op, p.Name(), err)
}

// notAcquired explains a wait that ended because of ctx. lastErr, if any, is the
// client's error of the last attempt, so that "Redis is unreachable" can be told
// from "somebody else holds it".
func notAcquired(ctxErr, lastErr error) error {
	switch {
	case ctxErr != nil && lastErr != nil:
		return fmt.Errorf("%w: %w (last attempt: %w)", ErrNotAcquired, ctxErr, lastErr)
	case ctxErr != nil:
		return fmt.Errorf("%w: %w", ErrNotAcquired, ctxErr)
	case lastErr != nil:
		return fmt.Errorf("%w (last attempt: %w)", ErrNotAcquired, lastErr)
	default:
		return ErrNotAcquired
	}
}

// isCtxErr reports whether err is how a call ends whose context ended.
func isCtxErr(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
