package relocktest

import (
	"context"

	"relock/internal/holds"
)

// insideKey is the key under which a context that lies inside of a fake holds its inside.
type insideKey struct{ fake any }

// An inside is what of a fake a context lies in, and the owner that the context has there.
type inside struct {
	of    any // a *fakeSection, or a *fakeCandidate that leads
	owner any
}

// ownerHere stands for the owner of a context that has no other.
type ownerHere struct{ inside any }

// enter returns a context that lies in what a fake has opened.
func enter(ctx context.Context, fake, opened any) context.Context {
	in := inside{opened, ctx.Value(holds.OwnerKey{})}
	switch in.owner.(type) {
	case holds.Section, holds.OwnerName, *ownerHere:
	default: // there is nothing that WithoutOwner would hide, or tell from what it has hidden before
		in.owner = &ownerHere{opened}
		ctx = context.WithValue(ctx, holds.OwnerKey{}, in.owner)
	}
	return context.WithValue(ctx, insideKey{fake}, in)
}

// insideOf returns what of a fake ctx lies in, which may have ended; nil if ctx names or hides an owner
// inside of it.
func insideOf(ctx context.Context, fake any) any {
	in, _ := ctx.Value(insideKey{fake}).(inside)
	for owner := ctx.Value(holds.OwnerKey{}); owner != in.owner; {
		around, ok := owner.(holds.Section) // of a real lock, inside of this one
		if !ok {
			return nil
		}
		owner = around.Around().Value(holds.OwnerKey{})
	}
	return in.of
}
