package relocktest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"relock/internal/api"
	"relock/internal/holds"
	"relock/rlock"
)

// Doer is the smallest interface of a lock: run a function while holding it. [rlock.Mutex],
// fairlock.Mutex and rwlock.RWMutex (its write side) implement it, and so does [Fake].
// Application code that depends on Doer can be tested without Redis.
type Doer interface {
	Do(ctx context.Context, fn func(context.Context) error, opts ...rlock.LockOption) error
}

// Fake is a lock inside the process. It excludes, it re-enters when Do is called with the
// context of its own section, and it fails when the test says so. [rlock.WithOwner] and
// [rlock.WithoutOwner] decide who re-enters, as with a real lock. The zero Fake is free and
// ready to use. Of the options [rlock.Wait] bounds the wait, and a wrong one is refused; the others change nothing.
// Its methods are safe for concurrent use. Do not copy a Fake.
type Fake struct {
	mu      sync.Mutex
	now     *fakeSection // that holds the lock; nil when free
	refusal error
	waiting int
	changed chan struct{} // closed when the number of waiters changes
	entered int
}

// A fakeSection is what an owner has of a Fake. The Fake's mutex guards it.
type fakeSection struct {
	owner string        // its name; "" for a private one
	holds int           // calls of Do that are inside
	left  chan struct{} // closed when it does not hold the lock any more
	ends  []context.CancelCauseFunc
	lost  bool
}

// Do waits until the lock is free, and runs fn while holding it. It returns fn's error. A
// section that [Fake.Lose] ended returns an error that matches [rlock.ErrLost] as well, and so
// does one that is nested in it. When ctx ends first, the error matches [rlock.ErrNotAcquired]
// and ctx's own error, and fn did not run; when Wait is over first, [rlock.ErrNotAcquired]. A ctx that has ended before the call
// gives its own error alone, and a nil ctx or fn, a wrong option, or an owner that cannot have its name,
// [rlock.ErrArgument], as with a real lock.
func (f *Fake) Do(ctx context.Context, fn func(context.Context) error, opts ...rlock.LockOption) error {
	switch {
	case fn == nil:
		return fmt.Errorf("do: %w: fn is nil", rlock.ErrArgument)
	case ctx == nil:
		return fmt.Errorf("do: %w", api.ErrNilContext)
	case ctx.Err() != nil:
		return ctx.Err()
	}
	x, section, err := f.acquire(ctx, opts)
	if err != nil {
		return err
	}
	defer f.release(x) // also when fn panics
	err = fn(section)
	f.mu.Lock()
	defer f.mu.Unlock()
	if x.lost { // also of the section around this one: a nested Unlock finds the lock gone too
		return errors.Join(err, rlock.ErrLost)
	}
	return err
}

func (f *Fake) acquire(ctx context.Context, opts []rlock.LockOption) (*fakeSection, context.Context, error) {
	over, err := waitIsOver(opts)
	if err != nil {
		return nil, nil, fmt.Errorf("do: %w", err)
	}
	in, _ := insideOf(ctx, f).(*fakeSection)
	name, named := rlock.OwnerFrom(ctx)
	if named {
		if err := holds.OwnerName(name).Check(); err != nil {
			return nil, nil, fmt.Errorf("do: %w", err)
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for {
		if err := ctx.Err(); err != nil {
			return nil, nil, errors.Join(rlock.ErrNotAcquired, err)
		}
		if f.refusal != nil {
			return nil, nil, f.refusal
		}
		if in != nil && in == f.now { // a context may outlive its section
			return in, in.enter(ctx, f), nil
		}
		if f.now == nil {
			f.now = &fakeSection{owner: name, left: make(chan struct{})}
			f.entered++
			return f.now, f.now.enter(ctx, f), nil
		}
		if named && f.now.owner == name {
			return f.now, f.now.enter(ctx, f), nil
		}
		if !f.wait(ctx, f.now, over) {
			return nil, nil, fmt.Errorf("do: %w", rlock.ErrNotAcquired)
		}
	}
}

// waitIsOver returns what tells when the time of Wait is over: nothing, if there is no bound.
func waitIsOver(opts []rlock.LockOption) (<-chan time.Time, error) {
	all, _ := api.OfDo(opts)
	o, err := api.Collect(all)
	if err != nil || !o.Bounded {
		return nil, err
	}
	return time.After(o.Wait), nil
}

// enter returns the context of a Do that is inside. The Fake's mutex must be held.
func (x *fakeSection) enter(ctx context.Context, f *Fake) context.Context {
	section, end := context.WithCancelCause(enter(ctx, f, x))
	x.holds++
	x.ends = append(x.ends, end)
	return section
}

// wait returns when x has left the lock, or ctx has ended; false: when the time of Wait is over. f.mu is held before and
// after.
func (f *Fake) wait(ctx context.Context, x *fakeSection, over <-chan time.Time) bool {
	f.count(1)
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		f.count(-1)
	}()
	select {
	case <-x.left:
	case <-ctx.Done():
	case <-over:
		return false
	}
	return true
}

// count changes the number of waiters. f.mu must be held.
func (f *Fake) count(by int) {
	f.waiting += by
	if f.changed != nil {
		close(f.changed)
		f.changed = nil
	}
}

// release ends a Do, and the section with the last one.
func (f *Fake) release(x *fakeSection) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if x.holds--; x.holds == 0 && x == f.now {
		f.end(rlock.ErrReleased)
	}
}

// end ends the section that holds the lock. f.mu must be held.
func (f *Fake) end(cause error) {
	x := f.now
	f.now = nil
	for _, end := range x.ends {
		end(cause)
	}
	close(x.left)
}

// Refuse makes every later Do return err without running its function, until Refuse(nil): also one inside of
// an open section, which goes on. Use [rlock.ErrNotAcquired] for a lock that another process holds, and
// rlock.ErrUnavailable for a Redis that cannot be reached.
func (f *Fake) Refuse(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refusal = err
}

// Lose ends the current section's context with the cause [rlock.ErrLost], as a lost lease
// does. The lock is free then: the next caller may be inside before the function of the lost section
// has returned. It reports whether a section was open.
func (f *Fake) Lose() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.now == nil {
		return false
	}
	f.now.lost = true
	f.end(rlock.ErrLost)
	return true
}

// Held reports whether a section is open.
func (f *Fake) Held() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.now != nil
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
