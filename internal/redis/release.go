package redis

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/rueidis"

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
	Stays       bool  // the owner has other holds by the last that answered, so nothing came free
	Receivers   int64 // of the last that answered, -1 if none did; see kind.Primitive
	Line        Line
	Unconfirmed []script.Command // those that were refused, or got no answer
}

// A Line is what a release script has found in the line of its lock, see kind.Liner.
type Line struct {
	Others   bool  // other sessions stand there
	Position int64 // of the session's own new entry; 0: there is none; -1: the release is to be sent again
	At       int64 // Redis's time in ms
}

// Release sends the commands that release what has one owner, one after the other, each until it is
// answered, refused for good, or ctx ends, which is the end of a release timeout.
func (s *Sender) Release(ctx context.Context, cmds ...ReleaseCommand) (r Released, errs error) {
	r.Receivers = -1
	for _, cmd := range cmds {
		resent := false
		try := func() error { return r.hear(cmd.Known, s.Run(ctx, cmd.Command), &resent) }
		err := try()
		if err != nil {
			err = again(ctx, err, try)
		}
		r.Resent = r.Resent || resent
		if err != nil {
			errs = errors.Join(errs, NotReleased(err))
			r.Unconfirmed = append(r.Unconfirmed, cmd.Command)
		}
	}
	return r, errs
}

// hear takes in the result of one run of a command. resent says that an earlier run may have done what it is for,
// and is set if this one may have.
func (r *Released) hear(known bool, res rueidis.RedisResult, resent *bool) error {
	var buf [5]int64
	reply, _, err := script.Numbers(buf[:0], res, -1)
	switch {
	case err != nil:
		// When rueidis closes a connection under a command it follows a failover. What the
		// next server does not know was more likely lost there than released here, and a
		// false Lost does no harm, a false success does.
		*resent = *resent || script.Classify(err) == script.Unknown && !errors.Is(err, rueidis.ErrClosing)
		return err
	case len(reply) == 1:
		reply = append(reply[:0], 0, 1, reply[0])
	case len(reply) == 5:
		r.Line = Line{true, reply[3], reply[4]}
	case len(reply) != 3:
		return fmt.Errorf("%w: %d elements", script.ErrShape, len(reply))
	}
	r.Lost = r.Lost || known && reply[1] == 0 && !*resent
	r.Stays, r.Receivers = reply[0] > 0, reply[2]
	return nil
}

// NotReleased is the error of a release that was refused, or not answered in time, with the client's error.
func NotReleased(err error) error {
	if script.Classify(err) == script.Refused {
		return script.AsUnavailable(err)
	}
	return fmt.Errorf("not confirmed within the release timeout: %w", script.AsUnavailable(err))
}

// A Pending is a release whose commands are sent by its user, each until it is answered. It takes in the results,
// as [Sender.Release] does.
type Pending struct {
	Released
	Cmds   []ReleaseCommand
	resent []bool // of each command: an earlier run may have done what it is for
}

// NewPending returns a release of which nothing was sent yet.
func NewPending(cmds []ReleaseCommand) Pending {
	return Pending{Released: Released{Receivers: -1}, Cmds: cmds, resent: make([]bool, len(cmds))}
}

// Hear takes in the result of a run of the i-th command.
func (p *Pending) Hear(i int, res rueidis.RedisResult) {
	if err := p.hear(p.Cmds[i].Known, res, &p.resent[i]); err != nil {
		p.Resent = p.Resent || p.resent[i]
	}
}
