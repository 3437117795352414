package latch

import (
	"context"
	"fmt"

	"relock/internal/calls"
	"relock/internal/engine"
	"relock/internal/idgen"
	"relock/internal/kind"
	"relock/internal/script"
	"relock/rlock"
)

// Latch is a number under one name that is counted down, and that callers wait for to reach 0.
// It is shared by all processes that use the same Redis, Java processes with Redisson's
// RCountDownLatch included. A Latch is a handle: made without I/O, and as good as any other of
// the same name and session. Safe for concurrent use.
type Latch struct {
	handle engine.Handle
	gate   *gate
}

// New returns the latch with that name. It does no I/O and does not fail: the first operation
// reports an empty name ([rlock.ErrName]) or a nil session ([rlock.ErrArgument]).
func New(s *rlock.Session, name string) *Latch {
	session := (*engine.Session)(s)
	names, err := session.Names(name)
	g := &gate{names: names, cluster: err == nil && session.Cluster()}
	return &Latch{handle: engine.NewHandle(session, g.Names(), g, err), gate: g}
}

// most is the largest count: the integers up to it are exact in Lua too.
const most = 1 << 53

// TrySet sets the count of a latch that is open, and reports whether it did. A latch that is
// closed keeps its count. n is at least 1 and at most 2^53, else [rlock.ErrArgument].
//
// TrySet blocks for one round trip, and tries again for at most Config.ReleaseTimeout while the
// answer is lost. Errors: ErrArgument, [rlock.ErrName], [rlock.ErrClosed]; ctx's error if it was
// done before the call (nothing was sent); Redis's own, WRONGTYPE above all; else
// [rlock.ErrUnavailable], after which the latch may have been set or not.
func (l *Latch) TrySet(ctx context.Context, n int) (bool, error) {
	var bad error
	if n < 1 || n > most {
		bad = fmt.Errorf("%w: the count is %d; it must be at least 1 and at most %d", rlock.ErrArgument, n, most)
	}
	if err := l.usable("try set", bad); err != nil {
		return false, err
	}
	set, err := l.change(ctx, "try set", trySetScript, script.Itoa(int64(n)))
	return set == 1, err
}

// CountDown takes one from the count. At 0 the latch opens: all waiters are woken, and the key
// is deleted. On an open latch CountDown does nothing.
//
// A call that is sent again, because its answer was lost, counts once. CountDown blocks as
// TrySet does, and has its errors; after ErrUnavailable it has counted once or not at all.
func (l *Latch) CountDown(ctx context.Context) error {
	if err := l.usable("count down", nil); err != nil {
		return err
	}
	_, err := l.change(ctx, "count down", countDownScript)
	return err
}

// Await waits until the latch is open: it has been counted down to 0, or was never set. It takes
// nothing, so that any number of callers may pass.
//
// Await blocks until then or until ctx ends; [rlock.Wait] bounds it too. [rlock.Lease] is
// [rlock.ErrArgument]: nothing is leased. While Redis cannot be reached it keeps trying. Errors:
// [rlock.ErrNotAcquired] when the wait is over, which also matches ctx's error if that was why,
// and [rlock.ErrUnavailable] if Redis did not answer; ctx's error alone if it was done before the
// call (nothing was sent); ErrArgument, [rlock.ErrName], [rlock.ErrClosed]; Redis's own, WRONGTYPE
// above all.
func (l *Latch) Await(ctx context.Context, opts ...rlock.LockOption) error {
	if err := l.usable("await", nil); err != nil {
		return err
	}
	if _, _, err := l.handle.Lock(ctx, 1, true, opts); err != nil {
		return fmt.Errorf("await: %w", err)
	}
	return nil
}

// Count asks Redis for the count: 0 if the latch is open. It blocks as TrySet does, and has its
// errors. The answer may be out of date when it returns.
func (l *Latch) Count(ctx context.Context) (int, error) {
	if err := l.usable("count", nil); err != nil {
		return 0, err
	}
	var n int64
	cmd := script.Command{Script: countScript, Keys: l.gate.names.Keys[:]}
	err := l.handle.Calls().Call(ctx, "count", cmd, calls.Integer(&n))
	return int(max(0, n)), err
}

// usable returns why the handle or an argument cannot be used.
func (l *Latch) usable(op string, bad error) error {
	if l == nil || l.gate == nil {
		return fmt.Errorf("%s: %w: the latch is a zero value; make one with New", op, rlock.ErrArgument)
	}
	return l.handle.Calls().Check(op, bad)
}

// change runs a script that must count once. The machine sends it again for no longer than its
// release timeout, and the script remembers the request for [kind.Memory] more.
func (l *Latch) change(ctx context.Context, op string, sc *script.Script, args ...string) (reply int64, err error) {
	n := l.gate.Names()
	cmd := script.Command{
		Script: sc,
		Keys:   []string{n.Key(), n.Prefixed("relock_request") + ":" + idgen.Request()},
		Args: append([]string{
			l.gate.Channel(), n.Publish, script.Millis(l.handle.Session().Config().ReleaseTimeout + kind.Memory),
		}, args...),
	}
	err = l.handle.Calls().Call(ctx, op, cmd, calls.Integer(&reply))
	return reply, err
}
