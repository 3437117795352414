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
	session *rlock.Session // of the first server, or of all of them
	all     []*rlock.Session
	quorums map[string]*quorum.Mutex // whose callers share a queue, by name
	calm    atomic.Bool
}

func (j *Job) run() error {
	engine.CheckInvariants(j.Invariants)
	log, err := oracle.Create(j.Log)
	if err != nil {
		return err
	}
	go log.WatchStalls()
	w := &worker{Job: j, log: log}
	if err = w.connect(); err != nil {
		return err
	}
	fmt.Println(Ready)

	running, stop := context.WithCancel(context.Background())
	defer stop()
	var wg sync.WaitGroup
	for i := range j.Goroutines {
		g := &goroutine{worker: w, rnd: rand.New(rand.NewPCG(j.Seed, uint64(i))), running: running}
		g.share(i == 0)
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

// connect makes the sessions, and the handles that goroutines share.
func (w *worker) connect() error {
	groups := [][]string{w.Servers}
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
	w.session, w.quorums = w.all[0], map[string]*quorum.Mutex{}
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

// probe tries each lock once.
func (w *worker) probe() {
	for i := range w.Locks {
		spec := &w.Locks[i]
		if spec.Kind == Counter {
			continue // it may be empty for good
		}
		rec := w.log.Begin(oracle.Probe, 0, i, 0, 1, 0)
		_, h, err := w.locker(spec).lock(context.Background(), attempt{n: 1, opts: []rlock.LockOption{rlock.Wait(w.ProbeWait)}})
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
	fmt.Println(Tried)
}

// odd notes what must never happen.
func (w *worker) odd(lock int, format string, args ...any) {
	w.log.Begin(oracle.Odd, 0, lock, 0, 0, 0)
	fmt.Fprintf(os.Stderr, "%s: ODD: %s: "+format+"\n", append([]any{w.Session, w.Locks[lock].Name}, args...)...)
}
