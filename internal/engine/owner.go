package engine

import (
	"context"
	"fmt"
	"strings"
	"sync"
)

// ownerKey is where a context keeps who acts: the innermost section that it lies in
// (*section), a named owner (ownerName), or neither (nobody).
type ownerKey struct{}

type ownerName string

type nobody struct{}

// WithOwner names the owner of the locks that are taken with the returned context.
func WithOwner(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, ownerKey{}, ownerName(id))
}

// WithoutOwner returns a context on which every Lock is an outermost one of a private owner.
func WithoutOwner(ctx context.Context) context.Context {
	if ctx.Value(ownerKey{}) == nil {
		return ctx
	}
	return context.WithValue(ctx, ownerKey{}, nobody{})
}

// OwnerFrom returns the named owner that a Lock with ctx would act for.
func OwnerFrom(ctx context.Context) (id string, ok bool) {
	for {
		switch v := ctx.Value(ownerKey{}).(type) {
		case *section:
			ctx = v.parent
		case ownerName:
			return string(v), true
		default:
			return "", false
		}
	}
}

// A lineage is what a context says about one lock of one session: the sections of that lock
// that it lies in, from the inside out, and the named owner around them.
type lineage struct {
	sections []*section
	named    bool
	owner    string
	// other: it lies in a section of another kind of lock under the same key.
	other bool
}

// lineageOf walks up from ctx. It runs code of the caller's contexts, so no mutex may be
// held. Sections that have ended are for the caller to sort out: only the lock's mutex tells.
func lineageOf(ctx context.Context, s *Session, family, key string) (l lineage) {
	for {
		switch v := ctx.Value(ownerKey{}).(type) {
		case *section:
			if lk := v.claim.lock; lk.s == s && lk.key == key {
				if lk.kind.Family == family {
					l.sections = append(l.sections, v)
				} else {
					l.other = l.other || !v.over()
				}
			}
			ctx = v.parent
		case ownerName:
			l.named, l.owner = true, string(v)
			return l
		default:
			return l
		}
	}
}

// check returns why an acquisition with this lineage cannot be.
func (l *lineage) check() error {
	switch {
	case l.other:
		return fmt.Errorf("%w: this owner holds the name as another kind of lock; each kind needs names of its own", ErrArgument)
	case !l.named:
		return nil
	case l.owner == "":
		return fmt.Errorf("%w: WithOwner with an empty id", ErrArgument)
	}
	if i := strings.LastIndexByte(l.owner, ':'); i >= 0 {
		if _, ours := sessionIDs.Load(l.owner[:i]); ours {
			return fmt.Errorf("%w: WithOwner(%q) has the shape of a session's own owner ids; name owners by something else", ErrArgument, l.owner)
		}
	}
	return nil
}

// sessionIDs are the ids of the sessions of this process: an owner id of a session's own
// making belongs to one claim, and nobody may act under it.
var sessionIDs sync.Map
