package worker

import (
	"context"
	"fmt"
	"time"

	"relock/rlock"
	"relock/torture/oracle"
)

// attempt chooses how to ask.
func (g *goroutine) attempt(spec *Lock) (attempt, uint8) {
	a, side := g.amount(spec)
	b, flags := g.bounds(spec.Long)
	a.try, a.opts = b.try, b.opts
	return a, side | flags
}

// amount chooses how much of a lock to ask for.
func (g *goroutine) amount(spec *Lock) (a attempt, flags uint8) {
	a.n = 1
	if spec.Kind == Semaphore {
		a.n = 1 + g.rnd.IntN(spec.Limit)
	}
	if spec.Kind == RW && g.chance(65) {
		a.read = true
		flags |= oracle.Read
	}
	return a, flags
}

// bounds chooses for how long to wait, and to hold.
func (g *goroutine) bounds(long bool) (a attempt, flags uint8) {
	switch {
	case long:
		a.opts = append(a.opts, rlock.Wait(8*time.Second))
		return a, flags
	case g.chance(15):
		a.try = true
		flags |= oracle.Try
	case g.chance(30):
		a.opts = append(a.opts, rlock.Wait(g.upTo(200*time.Millisecond)))
	default:
		a.opts = append(a.opts, rlock.Wait(g.upTo(8*time.Second)))
	}
	if g.chance(12) {
		a.opts = append(a.opts, rlock.Lease(50*time.Millisecond+g.upTo(min(2*time.Second, g.Lease-50*time.Millisecond))))
		flags |= oracle.Fixed
	}
	return a, flags
}

// context chooses the context of a call: at times with a named owner, at times one that ends
// while the command is on its way.
func (g *goroutine) context(parent context.Context, spec *Lock, flags uint8) (ctx context.Context, done func(), owner int) {
	ctx, done = parent, func() {}
	if spec.Long {
		return ctx, done, 0
	}
	if spec.Kind.Named() && flags&oracle.Fixed == 0 && g.chance(10) {
		owner = 1 + g.rnd.IntN(2)
		ctx = rlock.WithOwner(ctx, fmt.Sprintf("owner-%d", owner))
	}
	if g.chance(12) {
		ctx, done = context.WithTimeout(ctx, g.upTo(3*time.Millisecond))
	}
	return ctx, done, owner
}

// stay chooses how long a section lasts. A few outlive a lease that is not renewed.
func (g *goroutine) stay(spec *Lock) time.Duration {
	long, middle := 6, 10
	switch {
	case spec.Long && !g.calm.Load():
		return min(g.Lease/2+g.upTo(g.Lease*3/2), 10*time.Second)
	case g.calm.Load():
		long, middle = 2, 3
	}
	switch p := g.rnd.IntN(100); {
	case p < long:
		return g.upTo(min(2*g.Lease, 6*time.Second))
	case p < long+middle:
		return g.upTo(400 * time.Millisecond)
	default:
		return g.upTo(15 * time.Millisecond)
	}
}
