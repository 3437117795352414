package relock_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"relock/internal/test/benchkit"
	"relock/internal/test/redistest"
)

// A crowd is goroutines that want one lock, and what they have seen in all windows so far.
type crowd struct {
	server  *redistest.Server
	at      int      // how many are inside at a time; 0: one
	lockers []locker // one for each goroutine
	section time.Duration
	gate    *benchkit.Gate

	result               benchkit.Result
	scripts, inner, subs int
	cpu                  time.Duration
}

func newCrowd(s *redistest.Server, at int, lockers []locker, section time.Duration) *crowd {
	c := &crowd{server: s, at: at, lockers: lockers, section: section, gate: benchkit.NewGate()}
	c.result.PerWorker = make([]int, len(lockers))
	return c
}

// run has all of them compete for one window. Nobody waits any more when it returns.
func (c *crowd) run(b *testing.B, window time.Duration) {
	b.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var open atomic.Bool // rounds that begin now count
	tallies := make([]tally, len(c.lockers))
	var wg sync.WaitGroup
	for i, m := range c.lockers {
		wg.Go(func() {
			if err := c.compete(ctx, m, &open, &tallies[i]); err != nil {
				b.Error(err)
				cancel()
			}
		})
	}
	pass(ctx, sessionsStart)
	c.server.ResetStats(b)
	used, began := cpu(b, c.server), time.Now()
	open.Store(true)
	pass(ctx, window)
	open.Store(false)
	c.result.Elapsed += time.Since(began)
	c.cpu += cpu(b, c.server) - used
	c.count(c.server.Commands(b))
	cancel()
	wg.Wait()
	for i, t := range tallies {
		c.result.Ops += t.rounds
		c.result.PerWorker[i] += t.rounds
		c.result.Waits = append(c.result.Waits, t.waits...)
		c.result.Inside += t.inside
	}
	if n := c.gate.Violations(); n > 0 {
		b.Errorf("mutual exclusion was violated %d times", n)
	}
	if b.Failed() {
		b.FailNow()
	}
}

// A tally is what one locker did in a window.
type tally struct {
	rounds int
	waits  []time.Duration
	inside time.Duration
}

// compete locks and releases again and again until ctx ends or something fails. Rounds count that begin while the window
// is open.
func (c *crowd) compete(ctx context.Context, lock locker, open *atomic.Bool, t *tally) error {
	for ctx.Err() == nil {
		began := time.Now()
		release, err := lock(ctx)
		entered := time.Now()
		counted := open.Load()
		if err != nil {
			t.waits = append(t.waits, entered.Sub(began)) // its wait was at least as long
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		c.gate.Enter(c.at == 0, c.at)
		if c.section > 0 {
			time.Sleep(c.section)
		}
		c.gate.Leave(c.at == 0)
		if counted {
			t.rounds++
			t.waits = append(t.waits, entered.Sub(began))
			t.inside += time.Since(entered)
		}
		if err := release(); err != nil {
			return err
		}
	}
	return nil
}

// pass lets the time pass, unless ctx ends.
func pass(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// count takes in the server's counts, in which a script and what it calls stand side by side.
func (c *crowd) count(calls map[string]int) {
	for name, n := range calls {
		switch command, _, _ := strings.Cut(name, "|"); command {
		case "evalsha", "eval":
			c.scripts += n
		case "subscribe", "unsubscribe", "ssubscribe", "sunsubscribe":
			c.subs += n
		case "info", "config", "hello", "ping", "client", "script":
			// These are ours, or belong to connections.
		default:
			c.inner += n
		}
	}
}

func (c *crowd) report(b *testing.B) {
	res, n := c.result, float64(len(c.lockers))
	starved := 0
	for _, got := range res.PerWorker {
		if got == 0 {
			starved++
		}
	}
	p99 := res.Wait(0.99)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(res.Rate(), "acq/s")
	b.ReportMetric(res.PerOp(float64(c.scripts)), "scripts/acq")
	b.ReportMetric(res.PerOp(float64(c.inner)), "inner/acq")
	b.ReportMetric(res.PerOp(float64(c.subs)), "subs/acq")
	b.ReportMetric(res.PerOp(float64(c.cpu.Nanoseconds())/1000), "server-µs/acq")
	b.ReportMetric(res.Jain(), "jain")
	b.ReportMetric(float64(starved), "starved")
	b.ReportMetric(100*(1-float64(starved)/n), "%-served")
	b.ReportMetric(float64(slices.Min(res.PerWorker)), "least")
	b.ReportMetric(float64(p99.Microseconds()), "µs-p99")
	b.ReportMetric(float64(res.Wait(1).Microseconds()), "µs-max")
	b.ReportMetric(p99.Seconds()*res.Rate()/n, "p99-turns")
	if c.section > 0 {
		b.ReportMetric(100*res.Rate()*c.section.Seconds()/float64(max(c.at, 1)), "%-possible")
		b.ReportMetric(100*res.Share(), "%-inside")
	}
}
