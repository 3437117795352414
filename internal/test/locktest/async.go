package locktest

import (
	"context"

	"relock/fairlock"
	"relock/rlock"
	"relock/rwlock"
	"relock/semaphore"
)

// An AsyncTake takes something of a kind, and returns what gives it back without waiting.
type AsyncTake func(ctx context.Context) (section context.Context, end func(), err error)

// asyncHold is that of the Lock of a mutex, or of a side of a read-write lock.
func asyncHold(lock LockFunc) AsyncTake {
	return func(ctx context.Context) (context.Context, func(), error) {
		section, h, err := lock(ctx)
		if err != nil {
			return nil, nil, err
		}
		return section, h.UnlockAsync, nil
	}
}

// asyncPermits is that of the Acquire of a semaphore.
func asyncPermits(acquire func(context.Context, int, ...rlock.LockOption) (context.Context, *semaphore.Permits, error), n int) AsyncTake {
	return func(ctx context.Context) (context.Context, func(), error) {
		section, p, err := acquire(ctx, n)
		if err != nil {
			return nil, nil, err
		}
		return section, p.ReleaseAsync, nil
	}
}

// An AsyncKind is the ways to take what excludes all others of its kind and name.
type AsyncKind struct {
	Name      string
	Lock, Try AsyncTake
	Other     AsyncTake // what the try excludes as well; nil: nothing
}

// AsyncKinds returns one of each kind, through one session.
func AsyncKinds(ses *rlock.Session, name string) []AsyncKind {
	m, f, rw, sem := rlock.New(ses, name+"plain"), fairlock.New(ses, name+"fair"), rwlock.New(ses, name+"rw"), semaphore.New(ses, name+"sem", 2)
	return []AsyncKind{
		{"plain", asyncHold(m.Lock), asyncHold(m.TryLock), nil},
		{"fenced", asyncHold(rlock.New(ses, name+"fenced", rlock.Fenced()).Lock), asyncHold(rlock.New(ses, name+"fenced", rlock.Fenced()).TryLock), nil},
		{"fair", asyncHold(f.Lock), asyncHold(f.TryLock), nil},
		{"rw", asyncHold(rw.Lock), asyncHold(rw.TryLock), asyncHold(rw.RLock)},
		{"semaphore", asyncPermits(sem.Acquire, 2), asyncPermits(sem.TryAcquire, 2), asyncPermits(sem.Acquire, 1)},
	}
}
