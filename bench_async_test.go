package relock_test

import (
	"context"
	"testing"
	"time"

	"relock/fairlock"
	"relock/internal/test/redistest"
	"relock/internal/test/slownet"
	"relock/rlock"
	"relock/rwlock"
	"relock/semaphore"
)

// An asyncCycle takes a lock and gives it back, once with a wait for the release's answer and once without.
type asyncCycle struct {
	name        string
	wait, async func(ctx context.Context) error
}

func asyncHold(lock func(context.Context, ...rlock.LockOption) (context.Context, *rlock.Hold, error)) (wait, async func(context.Context) error) {
	cycle := func(end func(*rlock.Hold) error) func(context.Context) error {
		return func(ctx context.Context) error {
			_, h, err := lock(ctx)
			if err != nil {
				return err
			}
			return end(h)
		}
	}
	return cycle((*rlock.Hold).Unlock), cycle(func(h *rlock.Hold) error { h.UnlockAsync(); return nil })
}

func asyncPermits(m *semaphore.Semaphore) (wait, async func(context.Context) error) {
	cycle := func(end func(*semaphore.Permits) error) func(context.Context) error {
		return func(ctx context.Context) error {
			_, p, err := m.Acquire(ctx, 1)
			if err != nil {
				return err
			}
			return end(p)
		}
	}
	return cycle((*semaphore.Permits).Release), cycle(func(p *semaphore.Permits) error { p.ReleaseAsync(); return nil })
}

// BenchmarkAsync is one goroutine that takes a free lock and gives it back, all the time, 1 ms away from Redis and on
// the same machine. x-cycles is how many cycles it makes with UnlockAsync in the time of one with Unlock, in the same
// run; wait/s and async/s are both rates, and commands is what a cycle with UnlockAsync sends, as Redis counts.
func BenchmarkAsync(b *testing.B) {
	for _, far := range []time.Duration{time.Millisecond, 0} {
		for _, kind := range []string{"rlock", "fairlock", "read", "write", "semaphore"} {
			b.Run(far.String()+"/"+kind, func(b *testing.B) {
				s := redistest.Real(b)
				opt := s.Option()
				if far > 0 {
					opt.InitAddress = []string{slownet.New(b, s.Addr, far).Addr()}
				}
				ses, err := rlock.Dial(context.Background(), opt, rlock.Config{})
				if err != nil {
					b.Fatal(err)
				}
				defer func() { _ = ses.Close() }()
				c := asyncCycle{name: kind}
				switch kind {
				case "rlock":
					c.wait, c.async = asyncHold(rlock.New(ses, "x").Lock)
				case "fairlock":
					c.wait, c.async = asyncHold(fairlock.New(ses, "x").Lock)
				case "read":
					c.wait, c.async = asyncHold(rwlock.New(ses, "x").RLock)
				case "write":
					c.wait, c.async = asyncHold(rwlock.New(ses, "x").Lock)
				case "semaphore":
					c.wait, c.async = asyncPermits(semaphore.New(ses, "x", 1))
				}
				c.run(b, s)
			})
		}
	}
}

func (c asyncCycle) run(b *testing.B, s *redistest.Server) {
	var took [2]time.Duration
	var cycles [2]int
	var sent int
	for i, cycle := range []func(context.Context) error{c.wait, c.async} { // nothing is loaded for the first time from here on
		for range 20 {
			if err := cycle(b.Context()); err != nil {
				b.Fatal(i, err)
			}
		}
	}
	for b.Loop() {
		for i, cycle := range []func(context.Context) error{c.wait, c.async} {
			before, began := s.Commands(b)["evalsha"], time.Now()
			for time.Since(began) < 200*time.Millisecond {
				if err := cycle(b.Context()); err != nil {
					b.Fatal(i, err)
				}
				cycles[i]++
			}
			took[i] += time.Since(began)
			if i == 1 {
				sent += s.Commands(b)["evalsha"] - before
			}
		}
	}
	rate := func(i int) float64 { return float64(cycles[i]) / took[i].Seconds() }
	b.ReportMetric(rate(1)/rate(0), "x-cycles")
	b.ReportMetric(rate(0), "wait/s")
	b.ReportMetric(rate(1), "async/s")
	b.ReportMetric(float64(sent)/float64(cycles[1]), "commands")
}
