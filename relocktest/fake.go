package relocktest

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"relock/internal/api"
	"relock/rlock"
)

// Doer is the smallest interface of a lock: run a function while holding it. [rlock.Mutex],
// fairlock.Mutex and rwlock.RWMutex (its write side) implement it, and so does [Fake].
// Application code that depends on Doer can be tested without Redis.
type Doer interface {
	Do(ctx context.Context, fn func(context.Context) error, opts ...rlock.LockOption) error
}

// Fake is a lock inside the process. It excludes, it re-enters when Do is called with the
// context of its own section, and it fails when the test says so. The zero Fake is free and
// ready to use. It ignores options: a wait ends when its context ends. Its methods are safe for
// concurrent use. Do not copy a Fake.
type Fake struct {
	mu      sync.Mutex
	free    chan struct{} // closed when the section ends that holds the lock; nil when free
	end     context.CancelCauseFunc
	lost    bool
	refusal error
	waiting int
	changed chan struct{} // closed when the number of waiters changes
	entered int
}

// fakeSection is the key under which a section's context holds the Fake.free of the section.
type fakeSection struct{ f *Fake }

// Do waits until the lock is free, and runs fn while holding it. It returns fn's error. A
// section that [Fake.Lose] ended returns an error that matches [rlock.ErrLost] as well, and so
// does one that is nested in it. When ctx ends first, the error matches [rlock.ErrNotAcquired]
// and ctx's own error, and fn did not run. A ctx that has ended before the call gives its own error alone, and a nil ctx or fn
// [rlock.ErrArgument], as with a real lock.
func (f *Fake) Do(ctx context.Context, fn func(context.Context) error, _ ...rlock.LockOption) error {
	switch {
	case fn == nil:
		return fmt.Errorf("do: %w: fn is nil", rlock.ErrArgument)
	case ctx == nil:
		return fmt.Errorf("do: %w", api.ErrNilContext)
	case ctx.Err() != nil:
		return ctx.Err()
	}
	section, nested := ctx, f.open(ctx.Value(fakeSection{f}))
	if !nested {
		var err error
		if section, err = f.acquire(ctx); err != nil {
			return err
		}
		defer f.release() // also when fn panics
	}
	err := fn(section)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lost { // also of the section around this one: a nested Unlock finds the lock gone too
		return errors.Join(err, rlock.ErrLost)
	}
	return err
}

// open reports whether a section still holds the lock: a context may outlive its own.
func (f *Fake) open(section any) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.free != nil && section == f.free
}

func (f *Fake) acquire(ctx context.Context) (context.Context, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for {
		if err := ctx.Err(); err != nil {
			return nil, errors.Join(rlock.ErrNotAcquired, err)
		}
		if f.refusal != nil {
			return nil, f.refusal
		}
		if f.free == nil {
			f.free, f.lost = make(chan struct{}), false
			section, end := context.WithCancelCause(context.WithValue(ctx, fakeSection{f}, f.free))
			f.end = end
			f.entered++
			return section, nil
		}
		f.wait(ctx)
	}
}

// wait returns when the lock may be free, or ctx has ended. f.mu is held before and after.
func (f *Fake) wait(ctx context.Context) {
	free := f.free
	f.count(1)
	f.mu.Unlock()
	select {
	case <-free:
	case <-ctx.Done():
	}
	f.mu.Lock()
	f.count(-1)
}

// count changes the number of waiters. f.mu must be held.
func (f *Fake) count(by int) {
	f.waiting += by
	if f.changed != nil {
		close(f.changed)
		f.changed = nil
	}
}

func (f *Fake) release() {
	f.mu.Lock()
	free, end := f.free, f.end
	f.free = nil
	f.mu.Unlock()
	end(rlock.ErrReleased)
	close(free)
}

// Refuse makes every later Do return err without running its function, until Refuse(nil).
// Use [rlock.ErrNotAcquired] for a lock that another process holds, and rlock.ErrUnavailable
// for a Redis that cannot be reached.
func (f *Fake) Refuse(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refusal = err
}

// Lose ends the current section's context with the cause [rlock.ErrLost], as a lost lease
// does. It reports whether a section was open.
func (f *Fake) Lose() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.free == nil {
		return false
	}
	f.lost = true
	f.end(rlock.ErrLost)
	return true
}

// Held reports whether a section is open.
func (f *Fake) Held() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.free != nil
}

// Entered returns how many sections there have been, nested ones not counted.
func (f *Fake) Entered() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.entered
}

// AwaitWaiters blocks until at least n callers wait, or ctx ends, whose error it then returns.
func (f *Fake) AwaitWaiters(ctx context.Context, n int) error {
	for {
		f.mu.Lock()
		enough := f.waiting >= n
		if f.changed == nil {
			f.changed = make(chan struct{})
		}
		changed := f.changed
		f.mu.Unlock()
		if enough {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
