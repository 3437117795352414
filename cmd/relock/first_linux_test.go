package main_test

import (
	"os"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"relock/internal/test/redistest"
)

// asFirst is set in the environment of this test program for it to become the command of its arguments, as one that is
// given all processes whose parent has ended: so is the first one of a container.
const asFirst = "RELOCK_TEST_AS_FIRST"

func init() {
	if os.Getenv(asFirst) == "" {
		return
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err == nil {
		_ = syscall.Exec(os.Args[1], os.Args[1:], os.Environ())
	}
	os.Exit(2)
}

// startFirst starts the binary like that.
func (c cli) startFirst(args ...string) *running {
	c.tb.Helper()
	self, err := os.Executable()
	must(c.tb, err)
	cmd := exec.Command(self, append([]string{binary}, args...)...)
	cmd.Env = append(c.command().Env, asFirst+"=1")
	return startCommand(c.tb, cmd, nil)
}

// As the first process of a container relock collects what the command has left behind, while it runs, and when the lock
// was lost: what nobody has collected would count as one that goes on, until the grace period is over.
func TestRunAsTheFirstProcess(t *testing.T) {
	t.Parallel()
	c := newCLI(t, redistest.Mini(t))
	r := c.startFirst("run", "--grace", "1h", "x", "--", "sh", "-c",
		`(sh -c 'echo $$' &) | cat; sleep 1000 & echo $!; trap 'exit 0' TERM; while :; do sleep 0.02; done`)
	orphan, left := pid(t, r.line()), pid(t, r.line())
	defer func() { _ = syscall.Kill(left, syscall.SIGKILL) }() // if relock has not ended it
	eventually(t, "what has ended to be collected", func() bool { return syscall.Kill(orphan, 0) != nil })
	c.want(0, "force", "x")
	if code := r.wait(); code != 79 {
		t.Errorf("exit code %d, want 79", code)
	}
}
