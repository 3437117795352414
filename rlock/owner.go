package rlock

import "context"

type ownerKey struct{}

// ctxOwner is what a context knows of its owner.
type ctxOwner struct {
	id string
	// by is the session that made the id, nil for one that was named. Only that
	// session knows the owner's hold count; every other shares the owner.
	by *Session
	// maker is the tenure that it was made for; nil for one that was named.
	maker *tenure
}

// WithOwner names the owner of the locks that are taken with the returned context:
// a request or trace id. Holders with the same id, in this process or another,
// re-enter each other's lock; that is what the id says. It stands in Redis as given,
// and must not be empty: Lock answers an empty one with [ErrArgument].
//
// Without WithOwner every outermost Lock is an owner of its own, "<session
// id>:<number>". Operations of a named owner cost a little more inside Redis: since no
// process knows the whole count, each hold has an id there, in a set next to the lock
// ("relock_holds:{name}") that lives and dies with it. An id that came from OwnerFrom in
// another process may be used too, and is counted right; only if the first hold of its
// maker gets no answer to its release, or is lost without his notice, and the owner has
// entered the lock anew elsewhere before that release runs, can it meet the new hold. Who
// passes owners on should therefore name them.
func WithOwner(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, ownerKey{}, &ctxOwner{id: id})
}

// OwnerFrom returns the id of the owner that a Lock with ctx would act for, named
// with WithOwner or made by the Lock whose critical section ctx belongs to. ok is
// false if the next Lock would make a new one.
//
// It makes the id known: the lock that it was made for is not handed on from that owner in
// memory. If it just was, OwnerFrom waits until Redis has heard of that, one round trip as a
// rule; while Redis cannot be reached, until the lease is over.
func OwnerFrom(ctx context.Context) (id string, ok bool) {
	if o := ownerOf(ctx); o != nil {
		o.tell()
		return o.id, true
	}
	return "", false
}

// NamedOwner returns the owner that WithOwner has put into ctx, if that is whom a Lock with
// ctx would act for. Other than OwnerFrom it makes nothing known.
func NamedOwner(ctx context.Context) (id string, ok bool) {
	if o := ownerOf(ctx); o != nil && o.by == nil {
		return o.id, true
	}
	return "", false
}

func ownerOf(ctx context.Context) *ctxOwner {
	o, _ := ctx.Value(ownerKey{}).(*ctxOwner)
	if o == noOwner {
		return nil
	}
	return o
}

// noOwner hides the owner of an outer context.
var noOwner = new(ctxOwner)

func withoutOwner(ctx context.Context) context.Context {
	if ownerOf(ctx) == nil {
		return ctx
	}
	return context.WithValue(ctx, ownerKey{}, noOwner)
}

// share notes that somebody else than the session that made the owner may use it from
// here on.
func (o *ctxOwner) share() {
	if o.maker != nil {
		o.maker.shared.Store(true)
	}
}

// tell is share, and waits until what was handed over from the owner stands in Redis no
// more by its name: whoever is told of it could enter there. That ends with the lease if
// Redis is not heard of.
func (o *ctxOwner) tell() {
	o.share()
	t := o.maker
	if t == nil {
		return
	}
	s := t.s
	s.mu.Lock()
	if t.state != ended || t.transfer == nil || t.waitTurn(s.ctx) == nil {
		s.unlock()
	}
}
