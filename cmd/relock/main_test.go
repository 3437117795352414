package main_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"relock/internal/test/redistest"
	"relock/rlock"
)

// patience bounds every wait of these tests: processes start slowly on a busy machine.
const patience = 30 * time.Second

// binary is the command, built once for all tests.
var binary string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "relock")
	if err == nil {
		binary = filepath.Join(dir, "relock")
		var out []byte
		if out, err = exec.Command("go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
			err = fmt.Errorf("go build: %w\n%s", err, out)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	goleak.VerifyTestMain(m,
		// After a cluster has changed, rueidis closes connections 5 s later.
		goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*clusterClient)._refresh.func2"),
		goleak.Cleanup(func(code int) {
			_ = os.RemoveAll(dir)
			os.Exit(code)
		}))
}

// A cli calls the binary for one deployment.
type cli struct {
	tb  testing.TB
	url string
}

func newCLI(tb testing.TB, s *redistest.Server) cli { return cli{tb, "redis://" + s.Addr} }

// result is how a call has ended.
type result struct {
	out, err string
	code     int
}

func (c cli) command(args ...string) *exec.Cmd {
	cmd := exec.Command(binary, args...)
	cmd.Env = append(os.Environ(), "RELOCK_REDIS="+c.url)
	return cmd
}

// run calls the binary and waits for its end.
func (c cli) run(args ...string) result {
	c.tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Env = c.command().Env
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	return result{code: codeOf(c.tb, cmd.Run()), out: out.String(), err: errs.String()}
}

// want calls the binary and wants an exit code.
func (c cli) want(code int, args ...string) result {
	c.tb.Helper()
	r := c.run(args...)
	if r.code != code {
		c.tb.Fatalf("relock %s: exit code %d, want %d\n%s%s", strings.Join(args, " "), r.code, code, r.out, r.err)
	}
	return r
}

// decode calls the binary with --json and decodes what it prints.
func decode[T any](c cli, args ...string) (v T) {
	c.tb.Helper()
	r := c.want(0, append([]string{"--json"}, args...)...)
	if err := json.Unmarshal([]byte(r.out), &v); err != nil {
		c.tb.Fatalf("relock %s: %v in\n%s", strings.Join(args, " "), err, r.out)
	}
	return v
}

func codeOf(tb testing.TB, err error) int {
	tb.Helper()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		tb.Fatal(err)
	}
	if err == nil {
		return 0
	}
	return exit.ExitCode()
}

// A running call of the binary.
type running struct {
	tb    testing.TB
	cmd   *exec.Cmd
	lines chan string // of its standard output
	errs  bytes.Buffer
	ended chan error
}

// start calls the binary. It is killed when the test ends before it does.
func (c cli) start(args ...string) *running { return c.startWith(nil, args...) }

// startWith is start with another standard error, if it is not nil.
func (c cli) startWith(errs *os.File, args ...string) *running {
	c.tb.Helper()
	return startCommand(c.tb, c.command(args...), errs)
}

// startCommand is startWith for any command.
func startCommand(tb testing.TB, cmd *exec.Cmd, errs *os.File) *running {
	tb.Helper()
	r := &running{tb: tb, cmd: cmd, lines: make(chan string, 1000), ended: make(chan error, 1)}
	out, err := r.cmd.StdoutPipe()
	must(tb, err)
	r.cmd.Stderr = &r.errs
	if errs != nil {
		r.cmd.Stderr = errs
	}
	must(tb, r.cmd.Start())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for s := bufio.NewScanner(out); s.Scan(); {
			r.lines <- s.Text()
		}
		r.ended <- r.cmd.Wait()
	}()
	tb.Cleanup(func() {
		_ = r.cmd.Process.Signal(syscall.SIGTERM) // passed on to its command
		select {
		case <-done:
		case <-time.After(patience):
			_ = r.cmd.Process.Kill()
			tb.Errorf("%s does not end", cmd)
		}
	})
	return r
}

// line returns the next line of standard output.
func (r *running) line() string {
	r.tb.Helper()
	select {
	case s := <-r.lines:
		return s
	case err := <-r.ended:
		r.ended <- err
		if len(r.lines) > 0 { // all lines are there before the end is
			return <-r.lines
		}
		r.tb.Fatalf("%s ended: %v\n%s", r.cmd, err, &r.errs)
	case <-time.After(patience):
		r.tb.Fatalf("%s printed nothing", r.cmd)
	}
	return ""
}

// expect wants a line of standard output.
func (r *running) expect(want string) {
	r.tb.Helper()
	if got := r.line(); got != want {
		r.tb.Fatalf("got %q, want %q", got, want)
	}
}

func (r *running) signal(s syscall.Signal) {
	r.tb.Helper()
	must(r.tb, r.cmd.Process.Signal(s))
}

// wait returns the exit code.
func (r *running) wait() int {
	r.tb.Helper()
	select {
	case err := <-r.ended:
		return codeOf(r.tb, err)
	case <-time.After(patience):
		r.tb.Fatalf("%s does not end", r.cmd)
	}
	return -1
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

func eventually(tb testing.TB, what string, cond func() bool) {
	tb.Helper()
	redistest.Eventually(tb, patience, what, cond)
}

// dial makes a session in the test's own process.
func dial(tb testing.TB, s *redistest.Server) *rlock.Session {
	tb.Helper()
	return dialAs(tb, s, "")
}

// dialAs makes a session with that label.
func dialAs(tb testing.TB, s *redistest.Server, label string) *rlock.Session {
	tb.Helper()
	session, err := rlock.Dial(context.Background(), s.Option(), rlock.Config{Label: label})
	must(tb, err)
	tb.Cleanup(func() { must(tb, session.Close()) })
	return session
}

// within returns a context that ends with the test's patience.
func within(tb testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	tb.Cleanup(cancel)
	return ctx
}

// gate is a file for whose removal a command in a test waits.
type gate string

func newGate(tb testing.TB) gate {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "gate")
	must(tb, os.WriteFile(path, nil, 0o600))
	return gate(path)
}

func (g gate) open(tb testing.TB) { tb.Helper(); must(tb, os.Remove(string(g))) }

// behind is a shell script that says "in", waits for the gate, and goes on.
func (g gate) behind(script string) []string {
	return []string{"--", "sh", "-c", `echo in; while [ -e "$0" ]; do sleep 0.02; done; ` + script, string(g)}
}

// All that tells a version tells the same.
func TestVersion(t *testing.T) {
	c := cli{t, "redis://127.0.0.1:1"} // it asks no server
	if out := c.want(0, "version").out; out != rlock.Version+"\n" {
		t.Errorf("version prints %q", out)
	}
	if v := decode[struct{ Version string }](c, "version").Version; v != rlock.Version {
		t.Errorf("version --json has %q", v)
	}
	if out := c.want(0, "--version").out; !strings.Contains(out, rlock.Version) {
		t.Errorf("--version prints %q", out)
	}
	c.want(64, "version", "x")
}

// An output that cannot be written to is no Redis that is unavailable.
func TestOutputThatCannotBeWritten(t *testing.T) {
	cmd := cli{t, "redis://127.0.0.1:1"}.command("version")
	out, err := os.Open(os.DevNull) // for reading
	must(t, err)
	defer out.Close()
	cmd.Stdout = out
	if code := codeOf(t, cmd.Run()); code != 70 {
		t.Errorf("exit code %d, want 70", code)
	}
}
