package multilock

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"relock/internal/api"
	"relock/internal/clock"
	"relock/internal/engine"
	"relock/rlock"
)

// Mutex is several locks that are taken together: all of them, or none. It is a handle: made
// without I/O, and as good as any other that names the same locks. Safe for concurrent use.
type Mutex struct {
	locks []lock // in the order of their keys
	err   error  // what every operation returns

	ordered atomic.Pointer[[]lock] // in the order in which they are taken; nil until it is known
}

// New returns the mutex of several locks, of any kind and from any sessions, in any order. It
// does no I/O. A lock that is named twice through one session is taken once, with a token if one of
// its handles is [rlock.Fenced]; the permits of a semaphore add up.
//
// The first operation reports that there are no locks, or a nil one ([rlock.ErrArgument]), and
// an empty name ([rlock.ErrName]). It asks Redis, and reports ErrArgument, if two sessions name
// the same lock of one Redis.
func New(parts ...Part) *Mutex {
	m := new(Mutex)
	if len(parts) == 0 {
		m.err = errNone
	}
	for _, p := range parts {
		l, err := newLock(p)
		if err != nil {
			m.err = err
			return m
		}
		m.locks = append(m.locks, l)
	}
	m.locks = arrange(m.locks)
	return m
}

// Parts returns the locks in the order of their keys, each once; nil for a Mutex that New could not make.
func (m *Mutex) Parts() []Part {
	if m == nil || m.err != nil {
		return nil
	}
	var parts []Part
	for _, l := range m.locks {
		parts = append(parts, l.Part)
	}
	return parts
}

var errNone = fmt.Errorf("%w: there are no locks; name at least one", rlock.ErrArgument)

// Lock waits until all of the locks are held. It takes them one after the other, in the order
// that the package documentation states. On the context of an open section of some of them it
// re-enters those.
//
// The returned context is that of the innermost section. It leads to each of the locks: a Lock
// of any of them on it re-enters. It is cancelled with a cause ([context.Cause]) as soon as one
// of them is: [rlock.ErrLost], [rlock.ErrClosed], [rlock.ErrReleased].
//
// Lock blocks until it holds all locks or ctx ends. [rlock.Wait] bounds the waiting for all of
// them together. [rlock.Lease] gives each of them a fixed lease, counted from when the last
// one was granted, and [rlock.AtLeast] has each of them stand from then. [rlock.Retry] makes Lock a
// series of rounds, each with one attempt at each lock.
//
// Errors are those of [rlock.Mutex.Lock]: [rlock.ErrNotAcquired] when the wait is over. On error
// the returned context is ctx, the hold is nil, and nothing is held: what was taken has been
// released, for which Lock may take up to Config.ReleaseTimeout more if a Redis does not answer.
func (m *Mutex) Lock(ctx context.Context, opts ...rlock.LockOption) (context.Context, *Hold, error) {
	section, h, err := m.lock(ctx, opts)
	if err != nil {
		return ctx, nil, fmt.Errorf("multilock: %w", err)
	}
	return section, h, nil
}

// TryLock is Lock without the waiting: it makes one attempt at each lock, in the same order,
// until one is refused. Then it releases the others and returns [rlock.ErrNotAcquired]; with
// [rlock.Retry] it begins anew.
func (m *Mutex) TryLock(ctx context.Context, opts ...rlock.LockOption) (context.Context, *Hold, error) {
	if o, _ := api.Collect(opts); o.Retry == nil {
		opts = append(opts[:len(opts):len(opts)], rlock.Wait(0))
	}
	return m.Lock(ctx, opts...)
}

// Do runs fn while holding all of the locks, with the context of Lock, and releases them when
// fn returns, panics or calls runtime.Goexit. It returns Lock's error, or fn's joined with
// Unlock's. A lost lock shows as [rlock.ErrLost] although fn did not notice.
func (m *Mutex) Do(ctx context.Context, fn func(context.Context) error, opts ...rlock.LockOption) (err error) {
	if fn == nil {
		return fmt.Errorf("multilock: do: %w: fn is nil", rlock.ErrArgument)
	}
	section, h, err := m.Lock(ctx, opts...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.Unlock()) }() // deferred: fn may panic
	return fn(section)
}

// patience is for how long a caller that holds some of the locks waits for another one in its
// first round. It doubles from round to round, so that locks with long waits are had at last.
// Then what is held is released, and the next round begins after a pause of up to an eighth.
// Callers that take the locks in this package's order do not need it. Others get their turn.
const patience = time.Second

// A try is one call of Lock.
type try struct {
	locks    []lock
	outer    context.Context // that Lock was given
	opts     []rlock.LockOption
	lease    time.Duration // fixed lease; 0: none
	atLeast  time.Duration // for how long they stand, also if they are unlocked before
	deadline time.Time     // of Wait; zero: none
	once     bool          // one attempt at each lock
	behind   int           // the lock that the last round has waited for in vain, by its index; 0: none, for it held no other
}

func (m *Mutex) lock(ctx context.Context, opts []rlock.LockOption) (context.Context, *Hold, error) {
	began := time.Now()
	o, err := api.Collect(opts)
	switch {
	case m == nil || m.locks == nil && m.err == nil:
		return nil, nil, fmt.Errorf("%w: the mutex is a zero value; make one with New", rlock.ErrArgument)
	case m.err != nil:
		return nil, nil, m.err
	case ctx == nil:
		return nil, nil, api.ErrNilContext
	case err != nil:
		return nil, nil, err
	case ctx.Err() != nil:
		return nil, nil, ctx.Err()
	}
	t := &try{outer: ctx, opts: opts, lease: o.Lease, atLeast: o.AtLeast}
	if o.Bounded {
		t.deadline = began.Add(o.Wait)
	}
	if t.locks, err = m.order(ctx, o, t.deadline); err != nil {
		return nil, nil, err
	}
	if o.Retry != nil {
		return t.series(ctx, o.Retry)
	}
	for bound := patience; ; bound = min(2*bound, time.Hour) {
		section, h, again, err := t.round(ctx, clock.Jitter(bound))
		if err == nil || !again {
			return section, h, err
		}
		if !t.pause(ctx, clock.Jitter(min(bound/8, time.Second))) {
			return nil, nil, over(ctx, err)
		}
		if err = t.standBy(ctx); err != nil {
			if passes(ctx, err) {
				err = over(ctx, err)
			}
			return nil, nil, err
		}
	}
}

// standBy waits, inside of a section, for the lock that the last round has waited for in vain, and holds none of the others
// meanwhile. That wait shows a deadlock of the sections around several multi-locks. Their rounds alone may not: of two that want
// one more lock both, each has that in turn when the other one waits for it, and gives way.
func (t *try) standBy(ctx context.Context) error {
	i := t.behind
	if t.behind = 0; i == 0 || !engine.LiesInSection(ctx) {
		return nil
	}
	opts := []rlock.LockOption{api.Keeps(t.outer)}
	if d, bounded := t.wait(false, 0); bounded {
		opts = append(opts, rlock.Wait(d))
	}
	_, hold, err := t.locks[i].Lock(ctx, opts...)
	if err == nil {
		_ = hold.Unlock() // the next round takes it in its turn
	}
	return err
}

// over is the error of a wait that is over; err is why the last round failed.
func over(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		err = fmt.Errorf("%w: %w", ctx.Err(), err)
	}
	return fmt.Errorf("%w: %w", rlock.ErrNotAcquired, err)
}

// round takes all locks, one after the other, or none. While it holds some it waits at most
// bound for each of the others. again says that the failure may pass.
func (t *try) round(ctx context.Context, bound time.Duration) (section context.Context, h *Hold, again bool, err error) {
	section, h = ctx, &Hold{locks: t.locks}
	midway := true
	defer func() {
		if midway { // a Part of the caller's has panicked, or ended the goroutine
			_ = h.Unlock()
		}
	}()
	for i := 0; i < len(t.locks) && err == nil; i++ {
		section, err = t.take(section, h, bound)
	}
	if n := len(t.locks); err == nil && t.lease > 0 && n > 1 { // the first ones have used up a part of it
		err = (&Hold{t.locks[:n-1], h.holds[:n-1]}).Extend(section, t.lease)
	}
	midway = false
	if err == nil {
		for _, hold := range h.holds {
			if t.atLeast > 0 { // not before: what is given back must be free
				(*engine.Hold)(hold).StandAtLeast(t.atLeast)
			}
		}
		return section, h, false, nil
	}
	again = passes(section, err) // before the section is ended here
	_ = h.Unlock()               // what is not confirmed is released in the background
	return nil, nil, again, err
}

// take takes the next lock.
func (t *try) take(section context.Context, h *Hold, bound time.Duration) (context.Context, error) {
	i := len(h.holds)
	opts := append(t.opts[:len(t.opts):len(t.opts)], api.Keeps(t.outer))
	if d, bounded := t.wait(i > 0, bound); bounded {
		opts = append(opts[:len(opts):len(opts)], rlock.Wait(d))
	}
	inner, hold, err := t.locks[i].Lock(section, opts...)
	switch {
	case err == nil:
		h.holds = append(h.holds, hold)
	case errors.Is(err, rlock.ErrNotAcquired):
		t.behind = i
	}
	return inner, err
}

// passes reports whether a round may succeed where one has failed with err: the wait for a lock
// was over, or a lock was lost meanwhile, which has ended its section.
func passes(section context.Context, err error) bool {
	return !errors.Is(err, rlock.ErrClosed) && !errors.Is(err, rlock.ErrDeadlock) && (errors.Is(err, rlock.ErrNotAcquired) || section.Err() != nil)
}

// wait returns for how long to wait for one lock, if that has a bound.
func (t *try) wait(holding bool, bound time.Duration) (time.Duration, bool) {
	if t.once {
		return 0, true
	}
	if t.deadline.IsZero() {
		return bound, holding
	}
	left := max(0, time.Until(t.deadline))
	if holding {
		left = min(left, bound)
	}
	return left, true
}

// pause sleeps before the next round, and reports whether there is one.
func (t *try) pause(ctx context.Context, d time.Duration) bool {
	if !t.deadline.IsZero() && time.Until(t.deadline) <= d {
		return false
	}
	return clock.Sleep(ctx, d) == nil
}
