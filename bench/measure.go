package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"relock/internal/test/benchkit"
	"relock/internal/test/redistest"
)

// Report is everything that a run has found.
type Report struct {
	Machine  Machine
	Window   time.Duration
	Rounds   int
	Compared []*Column // the exclusive locks, ours and the others'
	Others   []*Column // our other kinds
	Slices   int       // runs of the goals' benchmarks
	Goals    []Measured
	Took     time.Duration
	Notes    []string // what failed or was left out
}

// Column is what one kind did.
type Column struct {
	Name     string
	Ours     bool
	Cells    map[string]*benchkit.Cell // by the scene's name
	HandOver []time.Duration
}

// settle is what passes before each hand-over: more than the time that anybody needs to
// begin to wait.
const settle = 20 * time.Millisecond

// inOne and inFour are the scenes of the pictures: goroutines of one process, and of four.
var (
	inOne = []benchkit.Scene{
		benchkit.Alone,
		{Name: "8 goroutines, one lock", Workers: 8},
		benchkit.Same64,
		benchkit.Same512,
	}
	inFour = []benchkit.Scene{
		{Name: "4 processes of 1, one lock", Workers: 1, Processes: 4},
		{Name: "4 processes of 4, one lock", Workers: 4, Processes: 4},
		benchkit.Four16,
		{Name: "4 processes of 64, one lock", Workers: 64, Processes: 4},
	}
	further    = []benchkit.Scene{benchkit.OwnKeys64, benchkit.Four16Ms}
	inSessions = []benchkit.Scene{
		benchkit.InSessions(4), benchkit.InSessions(32), benchkit.InSessions(128),
	}
	waiting = []benchkit.Scene{
		benchkit.Waiting(8), benchkit.Waiting(100), benchkit.Waiting(1000), benchkit.Waiting(10_000),
	}
)

// measureAll runs the whole grid. What a peer cannot do is noted; ours must do everything.
func measureAll(ctx context.Context, h *host, c config) *Report {
	r := &Report{Window: c.window, Rounds: c.rounds, Machine: thisMachine()}
	for _, k := range compared() {
		if !c.wanted(k) {
			continue
		}
		scenes := slices.Concat(inOne, inFour, further)
		ours := isOurs(k)
		if ours {
			scenes = append(scenes, waiting...)
		}
		switch k.Name {
		case "rlock", "fairlock", "redsync", "rueidislock", redisson.Name:
			scenes = append(scenes, inSessions...)
		case inMemory.Name:
			scenes = append(slices.Clone(inOne), benchkit.OwnKeys64)
		}
		if col := r.measureKind(ctx, h, c, k, scenes, ours); col != nil {
			r.Compared = append(r.Compared, col)
		}
	}
	for _, k := range benchkit.Ours()[2:] {
		if !c.wanted(k) {
			continue
		}
		scenes := []benchkit.Scene{benchkit.Alone, benchkit.OwnKeys64, benchkit.Same64}
		if k.Name == "rwlock" {
			scenes = scenes[2:] // its sides have lines of their own
		}
		r.Others = append(r.Others, r.measureKind(ctx, h, c, k, scenes, true))
	}
	return r
}

func isOurs(k benchkit.Kind) bool {
	_, ok := benchkit.Find(benchkit.Ours(), k.Name)
	return ok
}

// errLeftOut says that what a kind needs is not installed here.
var errLeftOut = errors.New("left out")

// A way is how one kind is measured.
type way struct {
	scene    func(benchkit.Scene) (benchkit.Cell, error)
	handOver func() ([]time.Duration, error) // nil: it has none
}

// wayOf starts what the kind needs beside Redis.
func (r *Report) wayOf(ctx context.Context, servers *host, base *benchkit.Base, c config, k benchkit.Kind, addr string) (w way, err error) {
	switch k.Name {
	case redisson.Name:
		j, err := startJVMs(servers, addr)
		if err != nil {
			return w, err
		}
		r.Machine.Redisson = j.all[0].version
		w.scene = func(sc benchkit.Scene) (benchkit.Cell, error) { return j.measure(ctx, base, sc, c.window) }
		w.handOver = func() ([]time.Duration, error) { return j.handOver(c.rounds) }
		return w, nil
	case etcdName:
		if addr, r.Machine.Etcd, err = startEtcd(servers); err != nil {
			return w, err
		}
	}
	w.scene = func(sc benchkit.Scene) (benchkit.Cell, error) { return base.Measure(ctx, k, addr, sc, c.window) }
	if k.Reads == 0 && k.Name != inMemory.Name {
		w.handOver = func() ([]time.Duration, error) { return handOver(ctx, k, addr, c.rounds) }
	}
	return w, nil
}

// measureKind runs one kind on a server of its own.
func (r *Report) measureKind(ctx context.Context, h *host, c config, k benchkit.Kind, scenes []benchkit.Scene, ours bool) *Column {
	servers := &host{}
	defer servers.end()
	redis := redistest.Real(servers)
	base, err := benchkit.NewBase(redis.Addr)
	if err != nil {
		h.Fatal(err)
	}
	defer base.Close()
	if r.Machine.Redis, err = base.Version(ctx); err != nil {
		h.Fatal(err)
	}
	w, err := r.wayOf(ctx, servers, base, c, k, redis.Addr)
	if err != nil && ours {
		h.Fatal(err)
	} else if err != nil {
		r.note("%s: %v.", k.Name, err)
		return nil
	}
	col := &Column{Name: k.Name, Ours: ours, Cells: map[string]*benchkit.Cell{}}
	for _, sc := range scenes {
		redis.FlushAll(servers) // what one case has left is not to be in the way of the next
		cell, err := w.scene(sc)
		switch {
		case err == nil:
			fmt.Fprintf(os.Stderr, "%-12s %-32s %9.0f/s\n", k.Name, sc.Name, cell.Rate())
			col.Cells[sc.Name] = &cell
		case ours:
			h.Fatal(err)
		default:
			r.note("%v.", err)
			if errors.Is(err, benchkit.ErrStuck) {
				col.Cells[sc.Name] = &cell
			}
		}
	}
	if w.handOver != nil {
		redis.FlushAll(servers)
		if col.HandOver, err = w.handOver(); err != nil && ours {
			h.Fatal(err)
		} else if err != nil {
			r.note("%s, hand-over: %v.", k.Name, err)
		}
	}
	return col
}

// handOver measures hand-overs between two handles, which are as two processes.
func handOver(ctx context.Context, k benchkit.Kind, addr string, rounds int) ([]time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second+time.Duration(rounds)*time.Second/2)
	defer cancel()
	var cycles [2]benchkit.Cycle
	for i := range cycles {
		h, err := k.Open(ctx, benchkit.Env{Addr: addr})
		if err != nil {
			return nil, err
		}
		defer h.Close()
		if cycles[i], err = h.Worker(ctx, "hand-over"); err != nil {
			return nil, err
		}
	}
	return benchkit.HandOver(ctx, cycles[0], cycles[1], rounds, settle)
}

func (r *Report) note(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	fmt.Fprintln(os.Stderr, "bench:", text)
	r.Notes = append(r.Notes, text)
}
