package benchkit

import (
	"context"

	"relock/fairlock"
	"relock/locktrace"
	"relock/rlock"
	"relock/rwlock"
	"relock/semaphore"
)

// Permits is the limit of the semaphore among Ours.
const Permits = 8

// relockSends is what sessions send: a script for everything, and subscriptions.
var relockSends = []string{
	"evalsha", "eval", "subscribe", "unsubscribe", "ssubscribe", "sunsubscribe",
}

// acquire is what all locks of this module have in common.
type acquire func(ctx context.Context) (release func() error, err error)

// Ours are the kinds of this module.
func Ours() []Kind {
	return []Kind{
		ours("rlock", 0, 0, func(s *rlock.Session, name string) (write, read acquire) {
			return locking(rlock.New(s, name).Lock), nil
		}),
		ours("fairlock", 0, 0, func(s *rlock.Session, name string) (write, read acquire) {
			return locking(fairlock.New(s, name).Lock), nil
		}),
		ours("rwlock", 95, 0, func(s *rlock.Session, name string) (write, read acquire) {
			m := rwlock.New(s, name)
			return locking(m.Lock), locking(m.RLock)
		}),
		ours("rwlock-read", 100, 0, func(s *rlock.Session, name string) (write, read acquire) {
			return nil, locking(rwlock.New(s, name).RLock)
		}),
		ours("rwlock-write", 0, 0, func(s *rlock.Session, name string) (write, read acquire) {
			return locking(rwlock.New(s, name).Lock), nil
		}),
		ours("semaphore", 100, Permits, func(s *rlock.Session, name string) (write, read acquire) {
			m := semaphore.New(s, name, Permits)
			return nil, func(ctx context.Context) (func() error, error) {
				_, p, err := m.Acquire(ctx, 1)
				if err != nil {
					return nil, err
				}
				return p.Release, nil
			}
		}),
	}
}

// Our returns one of them. It panics if there is none of that name.
func Our(name string) Kind {
	k, ok := Find(Ours(), name)
	if !ok {
		panic("benchkit: no kind " + name)
	}
	return k
}

func locking(lock func(context.Context, ...rlock.LockOption) (context.Context, *rlock.Hold, error)) acquire {
	return func(ctx context.Context) (func() error, error) {
		_, h, err := lock(ctx)
		if err != nil {
			return nil, err
		}
		return h.Unlock, nil
	}
}

func ours(name string, reads, readers int, sides func(s *rlock.Session, name string) (write, read acquire)) Kind {
	return Kind{
		Name: name, Sends: relockSends, Reads: reads, Readers: readers,
		Open: func(ctx context.Context, env Env) (*Handle, error) {
			cfg := rlock.Config{}
			if env.Waiting != nil {
				cfg.Trace = &rlock.Trace{Waiting: func(context.Context, locktrace.Waiting) { env.Waiting() }}
			}
			ses, err := rlock.Dial(ctx, Option(env.Addr), cfg)
			if err != nil {
				return nil, err
			}
			return &Handle{
				Worker: func(_ context.Context, name string) (Cycle, error) {
					write, read := sides(ses, name)
					return cycle(write, read), nil
				},
				Close: func() { _ = ses.Close() }, // what is left a lease ends
			}, nil
		},
	}
}

func cycle(write, read acquire) Cycle {
	return func(ctx context.Context, isWrite bool, inside func()) error {
		side := read
		if isWrite {
			side = write
		}
		release, err := side(ctx)
		if err != nil {
			return err
		}
		inside()
		return release()
	}
}
