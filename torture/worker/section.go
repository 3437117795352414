package worker

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"relock/rlock"
	"relock/rwlock"
	"relock/torture/oracle"
)

// tick is how often a section is looked at.
const tick = 4 * time.Millisecond

// goroutine is one caller in a worker.
type goroutine struct {
	*worker
	session *rlock.Session
	rnd     *rand.Rand
	running context.Context
	mine    []int         // the locks that this goroutine takes, by their numbers
	kept    locker        // in a rush, the one lock that it takes
	rest    time.Duration // in a rush, the longest time from one section to the next
}

// share gives the first goroutine of a worker the locks with long sections, and the others
// the rest.
func (g *goroutine) share(locks []Lock, first bool) {
	for i, l := range locks {
		if l.Long == first {
			g.mine = append(g.mine, i)
		}
	}
}

func (g *goroutine) work() {
	for g.running.Err() == nil {
		i := g.mine[g.rnd.IntN(len(g.mine))]
		switch {
		case g.Crowd:
			g.pass(i)
			continue
		case g.Rush:
			g.hurry(i)
			continue
		case g.Locks[i].Kind == Counter:
			g.count(i)
		case !g.Locks[i].Long && g.chance(10):
			g.together()
		default:
			g.section(g.running, i)
		}
		g.sleep(g.upTo(20 * time.Millisecond))
	}
}

func (g *goroutine) chance(percent int) bool { return g.rnd.IntN(100) < percent }

func (g *goroutine) upTo(d time.Duration) time.Duration {
	return time.Duration(g.rnd.Int64N(int64(max(d, 1))))
}

func (g *goroutine) sleep(d time.Duration) {
	select {
	case <-time.After(d):
	case <-g.running.Done():
	}
}

// section takes a lock, stays inside for a while, and leaves. At times it takes another one inside,
// on the section's context, so that sections lie in sections.
func (g *goroutine) section(parent context.Context, i int) {
	spec := &g.Locks[i]
	a, flags := g.attempt(spec)
	ctx, done, owner := g.context(parent, spec, flags)
	defer done()
	rec := g.log.Begin(oracle.Section, 0, i, owner, int64(a.n), flags)
	l := g.locker(g.session, spec)
	ctx, h, err := l.lock(ctx, a)
	rec.Returned()
	if err != nil {
		rec.Settle(g.refusal(i, rec, err))
		return
	}
	rec.Token(h.token)
	x := &section{g: g, parent: parent, lock: i, locker: l, a: a, rec: records{rec}, ctx: ctx, holds: []held{h}}
	rec.Settle(oracle.Held)
	rec.Inside(x.alive, x.left)
	if flags&oracle.Fixed == 0 && spec.Kind.Named() && g.chance(20) {
		x.nest()
	}
	if owner == 0 && !spec.Long && !g.calm.Load() && g.chance(15) {
		x.another()
	}
	x.stay(g.stay(spec), flags&oracle.Fixed != 0 && g.chance(30))
	x.leave(flags)
}

// refusal sorts the errors of a call that gave nothing. Every outage has to be marked as one;
// rec, if there is one, keeps it, so that it can be checked that something failed. An outage
// that ended a wait is not kept: a wait of a millisecond may end before any answer.
func (g *goroutine) refusal(lock int, rec interface{ Mark(uint8) }, err error) oracle.Outcome {
	switch {
	case errors.Is(err, rlock.ErrDeadlock): // locks are taken in one order, see another
	case errors.Is(err, rlock.ErrNotAcquired):
		return oracle.Refused
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return oracle.Refused
	case errors.Is(err, rlock.ErrLost), errors.Is(err, rwlock.ErrUpgrade):
		return oracle.Refused // of a named owner, whose other holds are elsewhere
	case errors.Is(err, rlock.ErrUnavailable):
		if rec != nil {
			rec.Mark(oracle.Outage)
		}
		return oracle.Failed
	}
	g.odd(lock, "an error that no fault explains: %v", err)
	return oracle.Failed
}

// section is one critical section of this goroutine.
type section struct {
	g      *goroutine
	parent context.Context
	lock   int
	locker locker
	a      attempt
	rec    records
	ctx    context.Context
	holds  []held // the last one is unlocked last
}

func (x *section) alive() bool         { return x.ctx.Err() == nil }
func (x *section) left() time.Duration { return x.holds[len(x.holds)-1].remaining() }
func (x *section) inside() bool        { return x.rec.Inside(x.alive, x.left) }

// nest takes the lock again, once or twice, on the section's own context.
func (x *section) nest() {
	x.rec.Mark(oracle.Nested)
	for range 1 + x.g.rnd.IntN(2) {
		a := attempt{read: x.a.read, n: 1, opts: []rlock.LockOption{rlock.Wait(2 * time.Second)}}
		_, h, err := x.locker.lock(x.ctx, a)
		if err != nil {
			x.g.refusal(x.lock, nil, err)
			return
		}
		x.holds = append(x.holds, h)
		x.inside()
	}
	x.g.rnd.Shuffle(len(x.holds), func(i, j int) { x.holds[i], x.holds[j] = x.holds[j], x.holds[i] })
}

// another takes a lock with a higher number inside of the section. Since all callers keep to that
// order, no cycle of waits comes about.
func (x *section) another() {
	g := x.g
	for _, i := range g.rnd.Perm(len(g.mine)) {
		if i = g.mine[i]; i > x.lock && g.Locks[i].Kind != Counter {
			g.section(x.ctx, i)
			x.inside()
			return
		}
	}
}

// stay looks at the section until d is over or its context ends.
func (x *section) stay(d time.Duration, extend bool) {
	for until := oracle.Now() + d; oracle.Now() < until && x.inside(); {
		select {
		case <-time.After(min(tick, max(until-oracle.Now(), 0))):
		case <-x.ctx.Done():
			return
		}
		if extend && x.holds[0].extend != nil && x.g.chance(5) {
			ctx, cancel := context.WithTimeout(x.ctx, 2*time.Second)
			_ = x.holds[0].extend(ctx, 50*time.Millisecond+x.g.upTo(2*time.Second)) // a failure changes nothing
			cancel()
		}
	}
}

// leave unlocks all holds.
func (x *section) leave(flags uint8) {
	for len(x.holds) > 1 {
		h := x.holds[0]
		x.holds = x.holds[1:]
		err := h.unlock()
		if err == nil && !x.alive() && errors.Is(context.Cause(x.ctx), rlock.ErrReleased) {
			x.g.odd(x.lock, "the section ended as released with %d holds left", len(x.holds))
		}
		x.inside()
	}
	x.inside()
	cause := context.Cause(x.ctx)
	x.rec.Ending()
	err := x.holds[0].unlock()
	x.rec.Over()
	x.rec.Settle(x.outcome(cause, err, flags))
}

// outcome tells how the section has ended. cause is why its context had ended before the
// unlock, nil if it had not.
func (x *section) outcome(cause, err error, flags uint8) oracle.Outcome {
	lost := errors.Is(cause, rlock.ErrLost)
	switch {
	case cause != nil && x.parent.Err() != nil && (err == nil || errors.Is(err, rlock.ErrLost)):
		return oracle.Expired // the context that was given has ended
	case lost && err == nil:
		x.g.odd(x.lock, "Unlock of a lost section says nil")
		return oracle.Lost
	case errors.Is(err, rlock.ErrNotHeld):
		x.g.odd(x.lock, "the first Unlock of a hold says: %v", err)
		return oracle.Failed
	case cause != nil && !lost:
		return oracle.Expired // the context that was given has ended
	case (lost || errors.Is(err, rlock.ErrLost)) && flags&oracle.Fixed != 0:
		return oracle.Expired
	case lost:
		return oracle.Lost
	case errors.Is(err, rlock.ErrLost):
		x.rec.Mark(oracle.Late)
		return oracle.Lost
	case err == nil:
		return oracle.Released
	case errors.Is(err, rlock.ErrUnavailable):
		x.rec.Mark(oracle.Outage)
		return oracle.Unknown
	}
	x.g.odd(x.lock, "Unlock: %v", err)
	return oracle.Failed
}
