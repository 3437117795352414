package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"relock/internal/queue"
)

// A Handle is what a caller holds of one lock of one session: made without I/O, safe for
// concurrent use, not to be copied after its first use.
type Handle struct {
	s      *Session
	names  *Names
	err    error // what every operation returns
	cached atomic.Pointer[lock]
}

// NewHandle returns a handle. err, if any, is what every operation returns.
func NewHandle(s *Session, names *Names, err error) Handle {
	return Handle{s: s, names: names, err: err}
}

// Err returns why the handle cannot be used, if it cannot.
func (h *Handle) Err() error { return h.err }

// Session returns the handle's session.
func (h *Handle) Session() *Session { return h.s }

// An acquisition is one call of Lock or TryLock. It is reused by later calls.
type acquisition struct {
	request
	s     *Session
	lock  *lock
	claim *claim // that it asks for; nil as long as it has not asked
	op    Op     // the last attempt
	tries tries

	// interrupt ends what the acquisition sends.
	interrupt atomic.Pointer[context.CancelFunc]
	// given is the section that was handed to it in memory.
	given atomic.Pointer[section]

	// The waiter's part, guarded by the lock's mutex.
	node     queue.Node[acquisition]
	wake     chan struct{} // capacity 1
	queued   bool
	inRedis  bool  // it waits in a queue in Redis instead
	asking   bool  // an attempt is under way, or a subscription
	hopeless error // why its wait is
	arrived  int   // its number among those who have queued
}

// A request is what the caller wants.
type request struct {
	prim     Primitive
	ctx      context.Context
	opts     lockOptions
	n        int
	wait     bool
	foreign  bool   // ctx ends by means of its own
	named    string // the owner, if it is named
	start    time.Duration
	deadline time.Duration // of Wait; 0: none
}

// tries is what an acquisition remembers of its attempts.
type tries struct {
	err      error         // the client's, of the last one
	failures int           // in a row
	unheard  int           // failed subscriptions in a row
	unknown  bool          // one may have run whose outcome is not known
	mayCome  bool          // one whose outcome was never known may run late, even now
	doubted  time.Duration // when the first of those was sent
}

// Lock acquires p, n permits of it if it has permits; wait false is TryLock. Errors name the
// operation and the lock; then the context is the one given, and the hold nil.
func (h *Handle) Lock(ctx context.Context, p Primitive, n int, wait bool, opts []LockOption) (context.Context, *Hold, error) {
	hold, section, err := h.lock(ctx, p, n, wait, opts)
	if err != nil {
		op := "try lock"
		if wait {
			op = "lock"
		}
		return ctx, nil, opError(op, p, err)
	}
	return section, hold, nil
}

func (h *Handle) lock(ctx context.Context, p Primitive, n int, wait bool, opts []LockOption) (*Hold, context.Context, error) {
	switch {
	case h.err != nil:
		return nil, nil, h.err
	case ctx == nil:
		return nil, nil, errNilContext
	}
	o, err := collect(opts)
	if err != nil {
		return nil, nil, err
	}
	k := p.Kind()
	if k.Unleased && o.lease > 0 {
		return nil, nil, fmt.Errorf("%w: Lease has no meaning here; nothing is leased", ErrArgument)
	}
	var line lineage
	if !k.Permits {
		line = lineageOf(ctx, h.s, k.Family, h.names.Key())
		if err := line.check(); err != nil {
			return nil, nil, err
		}
	}
	if ctx.Err() != nil {
		return nil, nil, contextError(ctx)
	}
	a := h.s.spare.get()
	a.request = request{prim: p, ctx: ctx, opts: o, n: n, wait: wait && !(o.hasWait && o.wait == 0),
		foreign: foreign(ctx), named: line.owner, start: h.s.now()}
	if o.hasWait && o.wait > 0 && o.wait < longest {
		a.deadline = a.start + o.wait
	}
	a.s = h.s
	hold, section, err := h.acquire(a, line.sections)
	a.forget()
	return hold, section, err
}

// forget makes an acquisition ready for another call. Nobody else knows of it any more.
func (a *acquisition) forget() {
	select {
	case <-a.wake:
	default:
	}
	wake, s := a.wake, a.s
	*a = acquisition{}
	a.wake = wake
	s.spare.Put(a)
}

// spare has acquisitions for reuse, of one session: a channel must not leave the bubble in which
// a test with a made-up clock has made it.
type spare struct{ sync.Pool }

func (p *spare) get() *acquisition {
	if a, ok := p.Get().(*acquisition); ok {
		return a
	}
	return &acquisition{wake: make(chan struct{}, 1)}
}

// acquire decides what kind of Lock it is: nested in a section that ctx lies in, one more hold
// of a named owner, or an outermost one.
func (h *Handle) acquire(a *acquisition, sections []*section) (*Hold, context.Context, error) {
	for {
		l, err := h.lockFor(a.prim.Kind())
		if err != nil {
			return nil, nil, err
		}
		a.lock = l
		for _, x := range sections {
			if x.claim.lock == l && x.standing(h.s.now()) {
				return a.nest(x, false)
			}
		}
		if c := l.claimOf(a.named); c != nil {
			hold, section, err := a.nestNamed(c)
			if err == errAgain {
				continue
			}
			return hold, section, err
		}
		x, err := a.outermost()
		if err == errAgain {
			a.given.Store(nil)
			a.tries = tries{}
			a.start = h.s.now()
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		if x == nil { // a kind without leases: nothing is held
			return nil, a.ctx, nil
		}
		if a.foreign {
			x.cancellation()
		}
		h.s.cfg.Trace.acquired(a, x.claim, 1)
		return &x.first, x, nil
	}
}

// claimOf returns the claim of a named owner, nil if there is none. The lock's mutex must be
// held.
func (l *lock) claimOf(name string) *claim {
	if name != "" {
		for c := l.claims; c != nil; c = c.next {
			if c.num == 0 && c.more.owner == name && (c.state == asking || c.sections != nil) {
				return c
			}
		}
	}
	return nil
}

// outermost is a Lock of an owner that does not hold the lock. The lock's mutex must be held
// and is released. The section is nil if the kind has no leases.
func (a *acquisition) outermost() (*section, error) {
	l := a.lock
	if x := a.join(); x != nil {
		l.unlock()
		return x, nil
	}
	if q, ok := a.prim.(Queuer); ok {
		return a.finish(a.waitInRedis(q))
	}
	if !a.wait {
		if l.queue.Front() != nil && a.prim.Kind().Permits {
			l.unlock() // else a large request could be starved by small ones
			return nil, ErrNotAcquired
		}
		return a.finish(a.try())
	}
	a.enqueue()
	return a.finish(a.await())
}

// errAgain says that what the acquisition was about to enter has ended meanwhile.
var errAgain = errors.New("rlock: again")

// Do runs fn while holding p.
func (h *Handle) Do(ctx context.Context, p Primitive, n int, fn func(context.Context) error, opts []LockOption) (err error) {
	if fn == nil {
		return opError("do", p, fmt.Errorf("%w: fn is nil", ErrArgument))
	}
	section, hold, err := h.Lock(ctx, p, n, true, opts)
	if err != nil {
		return err
	}
	// Deferred, so that it also runs when fn panics or calls runtime.Goexit; then nobody is
	// there to take the release's error, and the panic goes on.
	defer func() { err = errors.Join(err, hold.Unlock()) }()
	return fn(section)
}
