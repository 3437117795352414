package resend

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/rueidis"

	"relock/internal/lockerr"
	"relock/internal/script"
)

// Released is what a release script answered.
type Released struct {
	Lost      bool  // nothing was held, and no earlier run of the command can be why
	Receivers int64 // see kind.Primitive
}

// Release sends the release script of a kind.Primitive until it is answered, refused for good, or
// ctx ends, which is the end of a release timeout.
func (s *Sender) Release(ctx context.Context, cmd script.Command) (Released, error) {
	var buf [3]int64
	var reply []int64
	resent := false
	err := until(ctx, func() (err error) {
		reply, err = script.Numbers(buf[:0], s.Run(ctx, cmd))
		switch {
		case err != nil:
			// When rueidis closes a connection under a command it follows a failover. What the
			// next server does not know was more likely lost there than released here, and a
			// false Lost does no harm, a false success does.
			resent = resent || script.Classify(err) == script.Unknown && !errors.Is(err, rueidis.ErrClosing)
		case len(reply) == 1:
			reply = append(reply[:0], 0, 1, reply[0])
		case len(reply) != 3:
			err = fmt.Errorf("%w: %d elements", script.ErrShape, len(reply))
		}
		return err
	})
	switch {
	case err == nil:
		return Released{Lost: reply[1] == 0 && !resent, Receivers: reply[2]}, nil
	case script.Classify(err) == script.Refused:
		return Released{}, lockerr.Unavailable(err)
	}
	return Released{}, fmt.Errorf("not confirmed within the release timeout: %w", lockerr.Unavailable(err))
}
