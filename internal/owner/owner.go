// Package owner says for whom a Lock with a context acts: for an owner whom the caller has named, or for
// a private one, in the sections that the context lies in.
package owner

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"relock/internal/lockerr"
)

// Key is where a context keeps its owner: the innermost [Section] that it lies in, a named owner (a
// [Name]), or what [Without] has put there, which is neither.
type Key struct{}

// A Name is a named owner.
type Name string

// A Section is what a Lock has put around its caller.
type Section interface {
	Around() context.Context // the context that the Lock was given
}

type private struct{}

// With names the owner of the locks that are taken with the returned context.
func With(ctx context.Context, id string) context.Context {
	if ctx == nil {
		return nil // for the Lock that is given it to report
	}
	return context.WithValue(ctx, Key{}, Name(id))
}

// Without returns a context on which every Lock is an outermost one of a private owner.
func Without(ctx context.Context) context.Context {
	if ctx == nil || ctx.Value(Key{}) == nil {
		return ctx
	}
	return context.WithValue(ctx, Key{}, private{})
}

// From returns the named owner that a Lock with ctx would act for.
func From(ctx context.Context) (id string, ok bool) {
	for ctx != nil {
		switch v := ctx.Value(Key{}).(type) {
		case Section:
			ctx = v.Around()
		case Name:
			return string(v), true
		default:
			return "", false
		}
	}
	return "", false
}

// sessions are the ids of the sessions of this process.
var sessions sync.Map

// Reserve has owners of the shape of a session's own ids refused, until release is called: an owner id
// of a session's own making belongs to one claim, and no caller may act under it.
func Reserve(session string) (release func()) {
	mine := new(int) // a later session may have the same id, and then has it reserved alone
	sessions.Store(session, mine)
	return func() { sessions.CompareAndDelete(session, mine) }
}

// Check returns why no owner can have that name.
func (n Name) Check() error {
	id := string(n)
	if id == "" {
		return fmt.Errorf("%w: WithOwner with an empty id", lockerr.ErrArgument)
	}
	if i := strings.LastIndexByte(id, ':'); i >= 0 {
		if _, ours := sessions.Load(id[:i]); ours {
			return fmt.Errorf("%w: WithOwner(%s) has the shape of a session's own owner ids; name owners by something else", lockerr.ErrArgument, lockerr.Quote(id))
		}
	}
	return nil
}
