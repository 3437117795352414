package rlock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"relock/internal/idgen"
)

// Lock waits until p is held; see [Mutex.Lock]. It is for the packages that bring
// further primitives.
func (s *Session) Lock(ctx context.Context, p Primitive, opts ...LockOption) (context.Context, *Hold, error) {
	return s.lock(ctx, p, "lock", true, opts)
}

// TryLock takes p if nobody else holds it; see [Mutex.TryLock].
func (s *Session) TryLock(ctx context.Context, p Primitive, opts ...LockOption) (context.Context, *Hold, error) {
	return s.lock(ctx, p, "try lock", false, opts)
}

// Do runs fn while holding p; see [Mutex.Do].
func (s *Session) Do(ctx context.Context, p Primitive, fn func(context.Context) error, opts ...LockOption) (err error) {
	if fn == nil {
		return opError("do", p, fmt.Errorf("%w: fn is nil", ErrArgument))
	}
	section, h, err := s.Lock(ctx, p, opts...)
	if err != nil {
		return err
	}
	// Deferred, so that it also runs when fn panics or calls runtime.Goexit; then
	// nobody is there to take the release's error, and the panic goes on.
	defer func() { err = errors.Join(err, h.Unlock()) }()
	return fn(section)
}

func (s *Session) lock(ctx context.Context, p Primitive, op string, mayWait bool, opts []LockOption) (context.Context, *Hold, error) {
	section, h, err := s.doLock(ctx, p, mayWait, opts)
	if err != nil {
		return ctx, nil, opError(op, p, err)
	}
	return section, h, nil
}

func (s *Session) doLock(ctx context.Context, p Primitive, mayWait bool, opts []LockOption) (context.Context, *Hold, error) {
	if ctx == nil {
		return nil, nil, fmt.Errorf("%w: ctx is nil; use context.Background()", ErrArgument)
	}
	o, err := collect(opts)
	if err != nil {
		return nil, nil, err
	}
	owner := ownerOf(ctx)
	tr := p.Traits()
	if tr.Anonymous || tr.Fleeting {
		owner = nil
	}
	if tr.Fleeting && o.lease > 0 {
		return nil, nil, fmt.Errorf("%w: Lease has no meaning here; nothing is leased", ErrArgument)
	}
	if owner != nil && owner.id == "" {
		return nil, nil, fmt.Errorf("%w: WithOwner with an empty id", ErrArgument)
	}
	if owner != nil && owner.by != s {
		owner.share() // before the look whether ctx is done, see handOver
	}
	if err := s.enter(); err != nil {
		return nil, nil, err
	}
	defer s.leave()
	if err := ctx.Err(); err != nil {
		return nil, nil, ctxError(ctx)
	}
	a := &acquisition{s: s, p: p, o: o, caller: ctx, owner: owner, mayWait: mayWait && !(o.hasWait && o.wait == 0), start: s.now()}
	if o.hasWait && o.wait > 0 && o.wait < longest {
		a.deadline = a.start + o.wait
	}
	return a.run()
}

// ctxError is the error of a context that is done, with its cause in the text when
// that says more.
func ctxError(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if cause == nil || cause == err {
		return err
	}
	return fmt.Errorf("%w (%v)", err, cause)
}

// An acquisition is one call of Lock or TryLock.
type acquisition struct {
	s       *Session
	p       Primitive
	o       lockOptions
	caller  context.Context // as given
	owner   *ctxOwner       // as found in caller; nil: a new one is made
	mayWait bool
	start   time.Duration

	t        *tenure
	op       Op
	deadline time.Duration // of Wait; 0: none
	w        waiter
	line     *line
	spot     spot          // where it waits: itself, in the line, or a place in Redis
	sent     bool          // an attempt may have run whose outcome is not known
	doubted  time.Duration // when the first of those was sent
	mayCome  bool          // one whose outcome was never known may run late, even now
	came     int           // how many had queued up when the front asked last, itself included
	marked   bool          // an attempt may have left a mark, see Traits.Marks
	trying   bool          // an attempt is under way; guarded by Session.mu, as is
	handed   bool          // the lock was handed to it in memory
	host     *tenure       // in whose name Redis is asked, if it will have guests
	lastSent time.Duration
	lastErr  error // the client's, of the last attempt
	failures int   // in a row
	unheard  int   // failed subscriptions in a row
}

// lease is how long the hold lives without a renewal.
func (a *acquisition) lease() time.Duration {
	switch {
	case a.p.Traits().Fleeting:
		return Memory
	case a.o.lease > 0:
		return a.o.lease
	}
	return a.s.cfg.Lease
}

// Memory is for how long the scripts of a Fleeting primitive must remember the id of a
// request, counted from its last run. A request whose outcome is unknown is sent again
// only for so long; with the default client that is many connections later.
const Memory = time.Minute

// run finds out whether the owner holds the lock already, in this session, and then
// either nests or begins a tenure. An owner's acquisitions of one lock follow each
// other: counts must reach Redis in order.
func (a *acquisition) run() (context.Context, *Hold, error) {
	s := a.s
	if o := a.owner; o != nil && o.by != nil && o.by != s {
		if err := a.settled(o); err != nil {
			return nil, nil, err
		}
	}
	s.mu.Lock()
	for a.owner != nil {
		t := s.held[tenureKey{a.p.Key(), a.owner.id}]
		if t == nil {
			break
		}
		if t.prim.Channel() != a.p.Channel() {
			s.unlock()
			return nil, nil, fmt.Errorf("%w: this owner holds the name as another kind of lock; each kind needs names of its own", ErrArgument)
		}
		if !a.mayWait && (t.state == acquiring || t.behind) {
			s.unlock()
			return nil, nil, ErrNotAcquired // the owner itself waits for it, or for Redis
		}
		if t.busy {
			if err := a.waitTurn(t); err != nil {
				return nil, nil, err
			}
			continue // it may have ended, and another may have begun
		}
		return a.nest(t)
	}
	return a.begin()
}

// waitTurn returns with Session.mu held, or, without it, with an error.
func (a *acquisition) waitTurn(t *tenure) error {
	ctx, cancel := a.bounded(a.caller)
	defer cancel()
	if !a.mayWait { // for no longer than the operation that is under way should take
		ctx, cancel = context.WithTimeout(ctx, a.s.cfg.ReleaseTimeout)
		defer cancel()
	}
	if t.waitTurn(ctx) != nil {
		return a.ended(ctx)
	}
	return nil
}

// bounded returns ctx with the end that Wait set.
func (a *acquisition) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if a.deadline == 0 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, a.deadline-a.s.now())
}

// begin is the outermost Lock of an owner. Session.mu must be held and is released.
func (a *acquisition) begin() (context.Context, *Hold, error) {
	s := a.s
	if s.closed {
		s.unlock()
		return nil, nil, ErrClosed
	}
	traits := a.p.Traits()
	t := s.newTenure(a.caller, a.p, a.owner)
	a.t = t
	if host := a.shared(); host != nil {
		h := s.join(a, host)
		s.unlock()
		s.cfg.Trace.acquired(a.p.Name(), t.owner.id, 1, s.now()-a.start)
		return t, h, nil
	}
	// From here on the session knows of the tenure, so that there is no moment in
	// which a granted lock is unknown to Close.
	s.pending[t] = struct{}{}
	if a.owner != nil {
		t.busy = true
		s.held[tenureKey{a.p.Key(), t.owner.id}] = t
	}
	a.op = Op{Owner: t.owner.id, Lease: a.lease(), Draw: true, Wait: a.mayWait}
	if a.owner != nil || traits.Fleeting || traits.ByID {
		a.op.ID = idgen.Request() // others may know the owner
	}
	overtakes := false
	if q, ok := a.p.(Queuer); ok {
		a.spot = s.queue(a, q)
	} else {
		a.spot = a
		a.line = s.joinLine(a.p)
		overtakes = !a.mayWait && traits.Orderly && a.line.front != nil
		if a.mayWait {
			a.w.a = a
			a.line.enqueue(&a.w)
			if host := a.line.host; host != nil && traits.Exclusive {
				host.house.openUntil = min(host.house.openUntil, s.now()+shareAhead)
			}
			a.standBehind()
		}
	}
	s.unlock()
	if overtakes {
		return a.finish(grant{}, ErrNotAcquired)
	}
	ctx, cancel := a.bounded(t)
	defer cancel()
	g, err := a.wait(ctx)
	return a.finish(g, err)
}

// finish makes a hold of a grant, or takes everything back.
func (a *acquisition) finish(g grant, err error) (context.Context, *Hold, error) {
	s, t := a.s, a.t
	s.mu.Lock()
	if a.handed {
		return a.takeHanded()
	}
	delete(s.pending, t)
	delete(s.pending, a.host)
	if err == nil {
		// The race of the end against the grant is decided for the end.
		switch {
		case s.closed:
			err = ErrClosed
		case a.caller.Err() != nil:
			err = notAcquired(ctxError(a.caller), nil)
		}
	} else if s.closed && (errors.Is(err, context.Canceled) || errors.Is(err, ErrNotAcquired)) {
		err = ErrClosed
	}
	if err != nil {
		a.leave(nil)
		gone := a.giveBack(g)
		s.unlock()
		t.cancel(err)
		if a.p.Traits().Marks {
			briefly(gone)
		}
		return nil, nil, err
	}
	if a.p.Traits().Fleeting {
		a.leave(&g)
		s.unlock()
		t.cancel(ErrReleased)
		s.cfg.Trace.acquired(a.p.Name(), t.owner.id, 1, s.now()-a.start)
		return a.caller, nil, nil
	}
	h := s.admit(a, g)
	if t.doubtful {
		t.renewAt = s.now()
		s.reschedule(t)
	}
	a.leave(&g)
	t.passTurn()
	s.unlock()
	s.cfg.Trace.acquired(a.p.Name(), t.owner.id, 1, s.now()-a.start)
	return t, h, nil
}

// giveBack ends a failed outermost Lock: what may have been granted is released in
// the background, and only then may the owner begin anew, lest the release hit its
// next hold. The channel is closed when that is done. Session.mu must be held.
func (a *acquisition) giveBack(g grant) <-chan struct{} {
	s, t := a.s, a.t
	t.state = ended
	t.behind = true
	gone := make(chan struct{})
	done := func(bool) {
		if key := (tenureKey{a.p.Key(), t.owner.id}); s.held[key] == t {
			delete(s.held, key)
		}
		t.passTurn()
		close(gone)
	}
	late := a.mayCome && a.p.Traits().Fleeting // it would take for ever; the undo leaves word
	if !a.sent && !a.marked && !late && g.status != granted {
		done(true)
		return gone
	}
	if !s.undo(undoing{cmd: a.undoCommand(), name: a.p.Name(), until: s.now() + a.op.Lease, done: done}) {
		close(gone)
	}
	return gone
}

// briefly waits for what should take one round trip, and no longer when Redis does not
// answer: whoever leaves a queue should find himself gone from it.
func briefly(done <-chan struct{}) {
	timer := time.NewTimer(100 * time.Millisecond)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	}
}

// leave gives up the place in the line, or in Redis. won is the grant, nil if there is
// none. Session.mu must be held.
func (a *acquisition) leave(won *grant) {
	if pl, ok := a.spot.(*place); ok {
		a.s.leaveQueue(pl)
	}
	l := a.line
	if l == nil {
		return
	}
	a.line = nil
	wasFront := l.front == &a.w
	if a.mayWait && !a.handed {
		if unused := l.remove(&a.w); unused != nil {
			a.s.afterUnlock(unused.Close)
		}
	}
	switch {
	case a.p.Traits().Exclusive, a.handed:
	case won != nil && wasFront && !won.isEnoughFor(l.front):
		l.lookAt = a.nextLook(won.value)
	case won != nil || wasFront:
		l.nudge() // what let us in, or was not enough for us, may let in the next one
	}
	a.s.leaveLine(l)
}

// undoCommand takes back what the acquisition may have been granted.
func (a *acquisition) undoCommand() Command {
	op := Op{Owner: a.op.Owner, Holds: a.op.Holds}
	if a.op.ID != "" {
		op.Ends = []string{a.op.ID}
	}
	return a.p.Release(&op)
}

// jitter returns a time between half of d and d, so that many who failed together
// do not come back together.
func jitter(d time.Duration) time.Duration {
	return d/2 + time.Duration(rand.Int64N(int64(d)/2+1))
}

// itoa is for script arguments.
func itoa(n int64) string { return strconv.FormatInt(n, 10) }
