package benchkit_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"relock/internal/test/benchkit"
	"relock/internal/test/redistest"
)

// newBase needs a real server: miniredis does not count commands.
func newBase(t *testing.T) (*benchkit.Base, string) {
	t.Helper()
	s := redistest.Real(t)
	b, err := benchkit.NewBase(s.Addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b, s.Addr
}

// measured is how long a scene lasts that keeps all cores busy.
const measured = 4 * short

// A lock and its release are two commands, whatever the scripts call inside, and what the
// base sends is not among them.
func TestMeasureCountsWhatTheLockSends(t *testing.T) {
	redistest.SkipShort(t)
	b, addr := newBase(t)
	for _, c := range []struct {
		benchkit.Scene
		kind string
	}{
		{benchkit.Alone, "rlock"},
		{benchkit.OwnKeys64, "rlock"},
		{benchkit.OwnKeys64, "fairlock"},
	} {
		sc := c.Scene
		c, err := b.Measure(t.Context(), benchkit.Our(c.kind), addr, sc, measured)
		if err != nil {
			t.Fatal(err)
		}
		// The window's ends and the counts are not taken in the same instant.
		if c.Commands < 1 || c.Commands > 4 { // what the scripts call inside would be many more
			t.Errorf("%s: %.3f commands in each of %d rounds", sc.Name, c.Commands, c.Ops)
		}
		// Each of the two scripts calls something.
		if c.Ran < c.Commands+2 || c.Ran > 40 {
			t.Errorf("%s: the server ran %.3f commands in each of %d rounds, %.3f of them were sent", sc.Name, c.Ran, c.Ops, c.Commands)
		}
		// A script takes the server at least a microsecond, and at most what has passed.
		if passed := c.PerOp(float64(c.Elapsed.Microseconds())) * 2; c.CPU < 1 || c.CPU > passed {
			t.Errorf("%s: %.3f µs of the server's processor for each round; %.0f µs have passed", sc.Name, c.CPU, passed)
		}
		if c.Ratio() <= 0 || c.Mallocs == 0 || len(c.PerWorker) != sc.Workers {
			t.Errorf("%s: ratio %v, %d allocations, %d workers", sc.Name, c.Ratio(), c.Mallocs, len(c.PerWorker))
		}
	}
}

// Sessions of one goroutine each are handles of their own, one for each worker.
func TestSessionsAreHandles(t *testing.T) {
	b, addr := newBase(t)
	var opened, workers atomic.Int64
	var mu sync.Mutex
	k := benchkit.Kind{Name: "local", Open: func(context.Context, benchkit.Env) (*benchkit.Handle, error) {
		opened.Add(1)
		mine := 0
		return &benchkit.Handle{Close: func() {}, Worker: func(context.Context, string) (benchkit.Cycle, error) {
			if mine++; mine == 1 {
				workers.Add(1)
			}
			return func(_ context.Context, _ bool, inside func()) error {
				mu.Lock()
				defer mu.Unlock()
				inside()
				return nil
			}, nil
		}}, nil
	}}
	c, err := b.Measure(t.Context(), k, addr, benchkit.InSessions(6), short)
	if err != nil || opened.Load() != 6 || workers.Load() != 6 || len(c.PerWorker) != 6 || c.Ran >= 0 {
		t.Errorf("%d handles, %d with workers, %d shares, %v commands; %v", opened.Load(), workers.Load(), len(c.PerWorker), c.Ran, err)
	}
}

func TestMeasureRefusesALockThatLocksNothing(t *testing.T) {
	b, addr := newBase(t)
	nothing, _ := benchkit.Find(kinds(), "nothing")
	four := benchkit.Four16Ms
	four.Workers = 2
	busy := benchkit.Same64
	busy.Work = time.Millisecond
	for _, sc := range []benchkit.Scene{four, busy} {
		if _, err := b.Measure(t.Context(), nothing, addr, sc, short); !errors.Is(err, benchkit.ErrViolated) {
			t.Errorf("%s: %v", sc.Name, err)
		}
	}
}

// Nobody is counted before all wait, and the holder that they waited for is gone then.
func TestWaitingBeginsWhenAllWait(t *testing.T) {
	redistest.SkipShort(t)
	b, addr := newBase(t)
	var mu sync.Mutex
	var waiting, entered, seen atomic.Int64
	k := benchkit.Kind{Name: "local", Open: func(_ context.Context, env benchkit.Env) (*benchkit.Handle, error) {
		return &benchkit.Handle{Close: func() {}, Worker: func(context.Context, string) (benchkit.Cycle, error) {
			return func(_ context.Context, _ bool, inside func()) error {
				if !mu.TryLock() {
					waiting.Add(1)
					env.Waiting()
					mu.Lock()
				}
				defer mu.Unlock()
				if inside(); entered.Add(1) == 1 {
					seen.Store(waiting.Load()) // the first is the holder, which now leaves
				}
				return nil
			}, nil
		}}, nil
	}}
	const n = 40
	c, err := b.Measure(t.Context(), k, addr, benchkit.Waiting(n), measured)
	if err != nil || c.Ops == 0 || seen.Load() != n {
		t.Errorf("%d waited when the holder left; %d rounds, %v", seen.Load(), c.Ops, err)
	}
	for _, kind := range []string{"rlock", "fairlock"} {
		c, err := b.Measure(t.Context(), benchkit.Our(kind), addr, benchkit.Waiting(n), measured)
		if err != nil || c.Ops == 0 || len(c.PerWorker) != n {
			t.Errorf("%s: %d rounds of %d workers, %v", kind, c.Ops, len(c.PerWorker), err)
		}
	}
}

func TestReportNamesItsUnits(t *testing.T) {
	c := benchkit.Cell{
		Result: benchkit.Result{
			Ops: 500, Elapsed: time.Second, Inside: time.Second / 2, PerWorker: []int{250, 250},
			Waits: []time.Duration{time.Millisecond}, Mallocs: 1000, GaveUp: 50,
		},
		Scene: benchkit.Four16Ms, Commands: 3, Ran: 9, CPU: 7, Base: 1000,
	}
	got := map[string]float64{}
	c.Report(func(v float64, unit string) { got[unit] = v })
	for unit, want := range map[string]float64{
		"ns/op": 2e6, "allocs/op": 2, "cmds/op": 3, "ran/op": 9, "server-µs/op": 7, "x-floor": 0.5, "ops/s": 500, "floor/s": 1000, "%-possible": 50, "%-inside": 50,
		"µs-p50": 1000, "µs-p99": 1000, "µs-max": 1000, "jain": 1, "gave-up/op": 0.1,
	} {
		if v, ok := got[unit]; !ok || v != want {
			t.Errorf("%v %s, want %v", v, unit, want)
		}
	}
}
