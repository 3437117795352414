package holds

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"relock/internal/api"
)

// OwnerKey is where a context keeps its owner: the innermost [Section] that it lies in, a named owner (a
// [OwnerName]), or what [WithoutOwner] has put there, which is neither.
type OwnerKey struct{}

// A OwnerName is a named owner.
type OwnerName string

// A Section is what a Lock has put around its caller.
type Section interface {
	Around() context.Context // the context that the Lock was given
}

type private struct{}

// WithOwner names the owner of the locks that are taken with the returned context.
func WithOwner(ctx context.Context, id string) context.Context {
	if ctx == nil {
		return nil // for the Lock that is given it to report
	}
	return context.WithValue(ctx, OwnerKey{}, OwnerName(id))
}

// WithoutOwner returns a context on which every Lock is an outermost one of a private owner.
func WithoutOwner(ctx context.Context) context.Context {
	if ctx == nil || ctx.Value(OwnerKey{}) == nil {
		return ctx
	}
	return context.WithValue(ctx, OwnerKey{}, private{})
}

// OwnerOf returns the named owner that a Lock with ctx would act for.
func OwnerOf(ctx context.Context) (id string, ok bool) {
	for ctx != nil {
		switch v := ctx.Value(OwnerKey{}).(type) {
		case Section:
			ctx = v.Around()
		case OwnerName:
			return string(v), true
		default:
			return "", false
		}
	}
	return "", false
}

// sessions are the ids of the sessions of this process.
var sessions sync.Map

// ReserveOwners has owners of the shape of a session's own ids refused, until release is called: an owner id
// of a session's own making belongs to one claim, and no caller may act under it.
func ReserveOwners(session string) (release func()) {
	mine := new(int) // a later session may have the same id, and then has it reserved alone
	sessions.Store(session, mine)
	return func() { sessions.CompareAndDelete(session, mine) }
}

// Check returns why no owner can have that name.
func (n OwnerName) Check() error {
	id := string(n)
	if id == "" {
		return fmt.Errorf("%w: WithOwner with an empty id", api.ErrArgument)
	}
	if i := strings.LastIndexByte(id, ':'); i >= 0 {
		if _, ours := sessions.Load(id[:i]); ours {
			return fmt.Errorf("%w: WithOwner(%s) has the shape of a session's own owner ids; name owners by something else", api.ErrArgument, api.Quote(id))
		}
	}
	return nil
}
