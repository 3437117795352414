package mutex

import (
	"fmt"
	"time"

	"relock/internal/api"
	"relock/internal/engine"
)

// handle.go has what rlock.Mutex and fairlock.Mutex share and users do not see.
//
// rlock.Mutex is defined by [engine.Handle], so fairlock, too, can make one, with a primitive of
// its own. Users cannot: the fields have no exported names, and a defined type does not
// inherit methods.

// NewHandle returns the handle of a mutex, which the session keeps for keep, if that is not 0. err, if any, is what each
// of its operations returns.
func NewHandle(s *engine.Session, p *Primitive, keep time.Duration, err error) *engine.Handle {
	h := engine.NewHandle(s, p.Names(), p, err)
	h.KeepFor(keep)
	return &h
}

// CheckKeep checks the option Keep of a lock that can be kept. Errors: api.ErrArgument.
func (o *Options) CheckKeep(s *engine.Session) error {
	if most := s.Config().Lease / 2; o.Keeps && (o.Keep < time.Millisecond || o.Keep > most) {
		return fmt.Errorf("%w: Keep(%v); it must be at least 1ms and at most half of Config.Lease, %v", api.ErrArgument, o.Keep, most)
	}
	return nil
}

// PrimitiveOf returns what m, which NewHandle has made, locks. It is an error if m is a zero value.
func PrimitiveOf(m *engine.Handle) (*Primitive, error) {
	p, err := m.Primitive()
	if err != nil {
		return nil, err
	}
	return p.(*Primitive), nil
}

// PrimitiveFor is PrimitiveOf for an operation that is about to begin. It is an error also if m has
// one.
func PrimitiveFor(m *engine.Handle, op string) (*Primitive, error) {
	p, err := PrimitiveOf(m)
	if err == nil {
		err = m.Calls().Check(op, nil)
	}
	return p, err
}

// Options are what an rlock.MutexOption may set.
type Options struct {
	Fencing
	HasEnd bool          // Fencing.Ends was given
	Keep   time.Duration // for how long the session keeps the lock
	Keeps  bool          // Keep was given
}

// CollectOptions applies the options of a mutex. Errors: api.ErrArgument for a nil option, and for
// an end of the fencing token that cannot be.
func CollectOptions[O ~func(*Options)](opts []O) (o Options, err error) {
	for _, opt := range opts {
		if opt == nil {
			return o, fmt.Errorf("%w: a nil MutexOption", api.ErrArgument)
		}
		opt(&o)
	}
	if o.HasEnd && (o.Ends < time.Millisecond || o.Ends > api.Longest) {
		return o, fmt.Errorf("%w: FencedFor(%v); it must be at least 1ms and at most %v", api.ErrArgument, o.Ends, api.Longest)
	}
	return o, nil
}
