package election

import (
	"context"
	"math/rand/v2"
	"time"

	"relock/pubsub"
)

// Observe returns a channel that yields the leader, if there is one, and then each new leader
// and each new value. It holds one: a leader that is not read is replaced by the next, so that a
// slow reader gets the newest one. That there is no leader is not told; [Election.Leader] says it.
//
// A message wakes the observer; after a lost connection, and each Config.PollFloor, it looks by
// itself, so that nothing is missed for longer. The channel is closed when ctx ends or the
// session closes; [rlock.Session.Shutdown] does not wait for observers. Observe itself does not
// block. Errors: [rlock.ErrArgument], [rlock.ErrName],
// [rlock.ErrClosed], ctx's error if it is done.
func (e *Election) Observe(ctx context.Context) (<-chan Leader, error) {
	const op = "observe"
	if err := e.usable(ctx, op); err != nil {
		return nil, err
	}
	c := make(chan Leader, 1)
	err := e.handle.Calls().Attend(ctx, func(ctx context.Context) {
		defer close(c)
		e.observe(ctx, c)
	})
	if err != nil {
		return nil, e.wrap(op, err)
	}
	return c, nil
}

func (e *Election) observe(ctx context.Context, c chan Leader) {
	floor := e.handle.Session().Config().PollFloor
	var listener *pubsub.Listener
	var messages <-chan pubsub.Message
	defer func() {
		if listener != nil {
			listener.Close()
		}
	}()
	timer := time.NewTimer(floor)
	defer timer.Stop()
	var last Leader
	for ctx.Err() == nil {
		if listener == nil { // before it looks, so that no change falls in between
			if listener = e.listen(ctx, floor); listener != nil {
				messages = listener.C()
			}
		}
		if now, err := e.Leader(ctx); err == nil && now != last {
			last = now
			select {
			case <-c: // not read yet, and out of date
			default:
			}
			c <- now
		}
		// Up to a tenth less, so that many observers do not look all at once for ever.
		timer.Reset(floor - time.Duration(rand.Int64N(int64(floor)/10+1)))
		select {
		case <-messages:
		case <-timer.C:
		case <-ctx.Done():
		}
	}
}

// listen subscribes, or returns nil: then the observer looks by the clock and tries again.
func (e *Election) listen(ctx context.Context, floor time.Duration) *pubsub.Listener {
	ctx, cancel := context.WithTimeout(ctx, floor)
	defer cancel()
	listener, err := e.handle.Session().Listen(ctx, e.channel())
	if err != nil {
		return nil
	}
	return listener
}
