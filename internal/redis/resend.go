package redis

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/rueidis"

	"relock/internal/clock"
	"relock/internal/script"
)

// A Sender sends the commands of one session. All fields must be set.
type Sender struct {
	// Run sends a command once.
	Run func(context.Context, script.Command) rueidis.RedisResult
	// Clock and Doubts are read before each attempt of an Extend, see [Extended].
	Clock  func() time.Duration
	Doubts func() uint32
}

// again calls try, which has returned err, until it returns no error, or one by which Redis has refused
// for good, or ctx ends; it pauses before each call. The error is that of the last call, but for the
// end of a context, which tells less than what came before.
func again(ctx context.Context, err error, try func() error) error {
	last := err
	for n := 0; err != nil; n++ {
		if !script.IsContext(err) {
			last = err
		}
		if script.Classify(err) == script.Refused || ctx.Err() != nil || clock.Pause(ctx, n) != nil {
			return last
		}
		err = try()
	}
	return nil
}

// Call sends a command until Redis answers it or refuses it for good, ctx ends, or bound is over.
// Errors: [api.ErrUnavailable] (with ctx's error, if that ended it), or Redis's own.
func (s *Sender) Call(ctx context.Context, bound time.Duration, cmd script.Command) (reply rueidis.RedisResult, err error) {
	bounded, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	try := func() error {
		reply = s.Run(bounded, cmd)
		return reply.Error()
	}
	err = again(bounded, try(), try)
	switch {
	case err == nil:
		return reply, nil
	case script.Classify(err) == script.Refused:
		return reply, script.AsUnavailable(err)
	case ctx.Err() != nil:
		return reply, script.CutOff(ctx, err)
	}
	return reply, fmt.Errorf("no answer within %v: %w", bound, script.AsUnavailable(err))
}
