package simulate

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"relock/fairlock"
	"relock/rlock"
	"relock/rwlock"
	"relock/semaphore"
)

// A host is one process: a session, the link to Redis, and goroutines that take locks.
type host struct {
	number int
	world  *world
	link   *link
	ses    *rlock.Session
	ctx    context.Context // ends when it dies
	die    context.CancelFunc
}

// work takes locks until the time is over, or its process dies.
func (h *host) work(rng *rand.Rand) {
	w := h.world
	for {
		think := time.Duration(rng.ExpFloat64() * float64(w.think))
		select {
		case <-time.After(think):
		case <-h.ctx.Done():
			return
		}
		if !time.Now().Before(w.end) {
			return
		}
		h.once(rng, w.wants(rng))
	}
}

// once takes one lock, holds it for a while, and gives it back.
func (h *host) once(rng *rand.Rand, what want) {
	l := h.world.ledger
	ctx, cancel := context.WithCancel(h.ctx)
	defer cancel()
	var opts []rlock.LockOption
	patience := 24 * time.Hour
	switch rng.IntN(12) {
	case 0:
		patience = time.Duration(rng.IntN(2000)) * time.Millisecond
		opts = append(opts, rlock.Wait(patience))
	case 1:
		patience = time.Duration(rng.IntN(3000)) * time.Millisecond
		defer time.AfterFunc(patience, cancel).Stop()
	case 2:
		what.leased = true
		opts = append(opts, rlock.Lease(time.Duration(50+rng.IntN(3000))*time.Millisecond))
	}
	c := l.calls(h, what, patience)
	section, release, err := h.acquire(ctx, what, opts)
	if err != nil {
		l.leavesLine(c)
		h.expected(c, err)
		return
	}
	if !l.enters(c) {
		return
	}
	hold := time.Duration(rng.ExpFloat64() * float64(h.world.hold))
	if rng.IntN(30) == 0 {
		hold = h.world.cfg.Lease * 2
	}
	lost := stay(section, hold)
	if h.ctx.Err() == nil && lost == nil && what.downgrades {
		release, lost = h.downgrade(section, c, release, rng)
	}
	if h.ctx.Err() != nil {
		return // it has died
	}
	l.leaves(c, lost)
	if err := release(); err != nil || lost != nil {
		l.unknown(c)
	}
}

// downgrade takes the read side inside of the write side, which it gives back, and stays for a while; half of the time
// for none. It returns what gives back the rest, and why the section has ended meanwhile, if it has.
func (h *host) downgrade(section context.Context, c *caller, release func() error, rng *rand.Rand) (rest func() error, lost error) {
	_, nested, err := rwlock.New(h.ses, c.name).RLock(section)
	if err != nil {
		return release, nil
	}
	h.world.ledger.readsOn(c)
	err = release()
	if hold := time.Duration(rng.ExpFloat64() * float64(h.world.hold)); rng.IntN(2) == 0 {
		lost = stay(section, hold)
	}
	return func() error { return errors.Join(err, nested.Unlock()) }, lost
}

// stay is a while inside of a section. It returns why that has ended meanwhile; nil if it has not, or if its caller has
// given it up.
func stay(section context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-section.Done():
	}
	if cause := context.Cause(section); !errors.Is(cause, context.Canceled) {
		return cause
	}
	return nil
}

// expected says whether an acquisition may end so.
func (h *host) expected(c *caller, err error) {
	l := h.world.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case errors.Is(err, rlock.ErrNotAcquired), errors.Is(err, rlock.ErrUnavailable), errors.Is(err, context.Canceled), h.ctx.Err() != nil:
	default:
		l.fault("%s got the error %v", c, err)
	}
}

// acquire takes what is wanted.
func (h *host) acquire(ctx context.Context, w want, opts []rlock.LockOption) (section context.Context, release func() error, err error) {
	lock := rlock.New(h.ses, w.name).Lock
	switch {
	case w.kind == "semaphore":
		section, p, err := semaphore.New(h.ses, w.name, w.limit).Acquire(ctx, w.n, opts...)
		if err != nil {
			return nil, nil, err
		}
		return section, p.Release, nil
	case w.kind == "fair":
		lock = fairlock.New(h.ses, w.name).Lock
	case w.kind == "rw" && w.reads:
		lock = rwlock.New(h.ses, w.name).RLock
	case w.kind == "rw":
		lock = rwlock.New(h.ses, w.name).Lock
	}
	section, hold, err := lock(ctx, opts...)
	if err != nil {
		return nil, nil, err
	}
	return section, hold.Unlock, nil
}
