package election_test

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/redis/rueidis"

	"relock/election"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// This very test program, started with this in its environment, is another process, whose
// OnStartedLeading panics.
const childAddr = "RELOCK_ELECTION_CHILD_ADDR"

func runChild(addr string) {
	ctx := context.Background()
	ses, err := rlock.Dial(ctx, rueidis.ClientOption{InitAddress: []string{addr}, ForceSingleClient: true}, slow())
	if err != nil {
		os.Exit(3)
	}
	_ = election.New(ses, "x").Run(ctx, "child", election.Callbacks{
		OnStartedLeading: func(context.Context) { panicking() },
		OnStoppedLeading: func() { os.Exit(4) },
	})
	os.Exit(5)
}

func panicking() { panic("the job has a bug") }

// An OnStartedLeading that panics ends its process, with the trace of the panic. The next candidate leads
// at once all the same.
func TestRunPanics(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, patience)
		ses := dial(t, s, slow())
		first := leads(t, campaign(t, ctx, ses, "a", 0), 1)
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), childAddr+"="+s.Addr)
		var text strings.Builder
		cmd.Stderr = &text
		must(t, cmd.Start())
		died := make(chan error, 1)
		go func() { died <- cmd.Wait() }()
		stands(t, ses, 1)
		next := campaign(t, ctx, ses, "b", 2)
		must(t, first.l.Resign())
		leads(t, next, 3) // by the child's Resign: its lease is an hour
		if err := locktest.Get(t, died, patience, "the process to end"); err == nil || cmd.ProcessState.ExitCode() != 2 {
			t.Errorf("the process has ended with %v", err)
		}
		for _, want := range []string{"the job has a bug", "election_test.panicking"} {
			if !strings.Contains(text.String(), want) {
				t.Errorf("%q is not in what the process has said:\n%s", want, text.String())
			}
		}
	})
}

// A panic of OnStoppedLeading is one of Run, which has resigned by then.
func TestOnStoppedLeadingPanics(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx, stop := context.WithCancel(within(t, patience))
		ses := dial(t, s, slow())
		defer func() {
			if r := recover(); r != "stopped" {
				t.Errorf("recovered %v", r)
			}
			leads(t, campaign(t, within(t, patience), ses, "b", 0), 2)
		}()
		err := election.New(ses, "x").Run(ctx, "a", election.Callbacks{
			OnStartedLeading: func(context.Context) { stop() },
			OnStoppedLeading: func() { panic("stopped") },
		})
		t.Errorf("Run has returned: %v", err)
	})
}
