package quorum

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"relock/internal/api"
	"relock/internal/engine"
	"relock/internal/mutex"
	"relock/internal/script"
	"relock/rlock"
)

// Mutex is a lock under one name on several Redises, held while a majority of them has granted
// it. It is a handle: made without I/O. Safe for concurrent use. Goroutines that share a Mutex
// wait in one queue, so they should share it.
type Mutex struct {
	nodes []*node
	need  int           // votes: a majority
	lease time.Duration // the shortest of the sessions'
	bound time.Duration // for one node's answer
	pause rlock.Backoff // of a waiter
	id    string        // the same for all handles of the lock
	turn  chan struct{} // of the waiter that asks
	err   error         // what every operation returns
}

// New returns the mutex with that name on the Redises of the sessions, which must be
// independent of each other: no replicas of one another, no nodes of one Cluster. Three or five
// are usual; an even number tolerates no more failures than the odd one below it. New does no
// I/O. All processes must name the same Redises, and their sessions must have the same
// Config.Lease and Config.Prefix.
//
// The first operation reports an empty name ([rlock.ErrName]); no sessions, a nil one, one that
// is named twice, or one of a Redis Cluster ([rlock.ErrArgument]). Two sessions of the same
// Redis are not noticed; they count twice, for every caller.
func New(sessions []*rlock.Session, name string) *Mutex {
	m := &Mutex{need: len(sessions)/2 + 1, turn: make(chan struct{}, 1)}
	if len(sessions) == 0 {
		m.err = fmt.Errorf("%w: there are no sessions; name those of three or five independent Redises", rlock.ErrArgument)
	}
	var ids []string
	var longest time.Duration
	for i, session := range sessions {
		s := (*engine.Session)(session)
		names, err := s.Names(name)
		switch {
		case err != nil:
		case slices.Contains(sessions[:i], session):
			err = fmt.Errorf("%w: session %d is named twice; each Redis has one vote", rlock.ErrArgument, i)
		case s.Cluster():
			err = fmt.Errorf("%w: session %d is of a Redis Cluster; a quorum is of independent Redises", rlock.ErrArgument, i)
		}
		if err != nil {
			m.err = err
			return m
		}
		cfg := s.Config()
		n := &node{Primitive: mutex.New(names, mutex.Fencing{}), life: cfg.Prefix + "relock_quorum_life"}
		n.Handle = engine.NewHandle(s, n.Names(), n, nil)
		m.nodes = append(m.nodes, n)
		longest = max(longest, cfg.Lease)
		if i == 0 {
			m.lease, m.pause = cfg.Lease, rlock.Exponential(10*time.Millisecond, cfg.PollFloor)
			if cfg.Polling != nil {
				m.pause = cfg.Polling
			}
		}
		m.lease = min(m.lease, cfg.Lease)
		ids = append(ids, fmt.Sprintf("%q", []string{s.ID(), names.Key()}))
	}
	m.bound = max(10*time.Millisecond, min(m.lease/20, 500*time.Millisecond))
	for _, n := range m.nodes {
		n.settle = script.Millis(longest)
	}
	slices.Sort(ids)
	m.id = strings.Join(ids, " ")
	return m
}

// Lock waits until a majority of the Redises has granted the lock. It asks all of them at the
// same time, and returns with the majority's answer; those that answer later add to the votes.
//
// The returned context is the section's, derived from ctx. It is cancelled with a cause
// ([context.Cause]) when fewer than a majority of the votes can be trusted: [rlock.ErrLost], or
// [rlock.ErrClosed] if a session's Close has ended the deciding one; and with
// [rlock.ErrReleased] by Unlock. The votes are renewed for as long as ctx lives, each by its
// own session.
//
// Lock blocks until it holds the lock or ctx ends; [rlock.Wait] bounds only the waiting. A waiter
// looks again when a majority of the Redises has told of releases, and by the clock: with sleeps
// that double from 10 ms to Config.PollFloor, or by the Config.Polling of the first session. With
// [rlock.Retry] it looks by that alone.
//
// [rlock.Lease] gives the votes a fixed lease, at most Config.Lease of the sessions, which is
// not renewed. One round of questions takes at most a twentieth of Config.Lease, 500 ms at
// most, and about as long again to take votes back.
//
// Errors: [rlock.ErrNotAcquired] when the wait is over, which also matches ctx's error if that
// was why, and [rlock.ErrUnavailable] with the clients' errors if no majority of the Redises answered
// the last round; ctx's error alone if it was done before the call; ErrClosed if closed sessions
// leave no majority; Redis's own, at once, where so many refuse for good (WRONGTYPE, NOPERM) that
// there is none; [rlock.ErrArgument] for a nil or a named ctx ([rlock.WithOwner]: votes are
// private), and for a ctx that lies in an open section of this lock, which is not re-entrant;
// [rlock.ErrName]. On error the returned context is ctx, the hold is nil, and nothing is held:
// votes are released, or end with their leases.
func (m *Mutex) Lock(ctx context.Context, opts ...rlock.LockOption) (context.Context, *Hold, error) {
	return m.enter(ctx, "lock", opts)
}

// TryLock is Lock without the waiting: it makes one round of questions, or several with
// [rlock.Retry]. It returns [rlock.ErrNotAcquired] if a majority of the Redises has answered, and
// if not [rlock.ErrUnavailable] with the clients' errors. Of several callers at the same time it may
// be that none gets a majority.
func (m *Mutex) TryLock(ctx context.Context, opts ...rlock.LockOption) (context.Context, *Hold, error) {
	if o, _ := api.Collect(opts); o.Retry == nil {
		opts = append(opts[:len(opts):len(opts)], rlock.Wait(0))
	}
	return m.enter(ctx, "try lock", opts)
}

// Do runs fn while holding the lock, with the context of Lock, and releases it when fn returns,
// panics or calls runtime.Goexit. It returns Lock's error, or fn's joined with Unlock's.
func (m *Mutex) Do(ctx context.Context, fn func(context.Context) error, opts ...rlock.LockOption) (err error) {
	if fn == nil {
		return fmt.Errorf("quorum: do: %w: fn is nil", rlock.ErrArgument)
	}
	section, h, err := m.Lock(ctx, opts...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.Unlock()) }() // deferred: fn may panic
	return fn(section)
}

// enter is Lock and TryLock: it checks what was given, and acquires.
func (m *Mutex) enter(ctx context.Context, op string, opts []rlock.LockOption) (context.Context, *Hold, error) {
	t, err := m.newTry(ctx, opts)
	if err == nil {
		var x *section
		if x, err = t.acquire(ctx); err == nil {
			return x.ctx, &Hold{section: x}, nil
		}
		if ctx.Err() != nil { // also if that was between two rounds
			err = over(ctx, err)
		}
	}
	if m != nil && len(m.nodes) > 0 {
		op = fmt.Sprintf("%s %q", op, m.nodes[0].Names().Name())
	}
	return ctx, nil, fmt.Errorf("quorum: %s: %w", op, err)
}

// newTry checks the arguments of a Lock.
func (m *Mutex) newTry(ctx context.Context, opts []rlock.LockOption) (*try, error) {
	o, err := api.Collect(opts)
	switch {
	case m == nil || m.turn == nil:
		return nil, fmt.Errorf("%w: the mutex is a zero value; make one with New", rlock.ErrArgument)
	case m.err != nil:
		return nil, m.err
	case ctx == nil:
		return nil, api.ErrNilContext
	case err != nil:
		return nil, err
	case o.Lease > m.lease:
		return nil, fmt.Errorf("%w: Lease(%v); it must be at most Config.Lease, %v: for so long a restarted Redis gives no votes",
			rlock.ErrArgument, o.Lease, m.lease)
	case o.AtLeast > 0:
		return nil, fmt.Errorf("%w: AtLeast has no meaning here; it is for plain and fair locks, and for the write side", rlock.ErrArgument)
	case ctx.Err() != nil:
		return nil, ctx.Err()
	}
	if id, named := rlock.OwnerFrom(ctx); named {
		return nil, fmt.Errorf("%w: ctx names the owner %q; votes are private: use rlock.WithoutOwner", rlock.ErrArgument, id)
	}
	if x, _ := ctx.Value(sectionKey{m.id}).(*section); x != nil && x.ctx.Err() == nil {
		return nil, fmt.Errorf("%w: ctx lies in a section of this lock, which is not re-entrant", rlock.ErrArgument)
	}
	t := &try{m: m, retry: o.Retry}
	t.once = o.Bounded && o.Wait == 0 && t.retry == nil
	if o.Bounded {
		t.deadline = time.Now().Add(o.Wait)
	}
	if o.Lease > 0 {
		t.opts = []rlock.LockOption{rlock.Lease(o.Lease)}
	}
	return t, nil
}
