package election

import (
	"context"
	"math/rand/v2"
	"time"

	"relock/pubsub"
)

// Observe returns a channel that yields the leader, if there is one, and then each new leader, each
// new value, and the zero Leader when nobody leads any more: after a Resign at once, after a loss when the
// lease in Redis is over. A Resign that makes a candidate of another session the leader leaves no time
// without one, and none is yielded; between candidates of one session there may be such a moment. The
// channel holds one: what is not read is replaced by what comes next, so that a slow reader gets the newest.
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
	published, released := ear{e: e, channel: e.channel()}, ear{e: e, channel: e.released()}
	defer published.close()
	defer released.close()
	timer := time.NewTimer(floor)
	defer timer.Stop()
	var last Leader
	for ctx.Err() == nil {
		// Before it looks, so that no change falls in between.
		news, ends := published.listen(ctx, floor), released.listen(ctx, floor)
		// Of a leader that has not published yet a message will come.
		if now, unpublished, err := e.look(ctx, "observe"); err == nil && !unpublished && now != last {
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
		case <-news:
		case <-ends:
		case <-timer.C:
		case <-ctx.Done():
		}
	}
}

// An ear is an observer's subscription to one channel.
type ear struct {
	e        *Election
	channel  string
	listener *pubsub.Listener
}

// listen subscribes, unless that has been done, and returns what is heard. If it cannot it returns
// nil: then the observer looks by the clock and tries again.
func (x *ear) listen(ctx context.Context, floor time.Duration) <-chan pubsub.Message {
	if x.listener == nil {
		ctx, cancel := context.WithTimeout(ctx, floor)
		defer cancel()
		listener, err := x.e.handle.Session().Listen(ctx, x.channel)
		if err != nil {
			return nil
		}
		x.listener = listener
	}
	return x.listener.C()
}

func (x *ear) close() {
	if x.listener != nil {
		x.listener.Close()
	}
}
