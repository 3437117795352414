package benchkit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"
)

// Scene is one situation that locks are put into.
type Scene struct {
	Name      string
	Workers   int           // goroutines in each process
	Processes int           // 0: this one alone
	Sessions  int           // that the goroutines of this one share evenly; 0: one
	Work      time.Duration // for how long each round stays inside
	OwnKeys   bool          // a lock each, and the ceiling to compare with instead of the floor
	// AllWait begins the window only when all goroutines wait for a lock that somebody
	// else holds, for kinds that can tell.
	AllWait bool
}

// The scenes of the comparison.
var (
	Alone     = Scene{Name: "one goroutine", Workers: 1}
	OwnKeys64 = Scene{Name: "64 goroutines, 64 locks", Workers: 64, OwnKeys: true}
	Same64    = Scene{Name: "64 goroutines, one lock", Workers: 64}
	Same512   = Scene{Name: "512 goroutines, one lock", Workers: 512}
	Four16    = Scene{Name: "4 processes of 16, one lock", Workers: 16, Processes: 4}
	Four16Ms  = Scene{Name: "4 processes of 16, 1 ms of work", Workers: 16, Processes: 4, Work: time.Millisecond}
)

// Waiting is the scene of n goroutines, in four sessions, that all wait for one lock.
func Waiting(n int) Scene {
	return Scene{Name: fmt.Sprint(n, " waiters"), Workers: n, Sessions: 4, AllWait: true}
}

// InSessions is the scene of n sessions with one goroutine each, which are as n processes: the
// lock goes through Redis at each hand-over.
func InSessions(n int) Scene {
	return Scene{Name: fmt.Sprint(n, " sessions of 1, one lock"), Workers: n, Sessions: n}
}

// Cell is what one kind did in one scene.
type Cell struct {
	Result
	Scene    Scene
	Commands float64 // sent to Redis for each round; negative for what does not run on it
	Ran      float64 // that Redis ran for each round, with what scripts call; negative as Commands
	CPU      float64 // µs of the server for each round, by its own account; negative as Commands
	Base     float64 // pairs a second, in the same minute: the floor, or the ceiling with OwnKeys
}

// Ratio returns the rate as a part of the base.
func (c Cell) Ratio() float64 {
	if c.Base <= 0 {
		return 0
	}
	return c.Rate() / c.Base
}

// Report gives the figures, in the units of Go's benchmarks, to report.
func (c Cell) Report(report func(value float64, unit string)) {
	report(c.PerOp(float64(c.Elapsed)), "ns/op")
	report(c.PerOp(float64(c.Mallocs)), "allocs/op")
	report(c.PerOp(float64(c.Bytes)), "B/op")
	if c.Commands >= 0 {
		report(c.Commands, "cmds/op")
		report(c.Ran, "ran/op")
		report(c.CPU, "server-µs/op")
	}
	base := "floor"
	if c.Scene.OwnKeys {
		base = "ceiling"
	}
	report(c.Ratio(), "x-"+base)
	report(c.Rate(), "ops/s")
	report(c.Base, base+"/s")
	if c.Scene.Work > 0 {
		report(100*c.Rate()*c.Scene.Work.Seconds(), "%-possible")
		report(100*c.Share(), "%-inside")
	}
	if !c.Scene.OwnKeys && len(c.PerWorker) > 1 {
		report(micros(c.Wait(0.5)), "µs-p50")
		report(micros(c.Wait(0.99)), "µs-p99")
		report(micros(c.Wait(1)), "µs-max")
		report(c.Jain(), "jain")
	}
	if c.GaveUp > 0 {
		report(c.PerOp(float64(c.GaveUp)), "gave-up/op")
	}
}

func micros(d time.Duration) float64 { return float64(d.Microseconds()) }

// ErrViolated says that a lock let somebody in who should not have come in.
var ErrViolated = errors.New("benchkit: mutual exclusion was violated")

// ErrStuck says that goroutines were still waiting long after everybody else had left.
var ErrStuck = errors.New("benchkit: waiters were never let in")

// Measure puts the kind, on the server at addr, into the scene for as long as window, with
// the base measured on both sides of it, for a quarter of the window each. It blocks until
// that is done. Errors: [ErrViolated]; [ErrStuck], with the cell complete; whatever else stopped
// the lock.
func (b *Base) Measure(ctx context.Context, k Kind, addr string, sc Scene, window time.Duration) (Cell, error) {
	return b.MeasureBy(ctx, k, sc, window, func(begin, end func() error) (Result, error) {
		if sc.Processes > 0 {
			return measureProcesses(k, addr, sc, window, begin, end)
		}
		return measureHere(ctx, k, addr, sc, window, begin, end)
	})
}

// MeasureBy is Measure for a kind that other code puts into the scene, as one that runs in
// processes that are not ours. run calls begin and end at the ends of the window.
func (b *Base) MeasureBy(ctx context.Context, k Kind, sc Scene, window time.Duration, run func(begin, end func() error) (Result, error)) (Cell, error) {
	cell := Cell{Scene: sc, Commands: -1, Ran: -1, CPU: -1}
	before, err := b.of(ctx, sc, window/4)
	if err != nil {
		return cell, err
	}
	var sent, ran [2]int
	var used [2]time.Duration
	count := func(i int) func() error {
		return func() (err error) {
			if sent[i], ran[i], err = b.Counts(ctx, k.Sends); err == nil {
				used[i], err = b.CPU(ctx)
			}
			return err
		}
	}
	cell.Result, err = run(count(0), count(1))
	if err == nil && cell.Stuck > 0 {
		// The figures stand; whether that is an error is the caller's to say.
		err = fmt.Errorf("%w: %d of %d", ErrStuck, cell.Stuck, len(cell.PerWorker))
	}
	if cell.Violations > 0 {
		err = fmt.Errorf("%w: %d times in %d rounds", ErrViolated, cell.Violations, cell.Ops)
	}
	if err != nil {
		err = fmt.Errorf("%s, %s: %w", k.Name, sc.Name, err)
	}
	if err != nil && !errors.Is(err, ErrStuck) {
		return cell, err
	}
	after, failed := b.of(ctx, sc, window/4)
	if failed != nil {
		return cell, failed
	}
	cell.Base = (before + after) / 2
	if len(k.Sends) > 0 {
		cell.Commands = cell.PerOp(float64(sent[1] - sent[0]))
		cell.Ran = cell.PerOp(float64(ran[1] - ran[0]))
		cell.CPU = cell.PerOp(float64((used[1] - used[0]).Nanoseconds()) / 1000)
	}
	return cell, err
}

// of measures what the scene is compared with.
func (b *Base) of(ctx context.Context, sc Scene, d time.Duration) (float64, error) {
	if sc.OwnKeys {
		return b.Ceiling(ctx, d, sc.Workers)
	}
	return b.Floor(ctx, d)
}

// lockName is the lock that everybody in a scene competes for.
const lockName = "bench"

func measureProcesses(k Kind, addr string, sc Scene, window time.Duration, begin, end func() error) (Result, error) {
	dir, err := os.MkdirTemp("", "relock-bench-")
	if err != nil {
		return Result{}, fmt.Errorf("benchkit: %w", err)
	}
	defer os.RemoveAll(dir)
	return RunProcesses(Job{
		Kind: k.Name, Addr: addr, Lock: lockName, Processes: sc.Processes, Workers: sc.Workers,
		Window: window, Work: sc.Work, GatePath: filepath.Join(dir, "gate"),
	}, begin, end)
}

func measureHere(ctx context.Context, k Kind, addr string, sc Scene, window time.Duration, begin, end func() error) (Result, error) {
	var waiting atomic.Int64
	env := Env{Addr: addr}
	if sc.AllWait {
		env.Waiting = func() { waiting.Add(1) }
	}
	handles := make([]*Handle, max(1, sc.Sessions))
	for i := range handles {
		h, err := k.Open(ctx, env)
		if err != nil {
			return Result{}, err
		}
		defer h.Close()
		handles[i] = h
	}
	p := Plan{
		Workers: sc.Workers, Window: window, Work: sc.Work,
		Reads: k.Reads, Readers: k.Readers, Begin: begin, End: end,
		Worker: func(ctx context.Context, i int) (Cycle, error) {
			name := lockName
			if sc.OwnKeys {
				name = fmt.Sprint(lockName, "-", i)
			}
			return handles[i%len(handles)].Worker(ctx, name)
		},
	}
	if !sc.OwnKeys {
		p.Gate = NewGate()
	}
	if sc.AllWait {
		c, err := handles[0].Worker(ctx, lockName)
		if err != nil {
			return Result{}, err
		}
		holder := visit(ctx, c)
		if _, err := holder.in(); err != nil {
			return Result{}, err
		}
		p.Before = func(ctx context.Context) error {
			err := until(ctx, func() bool { return waiting.Load() >= int64(sc.Workers) })
			close(holder.leave)
			return errors.Join(err, <-holder.done)
		}
	}
	return Run(ctx, p)
}

// until polls cond, which is quiet enough beside thousands of goroutines that begin to wait.
func until(ctx context.Context, cond func() bool) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !cond() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("benchkit: not everybody began to wait: %w", ctx.Err())
		}
	}
	return nil
}
