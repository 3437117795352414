package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/semaphore"

	"relock/internal/test/redistest"
	"relock/rlock"
)

// BenchmarkInProcess is the price of a lock that passes from goroutine to goroutine of one
// process in memory. It is compared with an in-process lock that can do the same: one whose
// Lock ends with a context, and whose section has a context that ends with a cause. Both are
// measured in turns, for as long each; the ratio is that of the times for one acquisition.
func BenchmarkInProcess(b *testing.B) {
	for _, goroutines := range []int{8, 64} {
		b.Run(fmt.Sprint("goroutines=", goroutines), func(b *testing.B) { inProcess(b, goroutines) })
	}
}

// turn is for how long each of the two is measured at a time.
const turn = 200 * time.Millisecond

// crowded is what goroutines have done in turns on one lock.
type crowded struct {
	shares         []int64 // acquisitions by each goroutine
	took           time.Duration
	mallocs, bytes uint64
}

func (c *crowded) ops() (n float64) {
	for _, s := range c.shares {
		n += float64(s)
	}
	return n
}

// fairness is Jain's index of the goroutines' shares: 1 if all are the same, 1/n if one has all.
func (c *crowded) fairness() float64 {
	squares := 0.0
	for _, s := range c.shares {
		squares += float64(s) * float64(s)
	}
	return c.ops() * c.ops() / (float64(len(c.shares)) * squares)
}

// run has all goroutines do a round again and again for one turn.
func (c *crowded) run(b *testing.B, round func() error) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	began := time.Now()
	var wg sync.WaitGroup
	for i := range c.shares {
		wg.Go(func() {
			for time.Since(began) < turn {
				if err := round(); err != nil {
					b.Error(err)
					return
				}
				c.shares[i]++
			}
		})
	}
	wg.Wait()
	c.took += time.Since(began)
	runtime.ReadMemStats(&after)
	c.mallocs += after.Mallocs - before.Mallocs
	c.bytes += after.TotalAlloc - before.TotalAlloc
}

func inProcess(b *testing.B, goroutines int) {
	s := redistest.Real(b)
	ctx := context.Background()
	session, err := rlock.Dial(ctx, s.Option(), rlock.Config{})
	if err != nil {
		b.Fatal(err)
	}
	defer session.Close()
	mutex := rlock.New(session, "x")
	inside := 0 // guarded by the lock that is measured
	ours := func() error {
		_, h, err := mutex.Lock(ctx)
		if err != nil {
			return err
		}
		inside++
		return h.Unlock()
	}
	theirs := inWeighted(ctx, &inside)

	redis, local := crowded{shares: make([]int64, goroutines)}, crowded{shares: make([]int64, goroutines)}
	if err := ours(); err != nil { // the scripts are loaded
		b.Fatal(err)
	}
	inside = 0
	commands := 0
	var ratios []float64
	for b.Loop() {
		wasRedis, wasLocal := redis, local
		rn, ln := redis.ops(), local.ops()
		s.ResetStats(b)
		redis.run(b, ours)
		commands += s.Commands(b)["evalsha"]
		local.run(b, theirs)
		perOp := func(c, was crowded, n float64) float64 { return float64(c.took-was.took) / (c.ops() - n) }
		ratios = append(ratios, perOp(redis, wasRedis, rn)/perOp(local, wasLocal, ln))
	}
	if want := redis.ops() + local.ops(); float64(inside) != want {
		b.Errorf("%d sections were counted, and %.0f ended", inside, want)
	}
	slices.Sort(ratios)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(ratios[len(ratios)/2], "ratio")
	b.ReportMetric(float64(commands)/redis.ops(), "commands/acq")
	for _, of := range []struct {
		name string
		c    *crowded
	}{{"rlock", &redis}, {"weighted", &local}} {
		of.c.report(b, of.name)
	}
}

// inWeighted returns what goes through a lock that is in this process alone, and counts itself inside.
func inWeighted(ctx context.Context, inside *int) func() error {
	weighted := semaphore.NewWeighted(1)
	released := errors.New("released")
	return func() error {
		section, cancel := context.WithCancelCause(ctx)
		if err := weighted.Acquire(section, 1); err != nil {
			cancel(err)
			return err
		}
		*inside++
		cancel(released)
		weighted.Release(1)
		return nil
	}
}

// report reports what an acquisition costs, and how fair it is.
func (c *crowded) report(b *testing.B, name string) {
	b.ReportMetric(float64(c.took)/c.ops(), name+"-ns/acq")
	b.ReportMetric(float64(c.mallocs)/c.ops(), name+"-allocs/acq")
	b.ReportMetric(float64(c.bytes)/c.ops(), name+"-B/acq")
	b.ReportMetric(c.fairness(), name+"-jain")
}
