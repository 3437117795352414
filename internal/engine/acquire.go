package engine

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"relock/internal/account"
	"relock/internal/api"
	"relock/internal/clock"
	"relock/internal/holds"
	"relock/internal/kind"
	"relock/internal/report"
	"relock/internal/waiting"
	"relock/locktrace"
)

// An acquisition is one call of Lock or TryLock. It is reused by later calls.
type acquisition struct {
	request
	lock      *lock
	claim     *claim // that it asks for; nil as long as it has not asked
	op        Op     // the last attempt
	attempts  attempts
	piggyback []*asyncRelease // that its next attempt sends in front of it, see piggyback.go

	// interrupt ends what the acquisition sends.
	interrupt atomic.Pointer[context.CancelFunc]
	// given is the section that another goroutine has opened for it: handed over in memory, or granted
	// to a run that it stands in.
	given atomic.Pointer[section]

	// undo ends the call if code of the caller's, which runs now, ends the goroutine; nil while none runs. See quit.
	undo func(*acquisition)

	waiter
	suspect *suspect    // if it waits inside of open sections
	nested  *Hold       // of a nested Lock that has not returned
	forRun  *attempt    // the last one for its run, for quitRun
	traced  report.Call // for the hooks
}

// A waiter is what an acquisition has while it waits. It is guarded by the lock's mutex.
type waiter struct {
	node        waiting.Node[acquisition]
	wake        clock.Wake
	queued      bool
	trying      bool // is counted by lock.trying
	subscribing bool
	letIn       bool  // with another caller, see endUnleased
	outside     bool  // it lies in no section of the session; known once it waits
	waitErr     error // why the wait ends without the lock; nil while it goes on
	arrived     int   // its number among those who have queued
	member      waiting.Member[claim, acquisition]
}

// A request is what the caller wants.
type request struct {
	*target
	ctx       context.Context
	opts      api.Options
	lease     time.Duration // how long the hold lives without a renewal
	safeLease time.Duration // the longest lease that its claim can trust; never: any. See exposed.go
	n         int
	wait      bool
	named     string // the owner, if it is named
	start     time.Duration
	deadline  time.Duration // of Wait or of a TryLock; 0: none
}

// attempts is what an acquisition remembers of the attempts that it has sent.
type attempts struct {
	account.Attempts
	stuck        bool          // is counted by s.outage
	refused      int           // in a session that polls, or with Retry
	pause        time.Duration // its last sleep; in a session that cannot subscribe, the next one
	sent         time.Duration // when its last attempt was sent,
	trip         time.Duration // and the time from there to the pause after it
	holder       holder        // who had the lock at the last refusal
	unsubscribed int           // failed subscriptions in a row
}

// Lock acquires what the handle locks, n permits of it if it has permits; wait false is TryLock.
// Errors name the operation and the lock, unless the handle is a zero value. With an error the context
// is the one given, and the hold nil.
func (h *Handle) Lock(ctx context.Context, n int, wait bool, opts []api.Option) (section context.Context, hold *Hold, err error) {
	if h == nil || h.prim == nil {
		return ctx, nil, errZeroMutex
	}
	r, sections, err := h.request(ctx, n, wait, opts)
	if err == nil {
		s := h.s
		a, _ := s.spare.Get().(*acquisition)
		if a == nil {
			a = &acquisition{waiter: waiter{wake: make(clock.Wake, 1)}}
		}
		a.request = r
		if s.trace != nil {
			s.trace.AcquireStart(ctx, &a.traced, about(a.prim, a.named, a.n), !a.wait)
		}
		if hold, section, err = h.acquire(a, sections); err != nil {
			err = a.nameHolder(err)
		}
		if a.attempts.stuck {
			s.outage.Leave(&a.attempts.stuck)
		}
		if a.suspect != nil {
			a.unblocked()
		}
		if s.trace != nil {
			a.traceEnd(s.trace, hold, err)
		}
		select {
		case <-a.wake:
		default:
		}
		*a = acquisition{waiter: waiter{wake: a.wake}}
		s.spare.Put(a) // no other goroutine knows of it any more
	}
	if err != nil {
		op := "try lock"
		if wait {
			op = "lock"
		}
		return ctx, nil, opError(op, h.prim, h.s.meanwhile(err))
	}
	return section, hold, nil
}

// request checks the arguments, and says what the caller wants and in which sections of the lock
// ctx lies.
func (h *Handle) request(ctx context.Context, n int, wait bool, opts []api.Option) (r request, sections []*section, err error) {
	switch {
	case h.err != nil:
		return r, nil, h.err
	case ctx == nil:
		return r, nil, api.ErrNilContext
	}
	s, k := h.s, h.kind
	r = request{target: &h.target, ctx: ctx, lease: s.cfg.Lease, n: n}
	if len(opts) > 0 {
		r.opts, err = api.Collect(opts)
	}
	switch {
	case err != nil:
	case k.Unleased && r.opts.Lease > 0:
		err = fmt.Errorf("%w: Lease has no meaning here; nothing is leased", ErrArgument)
	case k.Unleased && r.opts.Async:
		err = fmt.Errorf("%w: AsyncRelease has no meaning here; nothing is held that could be released", ErrArgument)
	case r.opts.AtLeast > 0 && !leaves(h.prim):
		err = fmt.Errorf("%w: AtLeast has no meaning here; it is for plain and fair locks, and for the write side", ErrArgument)
	case !k.Permits:
		if innermost := ctx.Value(holds.OwnerKey{}); innermost != nil { // else ctx has nothing of this package's
			sections, r.named, err = s.lineage(innermost, k.Family, h.names)
		}
	}
	switch {
	case err != nil:
		return r, nil, err
	case k.Unleased:
		r.lease = kind.Memory
	case r.opts.Lease > 0:
		r.lease = r.opts.Lease
	}
	if r.safeLease = never; r.named != "" || k.Shares {
		// What is renewed asks for no more than it can trust; a fixed lease stands as it was given.
		if r.safeLease = s.cfg.RedissonWatchdog; r.opts.Lease == 0 {
			r.lease = min(r.lease, r.safeLease)
		}
	}
	r.wait = wait && !(r.opts.Bounded && r.opts.Wait == 0) && r.opts.Retry == nil
	switch r.start = s.now(); {
	case !r.wait:
		r.deadline = r.start + s.cfg.TryTimeout()
	case r.opts.Bounded && r.opts.Wait < api.Longest:
		r.deadline = r.start + r.opts.Wait
	}
	return r, sections, nil
}

// acquire decides what kind of Lock it is: nested in a section that ctx lies in, one more hold
// of a named owner, or an outermost one.
func (h *Handle) acquire(a *acquisition, sections []*section) (*Hold, context.Context, error) {
	defer func() {
		if a.undo != nil {
			a.undo(a)
		}
	}()
	s, foreign := h.s, holds.Foreign(a.ctx) // before anything has begun, for it runs code of the caller's
	if a.ctx.Err() != nil {
		return nil, nil, api.OfContext(a.ctx)
	}
	for {
		if s.life.Draining.Load() && !s.inSection(a.around()) {
			return nil, nil, ErrClosed
		}
		l, err := h.lockFor()
		if err != nil {
			return nil, nil, err
		}
		a.lock = l
		for _, x := range sections {
			switch {
			case x.claim.lock != l:
			case x.isOpen(s.now()):
				return a.nest(x, false)
			default:
				x.claim.expire(s.now()) // so that this Lock does not nest in it
			}
		}
		if a.named != "" {
			if c := l.claimOf(a.named); c != nil {
				hold, section, err := a.nestNamed(c)
				if err == errAgain {
					continue
				}
				return hold, section, err
			}
		}
		x, err := a.outermost()
		switch {
		case err == errAgain:
			continue
		case err != nil:
			return nil, nil, err
		case x == nil: // a kind without leases: nothing is held
			return nil, a.ctx, nil
		case foreign:
			a.given.Store(x)
			a.undo = (*acquisition).quit
			x.ctx.Make()
			a.undo = nil
		}
		return &x.first, x, nil
	}
}

// outermost is a Lock of an owner that does not hold the lock. The lock's mutex must be held
// and is released. The section is nil if the kind has no leases.
func (a *acquisition) outermost() (x *section, err error) {
	l := a.lock
	var g answer
	if l.contention != nil && l.contention.keeper != nil {
		if x, err = a.reuse(); x != nil {
			l.unlock()
		}
		if x != nil || err != nil {
			return x, err
		}
	}
	switch {
	case l.share != nil && a.mayShare(l.share, l.s.now()):
		x = l.share.enter(a, l.s.now())
		a.traced.Grant = locktrace.GrantShared
		l.unlock()
		return x, nil
	case a.wait:
		a.node.Of, a.queued = a, true
		l.queue.Push(&a.node)
		if a.kind.Fair {
			l.arrive(a)
		} else if l.contention != nil || l.queue.First != &a.node { // else it is alone, as mostly
			a.enterContention()
		}
		g, err = a.loop()
	default:
		l.trying++
		a.trying = true
		g, err = a.try()
		a.trying = false
		l.trying--
	}
	if x := a.given.Load(); x != nil {
		return a.accept(x)
	}
	if err != nil {
		return nil, a.sleepBeforeRetry(a.fail(err))
	}
	if a.kind.Unleased {
		a.endUnleased(g.sent)
	} else if x = a.admit(g); a.opts.AtLeast > 0 {
		x.claim.standAtLeast(&a.opts)
	}
	a.leave(true)
	l.unlock()
	return x, nil
}

// errAgain has acquire start over. What the acquisition was about to enter has ended meanwhile; or a
// TryLock has slept before a further attempt. While it sleeps the lock knows nothing of it: other callers of
// its name would wait for it until it wakes up.
var errAgain = errors.New("rlock: again")
