package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"relock/fairlock"
	"relock/internal/api"
	"relock/internal/engine"
	"relock/internal/idgen"
	"relock/rlock"
	"relock/rwlock"
	"relock/semaphore"
)

// lockFlags say which kind of lock run takes.
type lockFlags struct {
	fair, read, write, fenced bool
	permits, limit            int
	set                       func(name string) bool
}

func (f *lockFlags) register(flags *pflag.FlagSet) {
	flags.BoolVar(&f.fair, "fair", false, "a fair lock: first come, first served across all hosts")
	flags.BoolVar(&f.read, "read", false, "the read side of a read-write lock")
	flags.BoolVar(&f.write, "write", false, "the write side of a read-write lock")
	flags.BoolVar(&f.fenced, "fenced", false, "draw a fencing token, for the command in RELOCK_TOKEN")
	flags.IntVar(&f.permits, "permits", 0, "this many permits of a semaphore; with --limit")
	flags.IntVar(&f.limit, "limit", 0, "the semaphore's limit, set on its first use")
	f.set = flags.Changed
}

// check refuses flags that contradict each other.
func (f *lockFlags) check() error {
	kinds := 0
	for _, name := range []string{"fair", "read", "write", "permits"} {
		if f.set(name) {
			kinds++
		}
	}
	switch {
	case kinds > 1:
		return usage("--fair, --read, --write and --permits exclude each other: each is another kind of lock")
	case f.fenced && (f.read || f.write || f.set("permits")):
		return usage("--fenced is for a plain or a --fair lock")
	case f.set("permits") != f.set("limit"):
		return usage("--permits and --limit belong together: --permits 1 --limit 3")
	case f.set("permits") && f.permits < 1:
		return usage("--permits is %d; it must be at least 1", f.permits)
	case f.set("limit") && f.limit < f.permits:
		return usage("--limit is %d; it must be at least --permits, %d", f.limit, f.permits)
	}
	return nil
}

// held is a lock that run has, of whichever kind.
type held struct {
	ctx       context.Context
	owner     string
	token     int64
	release   func() error
	abandon   func() error
	stand     func() // until AtLeast is over, also if it is released before
	remaining func() time.Duration
	extend    func(ctx context.Context, d time.Duration) error
	extended  bool
}

// take acquires the lock that the flags describe.
func (f *runFlags) take(ctx context.Context, s *rlock.Session, name string) (*held, error) {
	var opts []rlock.LockOption
	if f.waits {
		opts = append(opts, rlock.Wait(f.wait))
	}
	if f.abandon {
		opts = append(opts, rlock.Lease(f.lease))
	}
	if f.atLeast > 0 {
		// From when the command has begun, and not before: what is given back without it must be free.
		opts = append(opts, rlock.AtLeast(f.atLeast), api.Keeps(ctx))
	}
	if f.lock.permits > 0 {
		return f.takePermits(ctx, s, name, opts)
	}
	lock := f.locker(s, name)
	section, h, err := lock(ctx, opts...)
	if taken := new(rlock.TakenError); errors.As(err, &taken) && taken.Owner != "" {
		return nil, fmt.Errorf("%w, for %v yet; 'relock show' says more", err, taken.TTL.Round(time.Millisecond))
	}
	if err != nil {
		return nil, err
	}
	got := &held{ctx: section, owner: h.Owner(), token: h.Token(), release: h.Unlock, abandon: h.Abandon, remaining: h.Remaining}
	got.extend = func(ctx context.Context, d time.Duration) error {
		got.extended = true
		return h.Extend(ctx, d)
	}
	if f.atLeast > 0 {
		got.stand = func() { (*engine.Hold)(h).StandAtLeast(f.atLeast) }
	}
	return got, nil
}

// locker returns the method that takes the lock.
func (f *runFlags) locker(s *rlock.Session, name string) func(context.Context, ...rlock.LockOption) (context.Context, *rlock.Hold, error) {
	var opts []rlock.MutexOption
	if f.lock.fenced {
		opts = append(opts, rlock.Fenced())
	}
	type methods interface {
		Lock(context.Context, ...rlock.LockOption) (context.Context, *rlock.Hold, error)
		TryLock(context.Context, ...rlock.LockOption) (context.Context, *rlock.Hold, error)
	}
	var m methods
	switch {
	case f.lock.fair:
		m = fairlock.New(s, name, opts...)
	case f.lock.read && f.try:
		return rwlock.New(s, name).TryRLock
	case f.lock.read:
		return rwlock.New(s, name).RLock
	case f.lock.write:
		m = rwlock.New(s, name)
	default:
		m = rlock.New(s, name, opts...)
	}
	if f.try {
		return m.TryLock
	}
	return m.Lock
}

// takePermits acquires permits of a semaphore.
func (f *runFlags) takePermits(ctx context.Context, s *rlock.Session, name string, opts []rlock.LockOption) (*held, error) {
	sem := semaphore.New(s, name, f.lock.limit)
	acquire := sem.Acquire
	if f.try {
		acquire = sem.TryAcquire
	}
	section, p, err := acquire(ctx, f.lock.permits, opts...)
	if errors.Is(err, semaphore.ErrLimit) {
		err = &exitError{exitUsage, err}
	}
	if err != nil {
		return nil, err
	}
	owner, _ := permitOwner(idgen.AppendPermits(nil, p.Owner(), 1)[0])
	return &held{ctx: section, owner: owner, release: p.Release}, nil
}
