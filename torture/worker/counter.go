package worker

import (
	"context"
	"time"

	"relock/rlock"
	"relock/semaphore"
	"relock/torture/oracle"
)

// count takes from a counter and gives back, in one of several ways.
func (g *goroutine) count(i int) {
	c := semaphore.NewCounter(g.session, g.Locks[i].Name)
	n := 1 + g.rnd.IntN(3)
	switch g.rnd.IntN(6) {
	case 0:
		g.call(i, oracle.OpAdd, n, func(ctx context.Context) (int, error) { return n, c.Add(ctx, n) })
		g.call(i, oracle.OpAdd, -n, func(ctx context.Context) (int, error) { return -n, c.Add(ctx, -n) })
	case 1:
		if got, ok := g.call(i, oracle.OpDrain, 0, c.Drain); ok && got > 0 {
			g.release(i, c, got)
		}
	default:
		took := func(ctx context.Context) (int, error) { return n, c.TryAcquire(ctx, n) }
		if g.chance(60) {
			wait := rlock.Wait(g.upTo(time.Second))
			took = func(ctx context.Context) (int, error) { return n, c.Acquire(ctx, n, wait) }
		}
		if _, ok := g.call(i, oracle.OpAcquire, n, took); ok {
			g.sleep(g.upTo(10 * time.Millisecond))
			g.release(i, c, n)
		} else if g.chance(20) {
			g.release(i, c, 1) // what dead processes took is gone
		}
	}
}

func (g *goroutine) release(i int, c *semaphore.Counter, n int) {
	g.call(i, oracle.OpRelease, n, func(ctx context.Context) (int, error) { return n, c.Release(ctx, n) })
}

// call makes one call of a counter and writes down what is known about it.
func (g *goroutine) call(i int, op oracle.Op, n int, fn func(context.Context) (int, error)) (got int, ok bool) {
	// Not g.running: what was taken is to be given back.
	ctx, cancel := context.WithTimeout(context.Background(), 6*time.Second)
	defer cancel()
	if op == oracle.OpAcquire && g.chance(12) {
		ctx, cancel = context.WithTimeout(ctx, g.upTo(3*time.Millisecond))
		defer cancel()
	}
	rec := g.log.Begin(oracle.Count, op, i, 0, int64(n), 0)
	got, err := fn(ctx)
	rec.Returned()
	switch {
	case err == nil:
		rec.Count(int64(got))
		rec.Settle(oracle.Done)
	case op == oracle.OpAcquire:
		// On an error nothing was taken, whatever the error is.
		rec.Settle(oracle.Refused)
		g.refusal(i, rec, err)
	default:
		rec.Settle(oracle.Unknown)
		g.refusal(i, rec, err)
	}
	return got, err == nil
}
