package main

import (
	"context"
	"testing"
	"time"

	"golang.org/x/sync/semaphore"

	"relock/internal/test/redistest"
	"relock/rlock"
)

// BenchmarkKept is one goroutine with a lock that its session keeps (rlock.Keep), beside the lock in memory of the peers:
// a semaphore whose Acquire ends with a context, and whose section has a context that ends with a cause. Both run in
// turns, for as long each. x-bare is the same beside the semaphore alone, without a context for each section.
func BenchmarkKept(b *testing.B) {
	s, ctx := redistest.Real(b), context.Background()
	session, err := rlock.Dial(ctx, s.Option(), rlock.Config{Lease: time.Minute})
	if err != nil {
		b.Fatal(err)
	}
	defer session.Close()
	mutex := rlock.New(session, "x", rlock.Keep(30*time.Second))
	ours := func() error {
		_, h, err := mutex.Lock(ctx)
		if err != nil {
			return err
		}
		return h.Unlock()
	}
	weighted := semaphore.NewWeighted(1)
	inMemory := inMemoryCycle(weighted)
	waitable, cancel := context.WithCancel(ctx)
	defer cancel()
	kept, memory, bare := crowded{shares: make([]int64, 1)}, crowded{shares: make([]int64, 1)}, crowded{shares: make([]int64, 1)}
	if err := ours(); err != nil {
		b.Fatal(err)
	}
	commands := 0
	for b.Loop() {
		s.ResetStats(b)
		kept.run(b, ours)
		commands += s.Commands(b)["evalsha"]
		memory.run(b, func() error { return inMemory(ctx, false, func() {}) })
		bare.run(b, func() error {
			if err := weighted.Acquire(waitable, 1); err != nil {
				return err
			}
			weighted.Release(1)
			return nil
		})
	}
	rate := func(c *crowded) float64 { return c.ops() / c.took.Seconds() }
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(rate(&kept)/rate(&memory), "x-memory")
	b.ReportMetric(rate(&kept)/rate(&bare), "x-bare")
	b.ReportMetric(float64(commands)/kept.ops(), "commands/acq")
	kept.report(b, "rlock")
	memory.report(b, "weighted")
}
