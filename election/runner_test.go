package election_test

import (
	"context"
	"sync"
	"testing"

	"relock/election"
	"relock/fairlock"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// A runner is a Run in a goroutine, and what it has called.
type runner struct {
	t       testing.TB
	e       *election.Election
	started chan context.Context // what OnStartedLeading got
	resume  chan struct{}        // closed to let OnStartedLeading return, which else waits for its ctx
	leaders chan election.Leader
	stopped chan struct{}
	err     chan error

	mu  sync.Mutex
	log []string
}

// run begins a Run. Its OnStartedLeading returns when the test says so.
func run(t testing.TB, ctx context.Context, s *rlock.Session, value string) *runner {
	x := &runner{
		t: t, e: election.New(s, "x"),
		started: make(chan context.Context, 1), resume: make(chan struct{}),
		leaders: make(chan election.Leader, 100), stopped: make(chan struct{}, 1), err: make(chan error, 1),
	}
	go func() {
		err := x.e.Run(ctx, value, election.Callbacks{
			OnStartedLeading: func(ctx context.Context) {
				x.note("started")
				x.started <- ctx
				<-x.resume
				x.note("returned")
			},
			OnStoppedLeading: func() { x.note("stopped"); x.stopped <- struct{}{} },
			OnNewLeader:      func(l election.Leader) { x.leaders <- l },
		})
		x.note("over")
		x.err <- err
	}()
	return x
}

func (x *runner) note(what string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.log = append(x.log, what)
}

// leads waits until OnStartedLeading runs, and returns its ctx.
func (x *runner) leads() context.Context {
	x.t.Helper()
	return locktest.Get(x.t, x.started, patience, "OnStartedLeading to run")
}

// returns lets OnStartedLeading return, and waits for the end of Run.
func (x *runner) returns() error {
	x.t.Helper()
	close(x.resume)
	return locktest.Get(x.t, x.err, patience, "Run to return")
}

// did checks what has been called, in which order.
func (x *runner) did(want ...string) {
	x.t.Helper()
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.log) != len(want) {
		x.t.Fatalf("it did %q, want %q", x.log, want)
	}
	for i := range want {
		if x.log[i] != want[i] {
			x.t.Fatalf("it did %q, want %q", x.log, want)
		}
	}
}

// stands waits until n candidates stand for election.
func stands(t testing.TB, s *rlock.Session, n int) {
	t.Helper()
	redistest.Eventually(t, patience, "the candidates to stand for election", func() bool {
		waiters, err := fairlock.New(s, "x").Waiters(context.Background())
		must(t, err)
		return waiters == n
	})
}
