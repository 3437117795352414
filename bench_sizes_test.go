package relock_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/semaphore"
)

// BenchmarkSizes has 32 sessions with one goroutine each want 1, 3 or 10 of 60 permits all the time, for 20 ms: in all
// 144 at a time. %-utilised is how much of the limit the sections take, each for as long as it takes on average. jain is
// Jain's index of the sessions' shares; acq-1, acq-3 and acq-10 are how often a session of each size was let in, on average.
func BenchmarkSizes(b *testing.B) {
	const limit, section = 60, 20 * time.Millisecond
	sizes := []int{1, 3, 10}
	s := redistest.Real(b)
	var lockers []locker
	for i, ses := range openMany(b, 32, s.Option()) {
		lockers = append(lockers, permitsLocker(ses, limit, sizes[i%len(sizes)]))
	}
	crowd := newCrowd(s, limit, lockers, section)
	for b.Loop() {
		crowd.run(b, sessionsWindow(b, len(lockers), section))
	}
	crowd.report(b)
	var rounds, sessions [3]int
	used, inside := 0.0, crowd.result.Inside.Seconds()/float64(crowd.result.Ops)
	for i, n := range crowd.result.PerWorker {
		k := i % len(sizes)
		rounds[k] += n
		sessions[k]++
		used += float64(n*sizes[k]) * inside
	}
	for k, size := range sizes {
		b.ReportMetric(float64(rounds[k])/float64(sessions[k]), fmt.Sprint("acq-", size))
	}
	b.ReportMetric(100*used/(limit*crowd.result.Elapsed.Seconds()), "%-utilised")
}

// permitsLocker acquires n permits of a semaphore.
func permitsLocker(s *rlock.Session, limit, n int) locker {
	m := semaphore.New(s, "sizes", limit)
	return func(ctx context.Context) (func() error, error) {
		_, p, err := m.Acquire(ctx, n)
		return p.Release, err
	}
}
