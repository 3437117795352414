// Package facade has what rlock.Mutex and fairlock.Mutex share and users do not see.
//
// rlock.Mutex is defined by [Mutex], so fairlock, too, can make one, with a primitive of
// its own. Users cannot: the fields have no exported names, and a defined type does not
// inherit methods.
package facade

import (
	"context"
	"fmt"
	"time"

	"relock/internal/engine"
	"relock/internal/kind"
	"relock/internal/lockerr"
	"relock/internal/lockopt"
	"relock/internal/mutex"
	"relock/internal/script"
)

// Primitive is an exclusive lock in Redisson's hash.
type Primitive interface {
	kind.Primitive

	// State replies with the TTL in ms, followed by each owner and its count.
	State() script.Command

	// ForceUnlock is for engine.Handle.ForceUnlock.
	ForceUnlock(owners []string) script.Command
}

// Mutex is a handle of a lock and the primitive that it is for.
type Mutex struct {
	handle engine.Handle
	prim   Primitive
}

// NewMutex returns a Mutex. err, if any, is what each of its operations returns.
func NewMutex(s *engine.Session, p Primitive, err error) *Mutex {
	return &Mutex{engine.NewHandle(s, p.Names(), err), p}
}

// Parts returns what m was made of, or an error if it is a zero value.
func (m *Mutex) Parts() (*engine.Handle, Primitive, error) {
	if m == nil || m.prim == nil {
		return nil, nil, fmt.Errorf("%w: the mutex is a zero value; make one with New", lockerr.ErrArgument)
	}
	return &m.handle, m.prim, nil
}

// Lock is engine.Handle.Lock. A zero value returns ctx and an error.
func (m *Mutex) Lock(ctx context.Context, wait bool, opts []lockopt.Option) (context.Context, *engine.Hold, error) {
	if m == nil || m.prim == nil {
		_, _, err := m.Parts()
		return ctx, nil, err
	}
	return m.handle.Lock(ctx, m.prim, 1, wait, opts)
}

// MutexOptions are what an rlock.MutexOption may set.
type MutexOptions struct {
	mutex.Fencing
	HasEnd bool // Fencing.Ends was given
}

// Collect applies the options of a mutex. Errors: lockerr.ErrArgument for a nil option, and for
// an end of the fencing token that cannot be.
func Collect[O ~func(*MutexOptions)](opts []O) (o MutexOptions, err error) {
	for _, opt := range opts {
		if opt == nil {
			return o, fmt.Errorf("%w: a nil MutexOption", lockerr.ErrArgument)
		}
		opt(&o)
	}
	if o.HasEnd && (o.Ends < time.Millisecond || o.Ends > lockopt.Longest) {
		return o, fmt.Errorf("%w: FencedFor(%v); it must be at least 1ms and at most %v", lockerr.ErrArgument, o.Ends, lockopt.Longest)
	}
	return o, nil
}
