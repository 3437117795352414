package worker

import (
	"context"
	"time"

	"relock/fairlock"
	"relock/quorum"
	"relock/rlock"
	"relock/rwlock"
	"relock/semaphore"
)

// attempt is one call of Lock, or of what is called so elsewhere.
type attempt struct {
	read bool
	try  bool
	n    int // permits
	opts []rlock.LockOption
}

// held is what a call gave.
type held struct {
	unlock    func() error
	remaining func() time.Duration
	extend    func(context.Context, time.Duration) error // nil: there is no such thing
	token     int64
}

// locker is one kind of lock.
type locker interface {
	lock(ctx context.Context, a attempt) (context.Context, held, error)
}

// locker returns the lock as callers of the session see it.
func (w *worker) locker(s *rlock.Session, spec *Lock) locker {
	var keep []rlock.MutexOption
	if spec.Kept {
		keep = append(keep, rlock.Keep(w.Lease/4))
	}
	switch spec.Kind {
	case Fenced:
		return mutex{rlock.New(s, spec.Name, append(keep, rlock.Fenced())...)}
	case Fair:
		return mutex{fairlock.New(s, spec.Name)}
	case FairToken:
		return mutex{fairlock.New(s, spec.Name, rlock.Fenced())}
	case RW:
		return readWrite{rwlock.New(s, spec.Name, keep...)}
	case Semaphore:
		return permits{semaphore.New(s, spec.Name, spec.Limit)}
	case Quorum:
		return votes{w.quorums[spec.Name]}
	}
	return mutex{rlock.New(s, spec.Name, keep...)}
}

func ofHold(h *rlock.Hold) held {
	if h == nil {
		return held{}
	}
	return held{h.Unlock, h.Remaining, h.Extend, h.Token()}
}

// mutex is a lock of packages rlock and fairlock.
type mutex struct {
	m interface {
		Lock(context.Context, ...rlock.LockOption) (context.Context, *rlock.Hold, error)
		TryLock(context.Context, ...rlock.LockOption) (context.Context, *rlock.Hold, error)
	}
}

func (m mutex) lock(ctx context.Context, a attempt) (context.Context, held, error) {
	call := m.m.Lock
	if a.try {
		call = m.m.TryLock
	}
	ctx, h, err := call(ctx, a.opts...)
	return ctx, ofHold(h), err
}

type readWrite struct{ m *rwlock.RWMutex }

func (m readWrite) lock(ctx context.Context, a attempt) (context.Context, held, error) {
	call := m.m.Lock
	switch {
	case a.read && a.try:
		call = m.m.TryRLock
	case a.read:
		call = m.m.RLock
	case a.try:
		call = m.m.TryLock
	}
	ctx, h, err := call(ctx, a.opts...)
	return ctx, ofHold(h), err
}

type permits struct{ m *semaphore.Semaphore }

func (m permits) lock(ctx context.Context, a attempt) (context.Context, held, error) {
	call := m.m.Acquire
	if a.try {
		call = m.m.TryAcquire
	}
	ctx, p, err := call(ctx, a.n, a.opts...)
	if p == nil {
		return ctx, held{}, err
	}
	return ctx, held{p.Release, p.Remaining, p.Extend, 0}, err
}

type votes struct{ m *quorum.Mutex }

func (m votes) lock(ctx context.Context, a attempt) (context.Context, held, error) {
	call := m.m.Lock
	if a.try {
		call = m.m.TryLock
	}
	ctx, h, err := call(ctx, a.opts...)
	if h == nil {
		return ctx, held{}, err
	}
	return ctx, held{unlock: h.Unlock, remaining: h.Remaining}, err
}
