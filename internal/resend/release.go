package resend

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/rueidis"

	"relock/internal/clienterr"
	"relock/internal/script"
)

// A ReleaseCommand runs the release script of a kind.Primitive.
type ReleaseCommand struct {
	script.Command
	Known bool // a hold stands there, unless it was lost
}

// Released is what release scripts answered.
type Released struct {
	Resent      bool  // some were sent more than once: a reply tells of the last run
	Lost        bool  // a known hold was not there, and no earlier run of the command can be why
	Receivers   int64 // of the last that answered, -1 if none did; see kind.Primitive
	Line        Line
	Unconfirmed []script.Command // those that were refused, or got no answer
}

// A Line is what a release script has found in the line of its lock, see kind.Liner.
type Line struct {
	Others   bool  // other sessions stand there
	Position int64 // of the session's own new entry; 0: there is none
	At       int64 // Redis's time in ms
}

// Release sends the commands that release what has one owner, one after the other, each until it is
// answered, refused for good, or ctx ends, which is the end of a release timeout.
func (s *Sender) Release(ctx context.Context, cmds ...ReleaseCommand) (r Released, errs error) {
	r.Receivers = -1
	for _, cmd := range cmds {
		var buf [5]int64
		var reply []int64
		resent := false
		try := func() (err error) {
			reply, err = script.Numbers(buf[:0], s.Run(ctx, cmd.Command))
			switch {
			case err != nil:
				// When rueidis closes a connection under a command it follows a failover. What the
				// next server does not know was more likely lost there than released here, and a
				// false Lost does no harm, a false success does.
				resent = resent || script.Classify(err) == script.Unknown && !errors.Is(err, rueidis.ErrClosing)
			case len(reply) == 1:
				reply = append(reply[:0], 0, 1, reply[0])
			case len(reply) == 5:
				r.Line = Line{true, reply[3], reply[4]}
			case len(reply) != 3:
				err = fmt.Errorf("%w: %d elements", script.ErrShape, len(reply))
			}
			return err
		}
		err := try()
		if err != nil {
			err = again(ctx, err, try)
		}
		r.Resent = r.Resent || resent
		switch {
		case err == nil:
			r.Lost = r.Lost || cmd.Known && reply[1] == 0 && !resent
			r.Receivers = reply[2]
			continue
		case script.Classify(err) == script.Refused:
			err = clienterr.Unavailable(err)
		default:
			err = fmt.Errorf("not confirmed within the release timeout: %w", clienterr.Unavailable(err))
		}
		errs = errors.Join(errs, err)
		r.Unconfirmed = append(r.Unconfirmed, cmd.Command)
	}
	return r, errs
}
