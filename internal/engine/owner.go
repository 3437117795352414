package engine

import (
	"context"
	"fmt"
	"iter"

	"relock/internal/holds"
	"relock/internal/keyname"
)

// sectionKey is where a context keeps the innermost section that it lies in, for any owner: an
// owner that was named, or hidden, inside of a section does not lead out of it.
type sectionKey struct{}

// around returns the context whose sections stay when the caller gives up: see [api.Keeps].
func (a *acquisition) around() context.Context {
	if a.opts.Keeps != nil {
		return a.opts.Keeps
	}
	return a.ctx
}

// Around is for package holds.
func (x *section) Around() context.Context { return x.ctx.Parent }

// sectionsAround are those that ctx lies in, from the inside out, as far as the values under a key
// lead: sectionKey{}, or holds.OwnerKey{}. It runs code of the caller's contexts: no mutex may be held.
func sectionsAround(ctx context.Context, key any) iter.Seq[*section] {
	return func(yield func(*section) bool) {
		for x, ok := ctx.Value(key).(*section); ok && yield(x); x, ok = x.ctx.Parent.Value(key).(*section) {
		}
	}
}

// LiesInSection reports whether ctx lies in an open section of any session. It runs code of the caller's context: no mutex may
// be held.
func LiesInSection(ctx context.Context) bool {
	for x := range sectionsAround(ctx, sectionKey{}) {
		if !x.ctx.HasEnded() {
			return true
		}
	}
	return false
}

// lineage returns what a context whose owner is innermost says about one lock of the session: the
// sections of that lock that it lies in, from the inside out, and the named owner around them. It fails
// if the context lies in an open section of another kind of lock under the same key, or if no owner can
// have the name. The caller finds out which of the sections have ended: that needs the lock's
// mutex. It runs code of the caller's contexts, so no mutex may be held.
func (s *Session) lineage(innermost any, family string, names *keyname.Names) (sections []*section, named string, err error) {
	for {
		switch v := innermost.(type) {
		case *section:
			l := v.claim.lock
			switch {
			case l.s != s || l.Key() != names.Key():
			case v.claim.kind.Family == family:
				sections = append(sections, v)
			case !v.ctx.HasEnded():
				return nil, "", fmt.Errorf("%w: this owner holds the name as another kind of lock; each kind needs names of its own", ErrArgument)
			}
			innermost = v.ctx.Parent.Value(holds.OwnerKey{})
		case holds.OwnerName:
			return sections, string(v), v.Check()
		default:
			return sections, "", nil
		}
	}
}

// claimOf returns the claim of a named owner, nil if there is none.
func (l *lock) claimOf(name string) *claim {
	for c := l.claims; c != nil; c = c.next {
		if c.num == 0 && c.account.Owner == name && (c.state == asking || c.sections != nil) {
			return c
		}
	}
	return nil
}
