package engine

import (
	"fmt"
	"sync/atomic"
	"time"

	"relock/internal/calls"
	"relock/internal/keyname"
	"relock/internal/kind"
)

// A Handle is what a caller holds of one lock of one session: made without I/O, safe for
// concurrent use, not to be copied after its first use.
type Handle struct {
	target
	calls  calls.Handle // by a name: a type that is defined by this one would get its methods too
	s      *Session     // nil if there is none, or one that New has not made
	names  *keyname.Names
	err    error // what every operation returns
	cached atomic.Pointer[lock]
}

// A target is what the handle locks: a primitive, with its kind at hand.
type target struct {
	prim Primitive // nil: nothing, or the handle is a zero value
	kind *Kind
	keep time.Duration // for how long the session keeps a lock that it has left; 0: not at all
}

// NewHandle returns a handle that locks p; if that is nil, a handle for calls. err, if any, is what
// every operation returns.
func NewHandle(s *Session, names *keyname.Names, p Primitive, err error) Handle {
	if s != nil && !s.made() {
		s = nil
	}
	var d *calls.Session
	if s != nil {
		d = &s.calls
		if liner, ok := p.(kind.Liner); ok && s.liners[p.Kind().Sort].Load() == nil { // an earlier process of this id may have waited
			s.liners[p.Kind().Sort].Store(&liner)
		}
	}
	t := target{prim: p}
	if p != nil {
		t.kind = p.Kind()
	}
	return Handle{calls: calls.NewHandle(d, names.Name(), err), target: t, s: s, names: names, err: err}
}

// Calls returns what runs scripts under the handle's name that concern no claim.
func (h *Handle) Calls() *calls.Handle { return &h.calls }

// Primitive returns what the handle locks; an error if it is a zero value.
func (h *Handle) Primitive() (Primitive, error) {
	if h == nil || h.prim == nil {
		return nil, errZeroMutex
	}
	return h.prim, nil
}

var errZeroMutex = fmt.Errorf("%w: the mutex is a zero value; make one with New", ErrArgument)

// Session returns the handle's session; nil for a zero value.
func (h *Handle) Session() *Session { return h.s }
