package relock_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"relock/internal/test/benchkit"
	"relock/internal/test/redistest"
	"relock/rwlock"
)

// BenchmarkPhases has 64 sessions with one goroutine each lock all the time, one round of ten for writing. A phase is the
// section of one writer, or the sections of readers between two writers: where phases take turns, a writer waits for one
// of its own and one of the readers for each writer that came before it, itself among them. The phases of a wait, divided
// by these writers, are phases/writer, 99 % of the waits have at most so many; passed is how many writers went in while
// a reader waited, at most. They are counted from outside, in the order in which goroutines of this process get to run,
// so that one phase or two of a wait may be those before its command came to Redis.
func BenchmarkPhases(b *testing.B) {
	for _, section := range []time.Duration{0, 5 * time.Millisecond} {
		b.Run(fmt.Sprint("section=", section), func(b *testing.B) { inPhases(b, section) })
	}
}

// phases counts who goes in, and who waits.
type phases struct {
	gate  *benchkit.Gate
	inTry atomic.Int64 // writers that wait

	mu     sync.Mutex
	writes int // that have begun
	n      int // phases that have begun
	reads  bool
}

// enter counts somebody who has got in. It returns what was counted before.
func (p *phases) enter(write bool) (writes, n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	writes, n = p.writes, p.n
	p.gate.Enter(write, 0)
	if write || !p.reads {
		p.n++
	}
	if p.reads = !write; write {
		p.writes++
	}
	return writes, n
}

func (p *phases) now() (writes, n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.writes, p.n
}

// A phaseTally is what one session saw.
type phaseTally struct {
	rounds, passed int
	phases         []float64
}

func (p *phases) compete(ctx context.Context, m *rwlock.RWMutex, section time.Duration, open *atomic.Bool, t *phaseTally) error {
	for n := rand.IntN(10); ; n++ {
		lock, write := m.RLock, n%10 == 0
		writes, began := p.now()
		ahead := int64(1)
		if write {
			lock, ahead = m.Lock, p.inTry.Add(1)
		}
		_, hold, err := lock(ctx)
		if write {
			p.inTry.Add(-1)
		}
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		passed, phase := p.enter(write)
		if section > 0 {
			time.Sleep(section)
		}
		p.gate.Leave(write)
		if open.Load() {
			t.rounds++
			if write {
				t.phases = append(t.phases, float64(phase-began+1)/float64(ahead))
			} else {
				t.passed = max(t.passed, passed-writes)
			}
		}
		if err := hold.Unlock(); err != nil {
			return err
		}
	}
}

func inPhases(b *testing.B, section time.Duration) {
	const sessions = 64
	s := redistest.Real(b)
	all := openMany(b, sessions, s.Option())
	window, rounds, passed, elapsed := sessionsWindow(b, sessions, section), 0, 0, time.Duration(0)
	var waits []float64
	for b.Loop() {
		p, tallies := &phases{gate: benchkit.NewGate()}, make([]phaseTally, sessions)
		ctx, cancel := context.WithCancel(b.Context())
		var open atomic.Bool
		var wg sync.WaitGroup
		for i, ses := range all {
			wg.Go(func() {
				if err := p.compete(ctx, rwlock.New(ses, "x"), section, &open, &tallies[i]); err != nil {
					b.Error(err)
					cancel()
				}
			})
		}
		pass(ctx, sessionsStart)
		open.Store(true)
		began := time.Now()
		pass(ctx, window)
		open.Store(false)
		elapsed += time.Since(began)
		cancel()
		wg.Wait()
		for _, t := range tallies {
			rounds += t.rounds
			passed = max(passed, t.passed)
			waits = append(waits, t.phases...)
		}
		if n := p.gate.Violations(); n > 0 {
			b.Errorf("mutual exclusion was violated %d times", n)
		}
	}
	slices.Sort(waits)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(rounds)/elapsed.Seconds(), "acq/s")
	b.ReportMetric(waits[len(waits)*99/100], "phases/writer-p99")
	b.ReportMetric(waits[len(waits)/2], "phases/writer-p50")
	b.ReportMetric(float64(passed), "passed")
}
