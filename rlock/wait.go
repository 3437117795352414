package rlock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"relock/internal/idgen"
)

// wait is the wait loop: try, listen, try again, sleep.
func (a *acquisition) wait(ctx context.Context) (grant, error) {
	// An owner that others share may hold the lock elsewhere already, and the line
	// may be waiting for just that hold to end. So it asks for itself once before
	// it queues, and now and then while it is not in front.
	passes := a.owner != nil && a.owner.by != a.s
	outOfTurn := passes || !a.mayWait
	traced := false
	for {
		if !outOfTurn && !a.spot.mayTry() {
			if !traced {
				traced = true
				a.s.cfg.Trace.waiting(a.p.Name(), a.t.owner.id)
			}
			patience := time.Duration(0)
			if passes {
				patience = a.s.cfg.PollFloor
			}
			g, ask, err := a.spot.park(ctx, patience)
			if err != nil {
				return grant{}, a.ended(ctx)
			}
			if g.status == granted {
				return g, nil
			}
			outOfTurn = ask
			continue
		}
		g, err := a.attempt(ctx)
		switch {
		case err == nil && g.status == granted:
			return g, nil
		case err == nil && g.status == forGood:
			a.spot.failed() // it may have swallowed a wake-up
			return g, g.never(a.p)
		case err == nil && !a.mayWait:
			return g, ErrNotAcquired
		case err == nil:
			a.spot.refused(g)
		case ctx.Err() != nil:
			return g, a.ended(ctx)
		case classify(err) == refused || (!a.mayWait && a.giveUp(err)):
			return g, err
		default:
			if a.forgotten() {
				a.anew()
			}
			if a.backOff(ctx, a.failures, min(a.s.cfg.PollFloor, time.Second)) != nil {
				return g, a.ended(ctx)
			}
			continue
		}
		outOfTurn = false
		a.spot.listen(ctx)
	}
}

// A spot is where an acquisition waits: in the session's line, or, with a Queuer, at a
// place in Redis.
type spot interface {
	// mayTry says whether to ask Redis now.
	mayTry() bool
	// park waits until there may be something to do, or ctx ends. It returns a grant
	// if one was sent here; ask says that Redis must be asked whatever mayTry says.
	// patience is how long it lasts at most for one who is not in front; 0: no limit.
	park(ctx context.Context, patience time.Duration) (g grant, ask bool, err error)
	// refused notes what Redis said to an attempt, failed that it has not answered.
	refused(g grant)
	failed()
	// listen sees to it that messages are heard.
	listen(ctx context.Context)
}

// mayTry asks the line.
func (a *acquisition) mayTry() bool {
	a.s.mu.Lock()
	defer a.s.unlock()
	return a.line.mayTry(&a.w, a.s.now())
}

// park waits in the line.
func (a *acquisition) park(ctx context.Context, patience time.Duration) (grant, bool, error) {
	a.s.mu.Lock()
	handed := a.handed
	a.s.unlock()
	if handed {
		return grant{status: granted}, false, nil
	}
	timedOut, err := a.s.park(ctx, a.line, &a.w, patience)
	return grant{}, timedOut, err
}

// refused notes in the line when to look again.
func (a *acquisition) refused(g grant) {
	a.s.mu.Lock()
	defer a.s.unlock()
	a.trying = false
	if a.line.front == &a.w {
		a.line.run.taken()
		a.line.lookAt = a.nextLook(g.value)
	}
}

// nextLook is when to look again if Redis said that it is worth while in so many
// milliseconds (-1: it does not know).
func (a *acquisition) nextLook(ms int64) time.Duration {
	// Up to a tenth less than the floor, so that the waiters of many sessions do
	// not look all at once for ever.
	floor := a.s.cfg.PollFloor
	sleep := floor - time.Duration(rand.Int64N(int64(floor)/10+1))
	if ms >= 0 && ms < sleep.Milliseconds() {
		// PTTL is rounded down by up to a millisecond.
		sleep = time.Duration(ms+1) * time.Millisecond
	}
	return a.s.now() + max(sleep, minPause)
}

// failed: the attempt may have swallowed a wake-up; whoever is in front next must know.
func (a *acquisition) failed() {
	a.s.mu.Lock()
	defer a.s.unlock()
	a.trying = false
	if a.line.front == &a.w {
		a.line.look = true
	}
}

// listen subscribes, once for the line. Where that fails the front polls: the line
// has no listener, so the pause lies here, and the next round tries to subscribe
// again.
func (a *acquisition) listen(ctx context.Context) {
	s := a.s
	s.mu.Lock()
	need := !a.handed && a.line.front == &a.w && a.line.listener == nil && a.line.holder == nil
	a.trying = need // nothing can be handed to it meanwhile: it would not notice
	s.unlock()
	if !need {
		return
	}
	defer a.tried()
	// A server that does not answer must not keep the front from looking.
	bounded, cancel := context.WithTimeout(ctx, s.cfg.PollFloor)
	defer cancel()
	l, err := s.hub.Listen(bounded, a.line.key.channel)
	if err != nil {
		if ctx.Err() == nil {
			s.log.Debug("relock: no subscription, polling instead", "name", a.p.Name(), "error", err)
			a.backOff(ctx, a.unheard, a.s.cfg.PollFloor)
			a.unheard++
		}
		return
	}
	a.unheard = 0
	s.mu.Lock()
	if a.line.listener == nil && !a.handed {
		a.line.listener = l
		l = nil
	}
	// What was published before the confirmation is unknown; it does not matter if an own
	// owner has got the lock meanwhile.
	a.line.look = a.line.look || a.line.holder == nil
	s.unlock()
	if l != nil {
		l.Close()
	}
}

// tried notes that the acquisition waits again.
func (a *acquisition) tried() {
	a.s.mu.Lock()
	defer a.s.unlock()
	a.trying = false
}

// attempt asks Redis once.
func (a *acquisition) attempt(ctx context.Context) (grant, error) {
	s := a.s
	s.mu.Lock()
	if pl, ok := a.spot.(*place); ok {
		pl.look = false
	}
	if a.handed {
		s.unlock()
		return grant{status: granted}, nil
	}
	if a.line != nil {
		a.trying = true
		// Who is not in front asks for this once only, and leaves no mark.
		a.op.Wait = a.line.front == &a.w
		if a.op.Wait {
			a.invite()
			a.line.drain()
			a.line.look, a.line.run.echo = false, false
			a.came = a.line.limit.came
		}
	}
	s.unlock()
	g, err := s.tryAcquire(ctx, a.p, &a.op)
	a.settleAttempt(g, err)
	a.heardLimit(g)
	s.cfg.Trace.attempt(a.p.Name(), a.op.Owner, err == nil && g.status == granted, err)
	return g, err
}

// settleAttempt keeps account of what may have run.
func (a *acquisition) settleAttempt(g grant, err error) {
	if err == nil || !isCtxErr(err) {
		a.lastErr = err // that ctx ended the caller knows; why nothing came before is news
	}
	switch {
	case err == nil:
		a.failures = 0
		a.sent = g.status == granted
		a.lastSent = g.sent
		a.marked = a.marked || a.op.Wait && a.p.Traits().Marks && g.status == heldElse
	case classify(err) == unknown:
		if !a.sent {
			a.doubted = g.sent
		}
		a.mayCome = true
		a.sent = true
		a.lastSent = g.sent
		fallthrough
	default:
		a.failures++
		if a.spot != nil {
			a.spot.failed()
		}
	}
}

// errLate is a grant whose answer took longer than the lease it grants.
var errLate = errors.New("rlock: the reply came later than the lease it speaks of")

// tryAcquire runs the acquire script once. An error means that the lock is not
// known to be held; a grant is one that can still be trusted.
func (s *Session) tryAcquire(ctx context.Context, p Primitive, op *Op) (grant, error) {
	g := grant{sent: s.now()}
	var buf [6]int64
	reply, err := numbers(buf[:0], s.run(ctx, p.Acquire(op)))
	if err != nil {
		return g, err
	}
	if g.sized = len(reply) == 6; g.sized {
		g.free, g.limit = reply[4], reply[5]
	} else if len(reply) != 4 {
		return g, fmt.Errorf("%w: %d elements", errShape, len(reply))
	}
	g.status, g.value, g.token, g.changed = reply[0], reply[1], reply[2], reply[3] == 1
	if g.status == granted && s.now() >= g.sent+s.trustIn(op.Lease) {
		return g, errLate
	}
	return g, nil
}

// forgotten says that Redis may no longer remember an attempt with an unknown outcome:
// sent again, it might count twice.
func (a *acquisition) forgotten() bool {
	return a.sent && a.p.Traits().Fleeting && a.s.now() >= a.doubted+a.s.trustIn(Memory)
}

// anew gives up a request that Redis will not remember for much longer, and goes on with
// another one.
func (a *acquisition) anew() {
	s := a.s
	s.mu.Lock()
	defer s.unlock()
	s.undo(undoing{cmd: a.undoCommand(), name: a.p.Name(), until: s.now() + Memory})
	a.op.ID = idgen.Request()
	a.sent, a.mayCome = false, false
}

// giveUp says whether a TryLock shall stop after err. It goes on as long as the
// outcome is unknown: asking again is the only way to learn it.
func (a *acquisition) giveUp(err error) bool {
	return classify(err) != unknown || a.s.now() >= a.start+a.s.cfg.ReleaseTimeout
}

// backOff pauses after the n-th failure, jittered, doubling from 10 ms to most. The
// line may wake the pause.
func (a *acquisition) backOff(ctx context.Context, n int, most time.Duration) error {
	d := jitter(min(10*time.Millisecond<<min(n, 10), most))
	a.s.mu.Lock()
	if a.w.wake == nil {
		a.w.wake = make(chan struct{}, 1)
	}
	a.s.unlock()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-a.w.wake:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// ended says why the waiting ended with ctx.
func (a *acquisition) ended(ctx context.Context) error {
	if errors.Is(context.Cause(ctx), ErrClosed) || errors.Is(context.Cause(a.caller), ErrClosed) {
		return ErrClosed
	}
	if over, ok := context.Cause(ctx).(*tooMuch); ok {
		return over.err
	}
	if a.caller.Err() != nil {
		return notAcquired(ctxError(a.caller), a.lastErr)
	}
	return notAcquired(nil, a.lastErr) // Wait is over
}
