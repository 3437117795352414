package main_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"relock/internal/test/redistest"
	"relock/rlock"
)

// When another process takes the lock away the command and its children get TERM, and run's
// exit code says that the lock was lost, whatever the command's is.
func TestRunLosesTheLock(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		c := newCLI(t, s)
		r := c.start("run", "x", "--", "sh", "-c",
			`trap 'echo ended; exit 0' TERM; sleep 1000 & echo $!; while :; do sleep 0.02; done`)
		grandchild := pid(t, r.line())
		c.want(0, "force", "x")
		r.expect("ended")
		if code := r.wait(); code != 79 {
			t.Errorf("exit code %d, want 79", code)
		}
		if !gone(t, grandchild) {
			t.Error("a child of the command goes on without the lock")
		}
		if !strings.Contains(r.errs.String(), "the lock was lost") {
			t.Errorf("standard error: %q", &r.errs)
		}
		if keys := s.Keys(t); len(keys) != 0 {
			t.Errorf("left behind: %q", keys)
		}
	})
}

// What outlives the command then gets the signals that come within the grace period.
func TestRunPassesSignalsOnBehindTheCommand(t *testing.T) {
	t.Parallel()
	c := newCLI(t, redistest.Mini(t))
	r := c.start("run", "--grace", "1h", "x", "--", "sh", "-c",
		`sh -c 'trap "" TERM; trap "echo heard; exit" USR1; echo $PPID; while :; do sleep 0.02; done' & wait`)
	command := pid(t, r.line())
	defer func() { _ = syscall.Kill(-command, syscall.SIGKILL) }() // if relock has not ended it
	c.want(0, "force", "x")
	eventually(t, "the command to end", func() bool { return gone(t, command) })
	r.signal(syscall.SIGUSR1)
	r.expect("heard")
	if code := r.wait(); code != 79 {
		t.Errorf("exit code %d, want 79", code)
	}
}

// It is ended also if nobody reads standard error any more, where relock would tell of the loss.
func TestRunLosesTheLockAndStandardError(t *testing.T) {
	t.Parallel()
	c := newCLI(t, redistest.Mini(t))
	reader, writer, err := os.Pipe()
	must(t, err)
	must(t, reader.Close())
	defer writer.Close()
	r := c.startWith(writer, "run", "x", "--", "sh", "-c",
		`exec 2>/dev/null; trap 'echo ended; exit 0' TERM; echo $$; while :; do sleep 0.02; done`)
	command := pid(t, r.line())
	defer func() { _ = syscall.Kill(-command, syscall.SIGKILL) }() // if relock has not ended it
	c.want(0, "force", "x")
	r.expect("ended")
	if code := r.wait(); code != 79 {
		t.Errorf("exit code %d, want 79", code)
	}
}

// A command is killed after the grace period also if standard error is a pipe that is full, and nobody reads it.
func TestRunKillsBesideAFullStandardError(t *testing.T) {
	t.Parallel()
	c := newCLI(t, redistest.Mini(t))
	for _, flags := range []string{"", "--verbose "} {
		reader, writer, err := os.Pipe()
		must(t, err)
		defer reader.Close()
		defer writer.Close()
		must(t, writer.SetWriteDeadline(time.Now().Add(200*time.Millisecond)))
		if _, err = writer.Write(make([]byte, 8<<20)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("the pipe takes 8 MiB: %v", err)
		}
		r := c.startWith(writer, append(strings.Fields("run "+flags+"--grace 10ms x --"), "sh", "-c",
			`exec 2>/dev/null; trap "" TERM; echo $$; while :; do sleep 0.02; done`)...)
		command := pid(t, r.line())
		defer func() { _ = syscall.Kill(-command, syscall.SIGKILL) }() // if relock has not ended it
		c.want(0, "force", "x")
		if code := r.wait(); code != 79 {
			t.Errorf("%q: exit code %d, want 79", flags, code)
		}
	}
}

// A command that does not end at TERM is killed after the grace period; so are children that
// outlive a command which does.
func TestRunKillsAfterGrace(t *testing.T) {
	t.Parallel()
	s := redistest.Mini(t)
	c := newCLI(t, s)
	for name, script := range map[string]string{
		"command": `trap "" TERM; echo $$; while :; do sleep 0.02; done`,
		"child":   `sh -c 'trap "" TERM; echo $$; exec sleep 1000' & wait`,
	} {
		r := c.start("run", "--grace", "300ms", name, "--", "sh", "-c", script)
		stubborn := pid(t, r.line()) // its trap is set
		began := time.Now()
		c.want(0, "force", name)
		if code := r.wait(); code != 79 {
			t.Errorf("%s: exit code %d, want 79", name, code)
		}
		if took := time.Since(began); took < 300*time.Millisecond {
			t.Errorf("%s: killed after %v", name, took)
		}
		eventually(t, name+" to end", func() bool { return gone(t, stubborn) })
	}
}

// The grace period begins with TERM for all: what outlives a command that ends within it is killed at its end, and not
// one grace period after the command.
func TestRunGivesOneGracePeriod(t *testing.T) {
	t.Parallel()
	s := redistest.Mini(t)
	c := newCLI(t, s)
	r := c.start("run", "--grace", "4s", "x", "--", "sh", "-c",
		`sh -c 'trap "" TERM; echo $$; exec sleep 1000' & trap 'sleep 3; exit 0' TERM; wait`)
	stubborn := pid(t, r.line())
	began := time.Now()
	c.want(0, "force", "x")
	if code := r.wait(); code != 79 {
		t.Errorf("exit code %d, want 79", code)
	}
	if took := time.Since(began); took < 4*time.Second || took > 6*time.Second {
		t.Errorf("killed after %v, and the grace period is 4 s", took)
	}
	eventually(t, "it to end", func() bool { return gone(t, stubborn) })
}

// A command that ends while relock does not know yet that the lock was lost is not reported
// as a success.
func TestRunLossIsNoticedAtTheEnd(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		c, g := newCLI(t, s), newGate(t)
		r := c.start(append([]string{"run", "x"}, g.behind("exit 0")...)...)
		r.expect("in")
		must(t, s.Do(t, "DEL", "x").Error())
		g.open(t)
		if code := r.wait(); code != 79 {
			t.Errorf("exit code %d, want 79", code)
		}
	})
}

// With --at-least it stays until so long after it was acquired, and the lease is renewed as long as the command runs. Who is
// refused is told who has it.
func TestRunAtLeast(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		c := newCLI(t, s)
		for _, kind := range []string{"", "--fair", "--write"} {
			run := func(code int, args string, command ...string) result {
				t.Helper()
				flags := strings.Fields("run " + kind + " " + args + kind)
				return c.want(code, slices.Concat(flags, []string{"--"}, command)...)
			}
			run(3, "--at-least 1m long", "sh", "-c", "exit 3")
			refused := run(75, "--at-least 1m --try long", "true").err
			if !strings.Contains(refused, "has it") || !strings.Contains(refused, "'relock show' says more") {
				t.Errorf("%q: the refusal says %q, and not who has the lock", kind, refused)
			}
			began := time.Now()
			run(0, "--at-least 1500ms x", "true")
			run(0, "x", "true")
			if took := time.Since(began); took < 1500*time.Millisecond {
				t.Errorf("%q: the lock was free after %v", kind, took)
			}
		}
		for _, flags := range []string{"--at-least 0s", "--at-least 1s --abandon", "--at-least 1s --read", "--at-least 1s --permits 1 --limit 2"} {
			c.want(64, slices.Concat([]string{"run"}, strings.Fields(flags), []string{"x", "--", "true"})...)
		}
	})
}

// A command that cannot be executed has not run: its --at-least, and --abandon, keep the lock from no other host.
func TestRunAtLeastOfACommandThatCannotBeExecuted(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		c := newCLI(t, s)
		program := filepath.Join(t.TempDir(), "program")
		must(t, os.WriteFile(program, []byte("of no machine"), 0o700))
		for _, flags := range []string{"--at-least 1m", "--at-least 1m --fair", "--at-least 1m --write", "--abandon --lease 1m"} {
			c.want(126, slices.Concat([]string{"run"}, strings.Fields(flags), []string{"x", "--", program})...)
			if keys := s.Keys(t); len(keys) != 0 {
				t.Errorf("%s: left behind: %q", flags, keys)
			}
		}
	})
}

// With --abandon the lock stays when the command has ended, until its lease is over: once per
// interval.
func TestRunAbandon(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		c := newCLI(t, s)
		for _, kind := range []string{"", "--fair", "--write"} {
			run := func(code int, args string, command ...string) {
				t.Helper()
				flags := strings.Fields("run --abandon " + kind + " " + args + kind)
				c.want(code, slices.Concat(flags, []string{"--"}, command)...)
			}
			run(3, "--lease 1m long", "sh", "-c", "exit 3")
			run(75, "--lease 1m --try long", "true")
			began := time.Now()
			run(3, "--lease 1500ms x", "sh", "-c", "exit 3")
			run(0, "--lease 1500ms x", "true")
			if took := time.Since(began); took < 1500*time.Millisecond {
				t.Errorf("%q: the lock was free after %v", kind, took)
			}
			run(127, "--lease 1500ms x", "relock-has-no-such-command")
		}
	})
}

// A command that outlasts the interval keeps the lock, and lets it go when it ends.
func TestRunAbandonOutlasted(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		c, g := newCLI(t, s), newGate(t)
		const lease = 3 * time.Second // long enough for a busy machine to keep it
		r := c.start(append([]string{"run", "--abandon", "--lease", lease.String(), "x"}, g.behind("")...)...)
		r.expect("in")
		m := rlock.New(dial(t, s), "x")
		for began := time.Now(); time.Since(began) < 5*lease/2; {
			st, err := m.State(within(t))
			must(t, err)
			if len(st.Owners) != 1 {
				t.Fatalf("the lock was free after %v", time.Since(began))
			}
		}
		g.open(t)
		if code := r.wait(); code != 0 {
			t.Errorf("exit code %d\n%s", code, &r.errs)
		}
		if keys := s.Keys(t); len(keys) != 0 {
			t.Errorf("the interval is over, and there are %q", keys)
		}
	})
}

// A lease that was moved, since the command might have outlasted the interval, ends with the
// interval after all if the command does not.
func TestRunAbandonEndsWithTheInterval(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		c, g := newCLI(t, s), newGate(t)
		const lease, slack = 6 * time.Second, 500 * time.Millisecond
		before := time.Now()
		r := c.start(append([]string{"run", "--abandon", "--lease", lease.String(), "x"}, g.behind("")...)...)
		r.expect("in")
		began := time.Since(before) // at the latest
		m := rlock.New(dial(t, s), "x")
		end := func() (first, last time.Duration) { // of the lease, after before, by when Redis was asked
			asked := time.Since(before)
			st, err := m.State(within(t))
			must(t, err)
			return asked + st.TTL, time.Since(before) + st.TTL
		}
		eventually(t, "the lease to move", func() bool { first, _ := end(); return first > began+lease+slack })
		g.open(t)
		if code := r.wait(); code != 0 {
			t.Errorf("exit code %d\n%s", code, &r.errs)
		}
		if first, last := end(); first > began+lease+slack || last < lease-slack {
			t.Errorf("the lock stays until %v to %v, want %v after an interval that began until %v", first, last, lease, began)
		}
	})
}
