package rlock

import (
	"context"

	"relock/internal/engine"
)

// WithOwner names the owner of the locks that are taken with the returned context.
//
// Warning: holders with the same id, in this process or another, are let in together. Ten
// requests with one X-Request-Id, as a proxy's retries have it, are inside at once. So the id
// must be one that nobody else can send: make it where the work begins. Goroutines that share
// the context re-enter each other too; [WithoutOwner] is for those that must not.
//
// The id stands in Redis as given. It hides the sections that ctx lies in. A nil ctx stays nil,
// which the Lock that gets it reports with [ErrArgument].
//
// Lock answers an id that is empty, or that this session has made for a private owner, with
// [ErrArgument]. A named owner asks Redis once before it queues, since it may hold the lock
// in another process. Redis keeps ids of its holds, in a set next to the lock.
func WithOwner(ctx context.Context, id string) context.Context { return engine.WithOwner(ctx, id) }

// WithoutOwner hides the owner that ctx names and the sections that it lies in: a Lock on the
// returned context is an outermost one, with a private owner. Goroutines of a section that
// must exclude each other need it. Warning: a Lock of what the caller itself holds waits for
// ever on such a context.
func WithoutOwner(ctx context.Context) context.Context { return engine.WithoutOwner(ctx) }

// OwnerFrom returns the owner that [WithOwner] has named for ctx. ok is false if there is
// none, also inside the section of a private owner.
func OwnerFrom(ctx context.Context) (id string, ok bool) { return engine.OwnerFrom(ctx) }
