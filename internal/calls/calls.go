// Package calls runs scripts that concern no claim, such as one that asks for the state of a lock or
// counts a latch down, and goroutines on behalf of a session.
package calls

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/redis/rueidis"

	"relock/internal/api"
	"relock/internal/idgen"
	"relock/internal/kind"
	"relock/internal/life"
	"relock/internal/redis"
	"relock/internal/report"
	"relock/internal/script"
)

// A Session is what calls need of a session. All fields must be set.
type Session struct {
	Life     *life.Life // whose Close waits for the calls
	Sender   *redis.Sender
	Requests *idgen.Requests
	Bound    time.Duration // of a Call
	Log      *slog.Logger  // it may be called under any mutex
	Told     report.Once   // names of which something was logged that is true once and for all
}

// A Handle is what a caller holds of something in Redis that has a name.
type Handle struct {
	session *Session
	name    string
	err     error
}

// NewHandle returns a handle. err, if any, is what each of its operations returns; then s may be nil.
func NewHandle(s *Session, name string, err error) Handle { return Handle{s, name, err} }

// Call runs a script that may run twice, until Redis answers or refuses it for good, ctx ends, or
// the bound of the session is over. Errors: [api.ErrClosed], ctx's error if it was done before
// (nothing was sent), [api.ErrUnavailable] (with ctx's error, if that ended it), Redis's own,
// else decode's, all with op and the name in front.
func (h *Handle) Call(ctx context.Context, op string, cmd script.Command, decode func(rueidis.RedisResult) error) error {
	if h.err != nil {
		return h.wrap(op, h.err)
	}
	return h.CallWithin(ctx, h.session.Bound, op, cmd, decode)
}

// CallWithin is Call with a bound of its own.
func (h *Handle) CallWithin(ctx context.Context, bound time.Duration, op string, cmd script.Command, decode func(rueidis.RedisResult) error) error {
	err := h.err
	if err == nil {
		err = h.session.call(ctx, bound, cmd, decode)
	}
	return h.wrap(op, err)
}

// CallOnce is Call for a script that remembers requests: cmd is given the id of one.
func (h *Handle) CallOnce(ctx context.Context, op string, cmd func(id string) script.Command, decode func(rueidis.RedisResult) error) error {
	if h.err != nil {
		return h.wrap(op, h.err)
	}
	id := h.session.Requests.Begin()
	defer h.session.Requests.End(id)
	return h.Call(ctx, op, cmd(id), decode)
}

// ForceUnlock ends the holds of all owners, and returns those that had some. force is
// the script that does it: without owners it changes nothing; else it ends all holds if one of those
// owners has one. Either way it returns the owners that it found.
//
// So a command that arrives late, when other owners have the lock, leaves those alone. One that runs
// a second time leaves its own owners alone too, for as long as the script remembers the request.
func (h *Handle) ForceUnlock(ctx context.Context, force func(*kind.Force) script.Command) (owners []string, err error) {
	decode := func(r rueidis.RedisResult) (err error) {
		owners, err = r.AsStrSlice()
		return err
	}
	if err = h.Call(ctx, "force unlock", force(new(kind.Force)), decode); err == nil && len(owners) > 0 {
		// It is sent again for no longer than Bound. What is under way then has the rest of the time.
		f := &kind.Force{Owners: owners, ID: idgen.Request(), Remembered: h.session.Bound + kind.Memory}
		err = h.Call(ctx, "force unlock", force(f), decode)
	}
	if err != nil {
		return nil, err
	}
	return owners, nil
}

func (d *Session) call(ctx context.Context, bound time.Duration, cmd script.Command, decode func(rueidis.RedisResult) error) error {
	if err := d.Life.EnterWith(ctx); err != nil {
		return err
	}
	defer d.Life.Leave()
	reply, err := d.Sender.Call(ctx, bound, cmd)
	if err != nil {
		return err
	}
	return decode(reply)
}

// Check returns why an operation cannot be begun, with op and the name in front: the error of the
// handle, or else bad, which is what is wrong with the arguments; nil if nothing is.
func (h *Handle) Check(op string, bad error) error {
	if h.err != nil {
		bad = h.err
	}
	return h.wrap(op, bad)
}

// Waiters counts the callers that wait for a lock, part by part of its line: part is waiters.lua of rlock, with where the
// part begins.
func (h *Handle) Waiters(ctx context.Context, part func(from int64) script.Command) (int, error) {
	var counted []int64
	decode := func(r rueidis.RedisResult) (err error) {
		if counted, err = r.AsIntSlice(); err == nil && len(counted) != 2 {
			err = fmt.Errorf("%w: %d elements", script.ErrShape, len(counted))
		}
		return err
	}
	for n, next := 0, int64(0); ; {
		if err := h.Call(ctx, "waiters", part(next), decode); err != nil {
			return 0, err
		}
		n += int(counted[0])
		if next = counted[1]; next == 0 {
			return n, nil
		}
	}
}

// Integer decodes an integer, also one in decimal digits.
func Integer(to *int64) func(rueidis.RedisResult) error {
	return func(r rueidis.RedisResult) (err error) {
		*to, err = r.AsInt64()
		return err
	}
}

// Once runs warn with the session's Logger, once for each name of a session, of the first [report.MostOnce].
// Both may be under any mutex.
func (h *Handle) Once(warn func(log *slog.Logger)) {
	if h.err == nil && h.session.Told.First(h.name) {
		warn(h.session.Log)
	}
}

// wrap puts op and the name in front of an error; nil stays nil.
func (h *Handle) wrap(op string, err error) error {
	if err == nil {
		return nil
	}
	return api.Wrap(op, h.name, err)
}

// Go runs fn in a goroutine of the session. Its context ends when ctx does or when Close
// begins; Close waits for fn to return. Errors: [api.ErrClosed], ctx's error if it is done, and
// the handle's own; then fn does not run.
func (h *Handle) Go(ctx context.Context, fn func(ctx context.Context)) error {
	if h.err != nil {
		return h.err
	}
	return h.session.Life.Go(ctx, fn)
}

// Attend is Go for what lasts until ctx ends: Shutdown does not wait for it.
func (h *Handle) Attend(ctx context.Context, fn func(ctx context.Context)) error {
	if h.err != nil {
		return h.err
	}
	return h.session.Life.Attend(ctx, fn)
}

// OnEnd runs fn, in a goroutine of its own, when Shutdown or Close begins, unless stop is called
// before. The handle must be one without an error.
func (h *Handle) OnEnd(fn func()) (stop func() bool) {
	return context.AfterFunc(h.session.Life.Drains, fn)
}
