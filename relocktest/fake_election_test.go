package relocktest_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"relock/election"
	"relock/relocktest"
	"relock/rlock"
)

var _, _ relocktest.Candidate = (*election.Election)(nil), (*relocktest.FakeElection)(nil)

// A told is what a Run has called, with what it has returned.
type told struct {
	mu      sync.Mutex
	log     []string
	leaders []string
	proceed chan struct{} // what OnStartedLeading waits for when its ctx has ended; nil: nothing
}

func (x *told) note(what string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.log = append(x.log, what)
}

func (x *told) run(ctx context.Context, f relocktest.Candidate, value string) {
	err := f.Run(ctx, value, election.Callbacks{
		OnStartedLeading: func(ctx context.Context) {
			x.note("started")
			<-ctx.Done()
			if x.proceed != nil {
				<-x.proceed
			}
			x.note(context.Cause(ctx).Error())
		},
		OnStoppedLeading: func() { x.note("stopped") },
		OnNewLeader: func(l election.Leader) {
			x.mu.Lock()
			defer x.mu.Unlock()
			x.leaders = append(x.leaders, l.Value)
		},
	})
	switch {
	case err == nil:
		x.note("nil")
	case errors.Is(err, rlock.ErrLost):
		x.note("ErrLost")
	default:
		x.note(err.Error())
	}
}

func (x *told) check(t *testing.T, what string, log, leaders []string) {
	t.Helper()
	synctest.Wait()
	x.mu.Lock()
	defer x.mu.Unlock()
	if !slices.Equal(x.log, log) || !slices.Equal(x.leaders, leaders) {
		t.Errorf("%s: it did %q and saw %q, want %q and %q", what, x.log, x.leaders, log, leaders)
	}
}

// A fake and an election on the embedded Redis call the same for the same: candidates lead one after
// the other, each sees who leads, and a leadership ends with its ctx, or is lost.
func TestFakeElectionIsAnElection(t *testing.T) {
	for what, start := range map[string]func(t *testing.T) (stands func() relocktest.Candidate, lose func()){
		"fake": func(*testing.T) (func() relocktest.Candidate, func()) {
			f := new(relocktest.FakeElection)
			return func() relocktest.Candidate { return f }, func() { f.Lose() }
		},
		"real": func(t *testing.T) (func() relocktest.Candidate, func()) {
			r := relocktest.Start(t)
			e := election.New(r.Session(t, rlock.Config{}), "x")
			return func() relocktest.Candidate { return election.New(r.Session(t, rlock.Config{}), "x") },
				func() { r.LoseLeadership(t, e) }
		},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				stands, lose := start(t)
				e, f := stands(), stands()
				if e.IsLeader() || f.IsLeader() {
					t.Error("it leads before Run")
				}
				ctx, stop := context.WithCancel(t.Context())
				a, b, c := &told{proceed: make(chan struct{})}, &told{proceed: make(chan struct{})}, new(told)
				go a.run(ctx, e, "a")
				a.check(t, "the first", []string{"started"}, []string{"a"})
				go b.run(t.Context(), f, "b")
				b.check(t, "the second", nil, []string{"a"})
				short, cancel := context.WithCancel(t.Context())
				go c.run(short, f, "c")
				c.check(t, "the third", nil, []string{"a"})
				cancel()
				c.check(t, "one that gave up", []string{"stopped", "nil"}, []string{"a"})
				stop()
				a.check(t, "one that does not return", []string{"started"}, []string{"a"})
				b.check(t, "the one behind", nil, []string{"a"})
				close(a.proceed)
				a.check(t, "one that has resigned", []string{"started", "context canceled", "stopped", "nil"}, []string{"a"})
				b.check(t, "the next", []string{"started"}, []string{"a", "b"})
				if !f.IsLeader() {
					t.Error("it does not lead")
				}
				lose()
				b.check(t, "a loss", []string{"started"}, []string{"a", "b", ""})
				close(b.proceed)
				b.check(t, "one that was lost", []string{"started", rlock.ErrLost.Error(), "stopped", "ErrLost"}, []string{"a", "b", ""})
				if f.IsLeader() {
					t.Error("it leads after the loss")
				}
				must(t, f.Run(ctx, "done before", election.Callbacks{}))
				must(t, f.Run(short, "nil callbacks", election.Callbacks{}))
			})
		})
	}
}

// A fake and an election end a Run whose OnStartedLeading ends its goroutine.
func TestOnStartedLeadingEndsItsGoroutine(t *testing.T) {
	ses := relocktest.Session(t)
	for what, c := range map[string]relocktest.Candidate{"fake": new(relocktest.FakeElection), "embedded Redis": election.New(ses, "x")} {
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		ended := make(chan error, 1)
		go func() {
			ended <- c.Run(ctx, "a", election.Callbacks{OnStartedLeading: func(context.Context) {
				defer stop()
				runtime.Goexit()
			}})
		}()
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("%s: %v", what, err)
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("%s: Run does not return", what)
		}
	}
}

// The test says who leads in another process, and what Run fails with.
func TestFakeElectionByWord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f relocktest.FakeElection
		f.Elect(election.Leader{Owner: "other:1", Value: "other"})
		ctx, stop := context.WithCancel(t.Context())
		x := &told{proceed: make(chan struct{})}
		go x.run(ctx, &f, "x")
		must(t, f.AwaitCandidates(ctx, 1))
		x.check(t, "beside another leader", nil, []string{"other"})
		if f.IsLeader() || f.Lose() {
			t.Error("it leads beside another leader")
		}
		f.Elect(election.Leader{})
		x.check(t, "when that has gone", []string{"started"}, []string{"other", "x"})
		f.Elect(election.Leader{Value: "third"})
		x.check(t, "when another comes", []string{"started"}, []string{"other", "x", "third"})
		close(x.proceed)
		x.check(t, "when it has returned", []string{"started", rlock.ErrLost.Error(), "stopped", "ErrLost"}, []string{"other", "x", "third"})
		f.Refuse(rlock.ErrClosed)
		if err := f.Run(ctx, "x", election.Callbacks{}); !errors.Is(err, rlock.ErrClosed) {
			t.Errorf("Run: %v, want what it was told", err)
		}
		f.Refuse(nil)
		y := new(told)
		go y.run(ctx, &f, "y")
		y.check(t, "after Refuse(nil)", nil, []string{"third"})
		stop()
		y.check(t, "given up", []string{"stopped", "nil"}, []string{"third"})
		if err := f.AwaitCandidates(ctx, 1); !errors.Is(err, context.Canceled) {
			t.Errorf("AwaitCandidates: %v", err)
		}
	})
}

// A FakeElection refuses the contexts that an Election refuses, and calls back as that does.
func TestFakeElectionRefusesBadContexts(t *testing.T) {
	t.Parallel()
	s := relocktest.Session(t)
	for name, e := range map[string]relocktest.Candidate{"fake": new(relocktest.FakeElection), "real": election.New(s, "x")} {
		var none context.Context
		named, stop := context.WithCancel(rlock.WithOwner(t.Context(), "me"))
		defer stop()
		for what, ctx := range map[string]context.Context{"nil": none, "named": named} {
			stopped := 0
			err := e.Run(ctx, "a", election.Callbacks{
				OnStartedLeading: func(context.Context) { stop() }, // so that Run returns
				OnStoppedLeading: func() { stopped++ },
			})
			if !errors.Is(err, rlock.ErrArgument) || stopped != 1 {
				t.Errorf("%s, %s ctx: %v, OnStoppedLeading called %d times", name, what, err, stopped)
			}
		}
	}
}
