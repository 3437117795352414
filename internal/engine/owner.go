package engine

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"relock/internal/keyname"
	"relock/internal/lockerr"
)

// ownerKey is where a context keeps its owner: the innermost section that it lies in
// (*section), a named owner (ownerName), or neither (private).
type ownerKey struct{}

type ownerName string

type private struct{}

// WithOwner names the owner of the locks that are taken with the returned context.
func WithOwner(ctx context.Context, id string) context.Context {
	if ctx == nil {
		return nil // for the Lock that is given it to report
	}
	return context.WithValue(ctx, ownerKey{}, ownerName(id))
}

// WithoutOwner returns a context on which every Lock is an outermost one of a private owner.
func WithoutOwner(ctx context.Context) context.Context {
	if ctx == nil || ctx.Value(ownerKey{}) == nil {
		return ctx
	}
	return context.WithValue(ctx, ownerKey{}, private{})
}

// OwnerFrom returns the named owner that a Lock with ctx would act for.
func OwnerFrom(ctx context.Context) (id string, ok bool) {
	for ctx != nil {
		switch v := ctx.Value(ownerKey{}).(type) {
		case *section:
			ctx = v.parent
		case ownerName:
			return string(v), true
		default:
			return "", false
		}
	}
	return "", false
}

// lineage returns what a context whose owner is innermost says about one lock of the session: the
// sections of that lock that it lies in, from the inside out, and the named owner around them. It fails
// if the context lies in an open section of another kind of lock under the same key, or if no owner can
// have the name. Which of the sections have ended is for the caller to sort out: only the lock's mutex
// tells. It runs code of the caller's contexts, so no mutex may be held.
func (s *Session) lineage(innermost any, family string, names *keyname.Names) (sections []*section, owner string, err error) {
	for {
		switch v := innermost.(type) {
		case *section:
			l := v.claim.lock
			switch {
			case l.s != s || l.Key() != names.Key():
			case v.claim.kind.Family == family:
				sections = append(sections, v)
			case !v.hasEnded():
				return nil, "", fmt.Errorf("%w: this owner holds the name as another kind of lock; each kind needs names of its own", ErrArgument)
			}
			innermost = v.parent.Value(ownerKey{})
		case ownerName:
			return sections, string(v), v.check()
		default:
			return sections, "", nil
		}
	}
}

// check returns why no owner can have that name.
func (n ownerName) check() error {
	id := string(n)
	if id == "" {
		return fmt.Errorf("%w: WithOwner with an empty id", ErrArgument)
	}
	if i := strings.LastIndexByte(id, ':'); i >= 0 {
		if _, ours := sessionIDs.Load(id[:i]); ours {
			return fmt.Errorf("%w: WithOwner(%s) has the shape of a session's own owner ids; name owners by something else", ErrArgument, lockerr.Quote(id))
		}
	}
	return nil
}

// sessionIDs are the ids of the sessions of this process: an owner id of a session's own
// making belongs to one claim, and no caller may act under it.
var sessionIDs sync.Map

// claimOf returns the claim of a named owner, nil if there is none.
func (l *lock) claimOf(name string) *claim {
	for c := l.claims; c != nil; c = c.next {
		if c.num == 0 && c.account.Owner() == name && (c.state == asking || c.sections != nil) {
			return c
		}
	}
	return nil
}
