package main_test

import (
	"bytes"
	"maps"
	"net"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/creack/pty"

	"relock/internal/test/redistest"
	"relock/rlock"
)

// Each signal that relock gets reaches the command once; its exit code stays the command's.
func TestRunPassesSignalsOn(t *testing.T) {
	t.Parallel()
	c := newCLI(t, redistest.Mini(t))
	// What the program that runs the tests ignores, as under nohup, relock ignores too.
	all := map[string]syscall.Signal{
		"HUP": syscall.SIGHUP, "INT": syscall.SIGINT, "QUIT": syscall.SIGQUIT, "USR1": syscall.SIGUSR1, "USR2": syscall.SIGUSR2,
	}
	maps.DeleteFunc(all, func(_ string, s syscall.Signal) bool { return signal.Ignored(s) })
	script := `trap 'echo TERM; exit 7' TERM; for s in ` + strings.Join(slices.Collect(maps.Keys(all)), " ") + `; do trap "echo $s" $s; done
		echo ready; while :; do sleep 0.02; done`
	// A shell that ends at INT itself would hide that the command gets it.
	r := c.start("run", "x", "--", "sh", "-c", script)
	r.expect("ready")
	for name, s := range all {
		r.signal(s)
		r.expect(name)
	}
	r.signal(syscall.SIGTERM)
	r.expect("TERM")
	if code := r.wait(); code != 7 {
		t.Errorf("exit code %d, want 7", code)
	}
	if len(r.lines) > 0 {
		t.Errorf("a signal came twice: %q", <-r.lines)
	}
}

// A signal that the program which started relock ignores, as nohup does, is not passed on.
func TestRunUnderNohup(t *testing.T) {
	t.Parallel()
	c := newCLI(t, redistest.Mini(t))
	cmd := c.command("run", "x", "--", "sh", "-c", "kill -HUP $PPID; kill -HUP $$; sleep 0.1; exit 5")
	nohup := exec.Command("sh", append([]string{"-c", `trap "" HUP; "$0" "$@"`}, cmd.Args...)...)
	nohup.Env = cmd.Env
	if code := codeOf(t, nohup.Run()); code != 5 {
		t.Errorf("exit code %d, want 5", code)
	}
}

// A signal ends the wait for the lock with a shell's exit code, and nothing is left in Redis.
func TestRunSignalWhileWaiting(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		c := newCLI(t, s)
		_, h, err := rlock.New(dial(t, s), "x").Lock(within(t))
		must(t, err)
		for sig, code := range map[syscall.Signal]int{syscall.SIGTERM: 143, syscall.SIGINT: 130} {
			r := c.start("run", "x", "--", "true")
			eventually(t, "a waiter", func() bool { return listeners(t, s, "redisson_lock__channel:{x}") == 1 })
			r.signal(sig)
			if got := r.wait(); got != code {
				t.Errorf("exit code %d, want %d", got, code)
			}
			eventually(t, "the waiter is gone", func() bool { return listeners(t, s, "redisson_lock__channel:{x}") == 0 })
		}
		must(t, h.Unlock())
		if keys := s.Keys(t); len(keys) != 0 {
			t.Errorf("left behind: %q", keys)
		}
	})
}

// A signal ends the commands that look with a shell's exit code too.
func TestASignalEndsACommandThatLooks(t *testing.T) {
	t.Parallel()
	want := map[*running]int{}
	for _, args := range []string{"ls", "show x", "leader x", "force x", "doctor"} {
		for sig, code := range map[syscall.Signal]int{syscall.SIGTERM: 143, syscall.SIGINT: 130} {
			silent, err := net.Listen("tcp", "127.0.0.1:0") // takes connections, and answers nothing
			must(t, err)
			defer silent.Close()
			r := cli{t, "redis://" + silent.Addr().String()}.start(strings.Fields(args)...)
			_, err = silent.Accept() // so its signals are heard
			must(t, err)
			r.signal(sig)
			want[r] = code
		}
	}
	for r, code := range want {
		if got := r.wait(); got != code {
			t.Errorf("%s: exit code %d, want %d: %s", r.cmd, got, code, &r.errs)
		}
	}
}

// listeners returns how many connections listen on a channel.
func listeners(tb testing.TB, s *redistest.Server, channel string) int64 {
	tb.Helper()
	reply, err := s.Do(tb, "PUBSUB", "NUMSUB", channel).ToArray()
	must(tb, err)
	n, err := reply[1].AsInt64()
	must(tb, err)
	return n
}

// A signal reaches the children of the command too: a shell that ends alone would leave them
// at work without the lock.
func TestRunSignalsTheWholeGroup(t *testing.T) {
	t.Parallel()
	c := newCLI(t, redistest.Mini(t))
	r := c.start("run", "x", "--", "sh", "-c", "sleep 1000 & echo $!; wait")
	grandchild := pid(t, r.line())
	r.signal(syscall.SIGTERM)
	if code := r.wait(); code != 143 {
		t.Errorf("exit code %d, want 143", code)
	}
	eventually(t, "the child of the command ends", func() bool { return gone(t, grandchild) })
}

func pid(tb testing.TB, s string) int {
	tb.Helper()
	n, err := strconv.Atoi(s)
	must(tb, err)
	return n
}

// gone reports whether a process has ended; one that nobody has collected yet counts.
func gone(tb testing.TB, pid int) bool {
	tb.Helper()
	if syscall.Kill(pid, 0) != nil {
		return true
	}
	out, _ := exec.Command("ps", "-o", "stat=", "-p", strconv.Itoa(pid)).Output()
	return bytes.HasPrefix(bytes.TrimSpace(out), []byte("Z"))
}

// In a terminal Ctrl-C reaches the command once, and the command can read from the terminal.
func TestRunInATerminal(t *testing.T) {
	t.Parallel()
	c := newCLI(t, redistest.Mini(t))
	cmd := c.command("run", "x", "--", "sh", "-c", `trap 'echo interrupted; exit 9' INT; read line; echo "read $line"; while :; do sleep 0.02; done`)
	term := startTerminal(t, cmd)
	term.write("hello\r")
	term.until("read hello")
	term.write("\x03")
	term.until("interrupted")
	if code := term.wait(); code != 9 {
		t.Errorf("exit code %d, want 9", code)
	}
	if n := strings.Count(term.text(), "interrupted"); n != 1 {
		t.Errorf("the command was interrupted %d times", n)
	}
}

// Ctrl-Z stops relock and the command, fg continues both, and the shell has the terminal back
// when they have ended.
func TestRunJobControl(t *testing.T) {
	t.Parallel()
	c := newCLI(t, redistest.Mini(t))
	shell := exec.Command("sh", "-i")
	shell.Env = append(c.command().Env, "PS1=prompt$ ", "ENV=", "RELOCK="+binary)
	term := startTerminal(t, shell)
	term.until("prompt$ ")
	term.write(`$RELOCK run x -- sh -c 'echo be''gins; read line; echo "got $line"'` + "\r")
	term.until("begins")
	term.write("\x1a")
	term.until("Stopped")
	term.until("prompt$ ")
	term.write("echo shell''reads\r")
	term.until("shellreads")
	term.write("fg\r")
	term.write("hello\r")
	term.until("got hello")
	term.until("prompt$ ")
	term.write("echo again''reads\r")
	term.until("againreads")
	term.write("exit\r")
	if code := term.wait(); code != 0 {
		t.Errorf("the shell's exit code is %d\n%q", code, term.text())
	}
}

// startTerminal runs a command in a terminal of its own.
func startTerminal(tb testing.TB, cmd *exec.Cmd) *terminal {
	tb.Helper()
	return startTerminalOf(tb, cmd, 100)
}

// startTerminalOf is startTerminal with as many columns.
func startTerminalOf(tb testing.TB, cmd *exec.Cmd, columns uint16) *terminal {
	tb.Helper()
	f, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 24, Cols: columns})
	must(tb, err)
	return watchTerminal(tb, cmd, f)
}
