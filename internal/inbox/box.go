package inbox

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"relock/internal/clock"
	"relock/internal/life"
)

// A Box is a session's subscription to its own channel. All fields must be set, but for Deaf.
type Box struct {
	life.Env
	Session   string                      // its id
	Subscribe func(context.Context) error // subscribes to its channel
	Back      func()                      // called when it hears its channel again
	Logger    *slog.Logger                // for what the session's caller is to hear itself

	Deaf atomic.Bool // the session cannot be told anything
}

// RefusalRetry is how often a refused subscription is tried again: seldom enough that an idle
// waiter stays below one command a second.
const RefusalRetry = 5 * time.Second

// Open subscribes. Where that is refused the
// session works without, and keeps trying: a forced unlock is then noticed at the next renewal.
// Errors: those of a ctx that has ended.
func (b *Box) Open(ctx context.Context) error {
	err := b.Subscribe(ctx)
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return fmt.Errorf("subscribe: %w", err)
	}
	b.Logger.Warn("relock: cannot subscribe; waiters will poll", "error", err)
	b.Deaf.Store(true)
	b.Background.Go(b.keepAsking)
	return nil
}

// keepAsking subscribes when that is allowed again. The subscriber asks the server every
// RefusalRetry, not at each of these calls.
func (b *Box) keepAsking() {
	for b.Subscribe(b.Context) != nil {
		if clock.Sleep(b.Context, clock.Jitter(RefusalRetry/5)) != nil {
			return
		}
	}
	b.Deaf.Store(false)
	b.Back()
}

// Question is what a session tells itself to find out whether it would hear it.
const Question = ""

// Reached reports whether each of some clients of one connection leads to the server where the
// session listens: only there does its channel have a listener.
func (b *Box) Reached(ctx context.Context, by ...rueidis.Client) bool {
	for _, c := range by {
		if n, err := b.listeners(ctx, c); err != nil || n == 0 {
			return false
		}
	}
	return true
}

// listeners returns how many listen to the session's channel on the server that a client leads to. A message is
// received besides by all who listen by a pattern, as an operator does who watches that server: so NUMSUB is asked, which
// does not count these. Only a user who may not ask goes by the receivers of a Question.
func (b *Box) listeners(ctx context.Context, c rueidis.Client) (int64, error) {
	channel := Prefix + b.Session
	// Not by its own builder: rueidis would repeat a read until ctx ends.
	n, err := c.Do(ctx, c.B().Arbitrary("PUBSUB", "NUMSUB", channel).Build()).AsIntMap()
	if _, refused := rueidis.IsRedisErr(err); refused {
		return c.Do(ctx, c.B().Publish().Channel(channel).Message(Question).Build()).AsInt64()
	}
	return n[channel], err
}
