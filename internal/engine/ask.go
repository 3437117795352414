package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/rueidis"

	"relock/internal/lockerr"
	"relock/internal/script"
)

// grant is the decoded reply of an acquire script.
type grant struct {
	status int64
	value  int64 // holds, or milliseconds to wait (kinds with permits: always those)
	token  int64
	free   int64         // permits that are left for others
	limit  int64         // the most that one request may be for; below 0: anything
	sized  bool          // free and limit were told
	sent   time.Duration // when the attempt that was answered was sent
	doubts uint32        // the session's count at that time
	place  int64         // of a Queuer's entry
	asked  bool          // replicas were asked to acknowledge it, and did not
	// unconfirmed is for how long Redis keeps what a Queuer's message has granted.
	unconfirmed time.Duration
}

// The statuses of a grant, as the scripts return them.
const (
	granted = 1
	refused = 0
	notHeld = -1
	forGood = -2
)

// never returns the error of a grant that was refused for good.
func (g grant) never(p Primitive) error {
	if r, ok := p.(Refuser); ok {
		return r.Never(g.value)
	}
	return script.ErrShape
}

// errLate is a grant whose answer took longer than the lease that it grants.
var errLate = fmt.Errorf("%w: the reply came later than the lease it speaks of", ErrUnavailable)

// tryAcquire runs the acquire script once. An error means that the lock is not known to be
// held. Whether a grant came in time is for the caller to see: late.
func (s *Session) tryAcquire(ctx context.Context, p Primitive, op *Op, trusted time.Duration) (grant, error) {
	g := grant{sent: s.now(), doubts: s.conn.Doubts()}
	err := g.decode(s.run.Run(ctx, p.Acquire(op)), p, op)
	if err == nil && s.cfg.Replicas > 0 {
		err = s.acknowledged(ctx, &g, p, op, trusted)
	}
	return g, err
}

// packed is what separates the two numbers of a grant of permits that others have too: one number
// costs Redis less than a table. See acquire.lua of semaphore.
const packed = 1_000_000

// decode takes in the answer to an attempt, see tryAcquire.
func (g *grant) decode(r rueidis.RedisResult, p Primitive, op *Op) error {
	var buf [6]int64
	reply, err := script.Numbers(buf[:0], r)
	switch {
	case err != nil && script.IsContext(err):
		return err // how long Redis was waited for, the caller knows
	case err != nil:
		return lockerr.Unavailable(err)
	case len(reply) == 1 && p.Kind().Permits:
		free, ms := reply[0], op.Lease.Milliseconds()+1
		if free < 0 {
			ms, free = -free/packed, -free%packed
		}
		reply = append(reply[:0], granted, ms, 0, 1, free, -1)
	case len(reply) == 1 && reply[0] == granted:
		reply = append(reply, 1, 0, 1)
	case len(reply) != 4 && len(reply) != 6:
		return fmt.Errorf("%w: %d elements", script.ErrShape, len(reply))
	}
	if g.sized = len(reply) == 6; g.sized {
		g.free, g.limit = reply[4], reply[5]
	}
	g.status, g.value, g.token, g.place = reply[0], reply[1], reply[2], reply[3]
	return nil
}

// late returns an error for a grant that can be trusted no longer, or of a lease of which only so
// much can.
func (s *Session) late(g grant, trusted time.Duration) error {
	if g.status == granted && s.now() >= g.sent+trustIn(trusted) {
		return errLate
	}
	return nil
}

// ask sends one attempt of an outermost Lock. The lock's mutex must be held; it is released
// meanwhile and held again at the end.
func (a *acquisition) ask() (grant, error) {
	l := a.lock
	s := l.s
	op := a.attempt()
	c := a.claim
	a.asking, a.tries.underWay, c.flight = true, true, flying
	a.traced.Attempts++
	l.unlock()
	ctx, cancel := a.bounded()
	g, err := s.tryAcquire(ctx, a.prim, op, a.trusted)
	if err == nil && g.status == granted && a.ctx.Err() != nil {
		// The race of the end against the grant is decided for the end.
		err = lockerr.NotAcquired(lockerr.OfContext(a.ctx), nil)
	}
	cancel()
	c.traceAttempt(g, err)
	l.mu.Lock()
	if err == nil {
		err = s.late(g, a.trusted) // the hooks have run too by now
	}
	a.asking, a.tries.underWay, c.flight = false, false, landed
	a.note(g, err)
	if l.state == lockClosed {
		a.giveUp() // Close has left it to this goroutine
	}
	return g, err
}

// attempt prepares the claim that the acquisition asks for, and the command.
func (a *acquisition) attempt() *Op {
	l, k := a.lock, a.prim.Kind()
	if a.claim == nil {
		a.claim = l.newClaim(a)
	}
	c := a.claim
	op := &a.op
	*op = Op{Owner: c.ownerID(), N: a.n, Lease: a.lease, Private: c.num != 0,
		Wait: a.queued && l.queue.Front() == a}
	if c.more != nil {
		op.ID, op.ByIDs = c.firstID(), c.more.byIDs
	}
	if a.behind {
		op.Place = new(Place)
	}
	if k.Fenced {
		op.Tokens = c.reserving(l.wantTokens(a))
	}
	if b := l.lobby; b != nil && op.Wait {
		b.drain()
		b.look = false
		b.turns.Asked()
		b.limit.asked()
	}
	return op
}

// maxTokens bounds how many fencing tokens one acquisition reserves.
const maxTokens = 256

// wantTokens returns how many fencing tokens an acquisition reserves: one for itself, and one
// for each caller behind it that the claim may be passed on to.
func (l *lock) wantTokens(a *acquisition) int {
	n := 1
	if a.queued && l.s.cfg.HandOverLimit >= 0 {
		for w := a.node.Next(); w != nil && n < maxTokens; w = w.node.Next() {
			if w.prim.Kind().Fenced {
				n++
			}
		}
	}
	return n
}

// bounded returns a context for what the acquisition sends: it ends with the caller's, with
// the time that Wait gave, and with the session. It runs code of the caller's context.
func (a *acquisition) bounded() (ctx context.Context, cancel context.CancelFunc) {
	s := a.lock.s
	switch {
	case a.ctx.Done() == nil && !a.wait && a.tries.failures == 0:
		return s.life.attempts.At(s.now()), func() {}
	case a.ctx.Done() == nil && a.deadline == 0:
		return s.life.closing, func() {}
	}
	ctx, cancel = a.timed()
	if !a.queued { // Close does not find it
		end := cancel
		stop := context.AfterFunc(s.life.closing, end)
		return ctx, func() { stop(); end() }
	}
	interrupt := cancel
	a.interrupt.Store(&interrupt)
	if s.life.closing.Err() != nil { // Close has looked for interrupts already
		cancel()
	}
	return ctx, cancel
}

// timed returns a context that ends with the caller's and with the time that Wait gave. It runs
// code of the caller's context.
func (a *acquisition) timed() (context.Context, context.CancelFunc) {
	if a.deadline != 0 {
		return context.WithTimeout(a.ctx, a.deadline-a.lock.s.now())
	}
	return context.WithCancel(a.ctx)
}

// note keeps account of what may have run. The lock's mutex must be held.
func (a *acquisition) note(g grant, err error) {
	b := a.lock.lobby
	waits := b != nil && a.queued
	a.tries.heard = a.tries.heard || waits && b.answered
	a.noteTry(g, err)
	if waits {
		b.answered = a.tries.err == nil
	}
	if err != nil {
		if b != nil && a.lock.queue.Front() == a {
			b.look = true // it may have swallowed a wake-up; the next front must know
		}
	} else if a.prim.Kind().Registers && g.status == refused && a.op.Wait {
		a.claim.account().registered = true
	}
}

// patience is how long Redis may take to answer a caller that goes away meanwhile: if it has
// answered that caller before, or the one before in the queue, it does not count as
// unavailable.
const patience = 100 * time.Millisecond

// noteTry takes in the answer to an attempt, or its lack.
func (a *acquisition) noteTry(g grant, err error) {
	t, s := &a.tries, a.lock.s
	took := s.now() - g.sent
	switch {
	case g.asked && script.IsContext(err):
		t.heard = true
		if t.err == nil && took >= patience { // else how many have acknowledged the attempt before
			t.err = errNotYet
		}
	case err == nil || g.status == granted && script.IsContext(err):
		t.err, t.heard = nil, true
	case !script.IsContext(err):
		t.err = err
	case t.err == nil && (!t.heard || took >= patience):
		t.err = lockerr.ErrNoAnswer
	}
	if err == nil {
		t.failures, t.unknown = 0, g.status == granted
		if t.stuck || s.outage.on.Load() {
			a.leaveOutage()
			s.endOutage()
		}
		return
	}
	t.failures++
	if script.Classify(err) == script.Unknown {
		if !t.unknown {
			t.doubted = g.sent
		}
		t.unknown, t.mayCome = true, true
	}
	if a.wait {
		a.enterOutage(err)
	}
}

// forgotten says that Redis may no longer remember an attempt with an unknown outcome: sent
// again, it might count twice.
func (a *acquisition) forgotten() bool {
	return a.tries.unknown && a.prim.Kind().Unleased && a.lock.s.now() >= a.tries.doubted+trustIn(Memory)
}

// stopsTrying says whether a TryLock shall stop after err. It goes on as long as the outcome is
// unknown: asking again is the only way to learn it. What replicas lack is known.
func (a *acquisition) stopsTrying(err error) bool {
	if errors.As(err, new(*unacknowledged)) {
		return true
	}
	return script.Classify(err) != script.Unknown || a.lock.s.now() >= a.deadline
}

// whyStopped is the error of a TryLock that stops after err. The lock's mutex must be held; it
// is released meanwhile and held again at the end.
func (a *acquisition) whyStopped(err error) error {
	if !script.IsContext(err) {
		return err
	}
	a.lock.unlock()
	defer a.lock.mu.Lock()
	if a.done() {
		return a.ended()
	}
	return lockerr.ErrNoAnswer // rueidis was connecting with the context of another caller
}

// ended says why the waiting ended with the caller's context, or with the time that Wait gave.
// It runs code of the caller's context.
func (a *acquisition) ended() error {
	switch {
	case a.lock.s.life.closing.Err() != nil || a.lock.s.turnedAway(a.ctx):
		return ErrClosed
	case a.ctx.Err() != nil:
		return lockerr.NotAcquired(lockerr.OfContext(a.ctx), a.tries.err)
	}
	if !a.wait {
		err := a.tries.err
		if err == nil {
			err = lockerr.ErrNoAnswer
		}
		return fmt.Errorf("gave up after %v: %w", a.lock.s.tryTimeout(), err)
	}
	return lockerr.NotAcquired(nil, a.tries.err) // Wait is over
}

// done reports whether the caller's context or the time that Wait gave is over. It runs code
// of the caller's context.
func (a *acquisition) done() bool {
	return a.ctx.Err() != nil || a.deadline != 0 && a.lock.s.now() >= a.deadline || a.lock.s.life.closing.Err() != nil || a.lock.s.turnedAway(a.ctx)
}
