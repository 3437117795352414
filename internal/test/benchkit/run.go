package benchkit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Plan is one measurement in one process.
type Plan struct {
	Workers int
	Window  time.Duration // for how long rounds are counted
	Work    time.Duration // for how long each round stays inside, asleep

	// Gate is where everybody goes through; nil when each goroutine has a lock of its own.
	Gate *Gate

	// Reads and Readers are as in Kind.
	Reads, Readers int

	// Worker returns the way to the lock of the i-th goroutine.
	Worker func(ctx context.Context, i int) (Cycle, error)

	// Drain is how long those that wait when the window ends may take to get through; 0:
	// long enough for ten thousand, or the slowest poller. Who is not in then is stuck.
	Drain time.Duration

	// Before, if not nil, is called when the goroutines have been started: the window
	// begins when it returns. Begin and End are called at the window's ends, while
	// the workers are at work.
	Before     func(ctx context.Context) error
	Begin, End func() error
}

// defaultDrain is that of a Plan that does not say.
const defaultDrain = 20 * time.Second

// meter is what the workers of one Run share.
type meter struct {
	plan  Plan
	began time.Time    // of the window; guarded by open, which is set after it
	open  atomic.Bool  // rounds that enter are counted
	over  atomic.Bool  // no more rounds
	late  atomic.Bool  // who still waits is stuck
	bad   chan error   // the first failure
	ended atomic.Int64 // nanoseconds after began
}

// Run measures once. It blocks until all workers are done, which is when the window is over
// and those that waited then have been let in. It returns the first error of any of them,
// and of Before, Begin and End; violations are not an error here.
func Run(ctx context.Context, p Plan) (Result, error) {
	// No deadline, which some locks would take for one of the hold.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	m := &meter{plan: p, bad: make(chan error, 1)}
	cycles := make([]Cycle, p.Workers)
	for i := range cycles {
		var err error
		if cycles[i], err = p.Worker(ctx, i); err != nil {
			return Result{}, fmt.Errorf("worker %d: %w", i, err)
		}
	}
	if p.Before == nil {
		m.begin()
	}
	records := make([]*record, p.Workers)
	var wg sync.WaitGroup
	for i, cycle := range cycles {
		records[i] = newRecord(p)
		wg.Go(func() { m.work(ctx, cycle, records[i]) })
	}
	res, err := m.window(ctx)
	m.over.Store(true)
	if err != nil {
		cancel() // nobody is to wait for what will not come
	}
	stuck := time.AfterFunc(cmp.Or(p.Drain, defaultDrain), func() {
		m.late.Store(true)
		cancel()
	})
	wg.Wait()
	stuck.Stop()
	select {
	case first := <-m.bad:
		err = errors.Join(first, err)
	default:
	}
	for _, r := range records {
		res.add(r, time.Duration(m.ended.Load()))
	}
	if p.Gate != nil {
		res.Violations = p.Gate.Violations()
	}
	return res, err
}

func (m *meter) begin() {
	m.began = time.Now()
	m.open.Store(true)
}

// window lets the time pass and keeps the books that are kept by the process.
func (m *meter) window(ctx context.Context) (Result, error) {
	p := m.plan
	if p.Before != nil {
		if err := p.Before(ctx); err != nil {
			return Result{}, err
		}
		m.begin()
	}
	if p.Begin != nil {
		if err := p.Begin(); err != nil {
			return Result{}, err
		}
	}
	objects, bytes := allocated()
	timer := time.NewTimer(p.Window)
	defer timer.Stop()
	select {
	case <-timer.C:
	case err := <-m.bad:
		return Result{}, err
	case <-ctx.Done():
		return Result{}, ctx.Err()
	}
	res := Result{Elapsed: time.Since(m.began)}
	m.ended.Store(int64(res.Elapsed))
	res.Mallocs, res.Bytes = allocated()
	res.Mallocs -= objects
	res.Bytes -= bytes
	if p.End != nil {
		if err := p.End(); err != nil {
			return Result{}, err
		}
	}
	return res, nil
}

// record is what one worker has seen.
type record struct {
	entered []time.Duration // after the window began
	waited  []time.Duration
	inside  []time.Duration
	gaveUp  int
	stuck   int
}

// newRecord has room for a busy worker's rounds, so that growing it is hardly ever seen
// among the allocations.
func newRecord(p Plan) *record {
	room := max(64, (1<<18)/p.Workers)
	return &record{
		entered: make([]time.Duration, 0, room),
		waited:  make([]time.Duration, 0, room),
		inside:  make([]time.Duration, 0, room),
	}
}

// work is one worker: round after round until the window is over.
func (m *meter) work(ctx context.Context, cycle Cycle, r *record) {
	p := m.plan
	if p.Gate == nil {
		p.Gate = NewGate()
	}
	var began time.Time
	var write bool
	// Made once: what a round allocates shall be the lock's.
	inside := func() {
		entered := time.Now()
		p.Gate.Enter(write, p.Readers)
		if p.Work > 0 {
			time.Sleep(p.Work)
		}
		p.Gate.Leave(write)
		if !m.open.Load() {
			return
		}
		// Who began to wait before the window has waited since its beginning: what
		// came before is the preparation.
		if began.Before(m.began) {
			began = m.began
		}
		if entered.Before(m.began) {
			return
		}
		r.entered = append(r.entered, entered.Sub(m.began))
		r.waited = append(r.waited, entered.Sub(began))
		r.inside = append(r.inside, time.Since(entered))
	}
	for !m.over.Load() {
		write = p.Reads == 0 || rand.IntN(100) >= p.Reads
		began = time.Now()
		err := cycle(ctx, write, inside)
		// The wait of one who gave up goes on: who wants the lock asks again.
		for ; errors.Is(err, ErrGaveUp) && !m.over.Load(); err = cycle(ctx, write, inside) {
			r.gaveUp++
		}
		switch {
		case err == nil:
			continue
		case m.late.Load():
			r.stuck++
			m.unserved(began, r)
		case errors.Is(err, ErrGaveUp):
			r.gaveUp++
			m.unserved(began, r)
		default:
			select {
			case m.bad <- err:
			default:
			}
		}
		return
	}
}

// unserved notes the wait of one who was never let in: it was at least as long.
func (m *meter) unserved(began time.Time, r *record) {
	if began.Before(m.began) {
		began = m.began
	}
	now := time.Now()
	// It entered never, which is after every window.
	r.entered = append(r.entered, math.MaxInt64)
	r.waited = append(r.waited, now.Sub(began))
	r.inside = append(r.inside, 0)
}

// allocated is how many objects the process has allocated so far, and bytes.
func allocated() (objects, bytes uint64) {
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return s.Mallocs, s.TotalAlloc
}
