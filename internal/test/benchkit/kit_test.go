package benchkit_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"relock/internal/test/benchkit"
	"relock/internal/test/redistest"
)

// kinds are what the processes of these tests know.
func kinds() []benchkit.Kind {
	return append(benchkit.Ours(), benchkit.Kind{Name: "nothing", Open: openNothing})
}

// openNothing opens a lock that locks nothing.
func openNothing(context.Context, benchkit.Env) (*benchkit.Handle, error) {
	return &benchkit.Handle{
		Worker: func(context.Context, string) (benchkit.Cycle, error) {
			return func(_ context.Context, _ bool, inside func()) error { inside(); return nil }, nil
		},
		Close: func() {},
	}, nil
}

func TestMain(m *testing.M) {
	benchkit.Child(kinds())
	redistest.Main(m)
}

const short = 100 * time.Millisecond

// local is a plan over one lock within this process.
func local(c benchkit.Cycle) benchkit.Plan {
	return benchkit.Plan{
		Workers: 8, Window: short, Gate: benchkit.NewGate(),
		Worker: func(context.Context, int) (benchkit.Cycle, error) { return c, nil },
	}
}

// one returns the way to a lock that lets one in at a time. It waits in a channel, since a
// made-up clock stands still while a sync.Mutex is waited for.
func one() benchkit.Cycle {
	free := make(chan struct{}, 1)
	return func(_ context.Context, _ bool, inside func()) error {
		free <- struct{}{}
		defer func() { <-free }()
		inside()
		return nil
	}
}

// The tests of one process run on a made-up clock: how long rounds and waits take is then no
// matter of the machine.

func TestALockThatLocksNothingIsSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, _ := openNothing(t.Context(), benchkit.Env{})
		c, _ := h.Worker(t.Context(), "x")
		p := local(c)
		p.Work = time.Millisecond
		res, err := benchkit.Run(t.Context(), p)
		if err != nil || res.Violations == 0 || res.Ops == 0 {
			t.Errorf("%d rounds, %d violations, %v", res.Ops, res.Violations, err)
		}
	})
}

func TestALockThatLocksIsNotAccused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := local(one())
		p.Work = time.Millisecond
		res, err := benchkit.Run(t.Context(), p)
		// The round that enters when the window ends may be counted or not.
		if err != nil || res.Violations != 0 || res.Ops < 100 || res.Ops > 101 {
			t.Errorf("%d rounds, %d violations, %v", res.Ops, res.Violations, err)
		}
		if s := res.Share(); s < 1 || s > 1.01 {
			t.Errorf("somebody was inside for %.2f of the time", s)
		}
		if r := res.Rate(); r < 1000 || r > 1010 {
			t.Errorf("%.0f rounds a second of a millisecond each", r)
		}
		if l := res.TypicalLongest(); l < time.Millisecond || l > res.Wait(1) {
			t.Errorf("typically the longest wait is %v, the longest of all %v", l, res.Wait(1))
		}
		if len(res.PerWorker) != p.Workers || len(res.Waits) < res.Ops {
			t.Errorf("%d workers, %d waits of %d rounds", len(res.PerWorker), len(res.Waits), res.Ops)
		}
	})
}

func TestOneWhoGivesUpAsksAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int64
		p := local(func(_ context.Context, _ bool, inside func()) error {
			if calls.Add(1)%2 == 1 {
				time.Sleep(time.Millisecond)
				return benchkit.ErrGaveUp
			}
			inside()
			return nil
		})
		p.Workers = 1
		res, err := benchkit.Run(t.Context(), p)
		if err != nil || res.GaveUp == 0 || res.Ops == 0 || res.Wait(0.5) != time.Millisecond {
			t.Errorf("%d rounds, gave up %d times, waited %v, %v", res.Ops, res.GaveUp, res.Wait(0.5), err)
		}
	})
}

func TestOneWhoIsNeverLetInIsAmongTheWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := local(func(ctx context.Context, _ bool, _ func()) error {
			time.Sleep(time.Millisecond)
			return benchkit.ErrGaveUp
		})
		res, err := benchkit.Run(t.Context(), p)
		if err != nil || res.Ops != 0 || len(res.Waits) != p.Workers || res.Wait(0) < p.Window {
			t.Errorf("%d rounds, waits %v, %v", res.Ops, res.Waits, err)
		}
	})
}

func TestAFailureEndsTheRun(t *testing.T) {
	bad := errors.New("bad")
	p := local(func(context.Context, bool, func()) error { return bad })
	p.Window = time.Hour
	if _, err := benchkit.Run(t.Context(), p); !errors.Is(err, bad) {
		t.Error(err)
	}
}

func TestGate(t *testing.T) {
	for name, c := range map[string]struct {
		readers int
		enter   string // w and r come in, W and R leave
		want    int
	}{
		"one after the other":    {0, "wWwWrRwW", 0},
		"two writers":            {0, "ww", 1},
		"a reader by a writer":   {0, "wr", 1},
		"a writer by a reader":   {0, "rw", 1},
		"readers":                {0, "rrrrRRRRw", 0},
		"as many as may":         {2, "rrRr", 0},
		"one more than may":      {2, "rrr", 1},
		"each one more than may": {2, "rrrr", 2},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "gate")
			a, err := benchkit.OpenGate(path)
			if err != nil {
				t.Fatal(err)
			}
			defer a.Close()
			b, err := benchkit.OpenGate(path)
			if err != nil {
				t.Fatal(err)
			}
			defer b.Close()
			for i, what := range c.enter {
				// In turns through two mappings, as two processes would.
				g := []*benchkit.Gate{a, b}[i%2]
				switch what {
				case 'w', 'r':
					g.Enter(what == 'w', c.readers)
				default:
					g.Leave(what == 'W')
				}
			}
			if got := a.Violations(); got != c.want {
				t.Errorf("%d violations, want %d", got, c.want)
			}
		})
	}
}

func TestJainAndPercentiles(t *testing.T) {
	for _, c := range []struct {
		rounds []int
		want   float64
	}{{[]int{5, 5, 5, 5}, 1}, {[]int{8, 0, 0, 0}, 0.25}, {nil, 0}, {[]int{0, 0}, 0}} {
		if got := (benchkit.Result{PerWorker: c.rounds}).Jain(); got != c.want {
			t.Errorf("Jain of %v is %v, want %v", c.rounds, got, c.want)
		}
	}
	var r benchkit.Result
	for i := range 100 {
		r.Waits = append(r.Waits, time.Duration(100-i))
	}
	if a, b, c := r.Wait(0.5), r.Wait(0.99), r.Wait(1); a != 51 || b != 100 || c != 100 {
		t.Errorf("p50 %d, p99 %d, max %d of 1 to 100", a, b, c)
	}
}

// Every kind of ours keeps to what it is said to let in. A busy machine may let the first one in
// when the window is over.
func TestOursTakeTurns(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		for _, kind := range benchkit.Ours() {
			h, err := kind.Open(t.Context(), benchkit.Env{Addr: s.Addr})
			if err != nil {
				t.Fatal(err)
			}
			res, err := benchkit.Run(t.Context(), benchkit.Plan{
				Workers: 12, Window: short, Work: time.Millisecond, Gate: benchkit.NewGate(),
				Reads: kind.Reads, Readers: kind.Readers,
				Worker: func(ctx context.Context, _ int) (benchkit.Cycle, error) { return h.Worker(ctx, kind.Name) },
			})
			if err != nil || res.Violations != 0 || len(res.Waits) == 0 {
				t.Errorf("%s: %d rounds, %d violations, %v", kind.Name, res.Ops, res.Violations, err)
			}
			h.Close()
		}
	})
}

func TestHandOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ms, late = time.Millisecond, 3 * time.Millisecond
		lock := one()
		c := func(ctx context.Context, write bool, inside func()) error {
			return lock(ctx, write, func() { time.Sleep(late); inside() })
		}
		took, err := benchkit.HandOver(t.Context(), c, c, 3, ms)
		if err != nil || !slices.Equal(took, []time.Duration{late, late, late}) {
			t.Errorf("%v, %v", took, err)
		}
		nothing := func(_ context.Context, _ bool, inside func()) error { inside(); return nil }
		if took, err := benchkit.HandOver(t.Context(), nothing, nothing, 3, 20*time.Millisecond); err == nil {
			t.Errorf("a lock that locks nothing handed over in %v", took)
		}
	})
}

func TestBase(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b, err := benchkit.NewBase(s.Addr)
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		floor, err := b.Floor(t.Context(), short)
		if err != nil || floor <= 0 {
			t.Errorf("floor %v, %v", floor, err)
		}
		ceiling, err := b.Ceiling(t.Context(), short, 16)
		if err != nil || ceiling <= 0 {
			t.Errorf("ceiling %v, %v", ceiling, err)
		}
	})
}

func TestOneWhoIsStuckIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var first atomic.Bool
		p := local(func(ctx context.Context, _ bool, inside func()) error {
			if first.CompareAndSwap(false, true) {
				<-ctx.Done()
				return ctx.Err()
			}
			inside()
			return nil
		})
		p.Workers, p.Gate, p.Drain, p.Work = 2, nil, short, time.Millisecond
		res, err := benchkit.Run(t.Context(), p)
		if err != nil || res.Stuck != 1 || res.Ops == 0 || res.Wait(1) != p.Window+p.Drain {
			t.Errorf("%d stuck, %d rounds, longest wait %v, %v", res.Stuck, res.Ops, res.Wait(1), err)
		}
	})
}
