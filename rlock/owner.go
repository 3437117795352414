package rlock

import (
	"context"

	"relock/internal/holds"
)

// WithOwner names the owner of the locks that are taken with the returned context, and hides the
// sections that ctx lies in. Warning: holders with the same id, in this process or another, are let
// in together. Ten requests with one X-Request-Id, as a proxy's retries have it, are inside at
// once. So the id must be one that no other caller can send: make it where the work begins.
//
// The id stands in Redis as given. An empty one, or one that looks like a private owner of this
// process, is [ErrArgument] at the Lock. A named owner asks Redis before it queues, for it may be
// inside elsewhere. Where a failover has lost an Unlock, that hold stays counted in Redis for as long as
// the id is used again before the lease is over, and keeps others out: no process can tell whose it was.
func WithOwner(ctx context.Context, id string) context.Context { return holds.WithOwner(ctx, id) }

// WithoutOwner hides the owner that ctx names and the sections that it lies in: a Lock on the
// returned context is an outermost one, with a private owner. Goroutines of a section that must
// exclude each other need it. Warning: there, a Lock of what the caller itself holds waits for
// ever.
func WithoutOwner(ctx context.Context) context.Context { return holds.WithoutOwner(ctx) }

// OwnerFrom returns the owner that [WithOwner] has named for ctx; ok is false if there is none,
// also inside the section of a private owner.
func OwnerFrom(ctx context.Context) (id string, ok bool) { return holds.OwnerOf(ctx) }
