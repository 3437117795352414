package worker

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"relock/internal/engine"
	"relock/quorum"
	"relock/rlock"
	"relock/torture/oracle"
)

// What the two processes say to each other, a line each.
const (
	Ready = "ready" // the worker has a session
	Calm  = "calm"  // to the worker: the faults have ended; try each lock once
	Tried = "tried" // each lock was tried
	Stop  = "stop"  // to the worker: come to an end
	Ended = "ended" // the session is closed
)

// worker is this process.
type worker struct {
	*Job
	log     *oracle.Log
	set     *oracle.Set
	all     []*rlock.Session         // in the order of the servers, if each is all by itself
	callers []*rlock.Session         // those that locks are taken in which are no quorums
	quorums map[string]*quorum.Mutex // whose callers share a queue, by name
	calm    atomic.Bool
}

func (j *Job) run() error {
	engine.CheckInvariants(j.Invariants)
	log, err := oracle.Create(j.Log, j.Life)
	if err != nil {
		return err
	}
	set, err := oracle.OpenSet(j.Set, len(j.Locks))
	if err != nil {
		return err
	}
	go log.WatchStalls()
	w := &worker{Job: j, log: log, set: set}
	if err = w.connect(); err != nil {
		return err
	}
	fmt.Println(Ready)

	running, stop := context.WithCancel(context.Background())
	defer stop()
	var wg sync.WaitGroup
	for i, g := range w.goroutines() {
		g.worker, g.rnd, g.running = w, rand.New(rand.NewPCG(j.Seed, uint64(i))), running
		wg.Go(g.work)
	}
	in := bufio.NewReader(os.Stdin)
	for {
		line, err := in.ReadString('\n')
		if errors.Is(err, io.EOF) {
			os.Exit(4) // the parent is gone
		}
		switch strings.TrimSpace(line) {
		case Calm:
			w.calm.Store(true)
			wg.Go(w.probe)
		case Stop:
			stop()
			wg.Wait()
			return w.end()
		}
	}
}

// goroutines are the callers of this worker.
func (w *worker) goroutines() (all []*goroutine) {
	switch {
	case w.Crowd:
		return w.crowd()
	case w.Rush:
		return w.rush()
	}
	for i := range w.Goroutines {
		g := &goroutine{session: w.callers[0]}
		g.share(w.Locks, i == 0)
		all = append(all, g)
	}
	return all
}

// connect makes the sessions, and the handles that goroutines share.
func (w *worker) connect() error {
	groups := slices.Repeat([][]string{w.Servers}, max(w.Sessions, 1))
	if w.Several {
		groups = slices.Collect(slices.Chunk(w.Servers, 1))
	}
	for i, servers := range groups {
		s, err := w.dial(w.Option(servers), w.config(i))
		if err != nil {
			return err
		}
		w.all = append(w.all, s)
	}
	w.callers, w.quorums = w.all, map[string]*quorum.Mutex{}
	if w.Several {
		w.callers = w.all[:1]
	}
	for _, l := range w.Locks {
		if l.Kind == Quorum {
			w.quorums[l.Name] = quorum.New(w.all, l.Name)
		}
	}
	return nil
}

// dial tries for as long as it takes: the process may have been started amid a fault.
func (w *worker) dial(opt rueidis.ClientOption, cfg rlock.Config) (*rlock.Session, error) {
	for began := oracle.Now(); ; {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		s, err := rlock.Dial(ctx, opt, cfg)
		cancel()
		if err == nil {
			return s, nil
		}
		if errors.Is(err, rlock.ErrConfig) || errors.Is(err, rlock.ErrArgument) || oracle.Now()-began > time.Minute {
			return nil, err
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// end closes the sessions, and says how long that took.
func (w *worker) end() error {
	began := oracle.Now()
	errs := make([]error, len(w.all))
	var wg sync.WaitGroup
	for i, s := range w.all {
		wg.Go(func() { errs[i] = s.Close() })
	}
	wg.Wait()
	err := errors.Join(errs...)
	fmt.Printf("%s %d %v\n", Ended, (oracle.Now() - began).Milliseconds(), err)
	return nil
}

// probe has each session try each lock once.
func (w *worker) probe() {
	var wg sync.WaitGroup
	for _, s := range w.callers {
		wg.Go(func() { w.probeBy(s) })
	}
	wg.Wait()
	fmt.Println(Tried)
}

func (w *worker) probeBy(s *rlock.Session) {
	for i := range w.Locks {
		spec := &w.Locks[i]
		if spec.Kind == Counter {
			continue // it may be empty for good
		}
		rec := w.log.Begin(oracle.Probe, 0, i, 0, 1, 0)
		_, h, err := w.locker(s, spec).lock(context.Background(), attempt{n: 1, opts: []rlock.LockOption{rlock.Wait(w.ProbeWait)}})
		rec.Returned()
		if err != nil {
			rec.Settle(oracle.Refused)
			fmt.Fprintf(os.Stderr, "%s: probe of %s: %v\n", w.Session, spec.Name, err)
			continue
		}
		rec.Settle(oracle.Held)
		if err := h.unlock(); err != nil {
			fmt.Fprintf(os.Stderr, "%s: unlock of the probe of %s: %v\n", w.Session, spec.Name, err)
		}
	}
}

// odd notes what must never happen.
func (w *worker) odd(lock int, format string, args ...any) {
	w.log.Begin(oracle.Odd, 0, lock, 0, 0, 0)
	fmt.Fprintf(os.Stderr, "%s: ODD: %s: "+format+"\n", append([]any{w.Session, w.Locks[lock].Name}, args...)...)
}
