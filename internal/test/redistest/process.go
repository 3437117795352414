package redistest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

const (
	startTimeout = 20 * time.Second // for a server to answer: generous, CI machines stall
	startTries   = 5                // ports to try before giving up
)

// errNotUp is wrapped by the errors of servers that have not come up.
var errNotUp = errors.New("redistest: server has not come up")

// binary returns the path of the server program. Without one it skips the
// test, or fails it when the environment demands a real server.
func binary(tb testing.TB) string {
	tb.Helper()
	name := os.Getenv("RELOCK_REDIS_SERVER")
	if name == "" {
		name = "redis-server"
	}
	path, err := exec.LookPath(name)
	if err == nil {
		return path
	}
	if os.Getenv("RELOCK_REQUIRE_REDIS") == "1" {
		tb.Fatalf("RELOCK_REQUIRE_REDIS=1, but there is no server program: %v", err)
	}
	tb.Skipf("SKIPPED, no real Redis: %v (put redis-server on PATH or its path into RELOCK_REDIS_SERVER)", err)
	return ""
}

// process is one running server program.
type process struct {
	cmd    *exec.Cmd
	guard  *exec.Cmd     // kills cmd when the test program dies; nil when there is no shell
	exited chan struct{} // closed when cmd is gone and reaped
}

// spawn starts the program and returns once it answers on port. Its output
// goes to the end of dir/server.log.
func spawn(path, dir string, port int, args ...string) (*process, error) {
	logPath := filepath.Join(dir, "server.log")
	out, err := os.OpenFile(logPath, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer out.Close() // the child has a copy of its own
	p := &process{cmd: exec.Command(path, args...), exited: make(chan struct{})}
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = dir, out, out
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("%w: %w", errNotUp, err)
	}
	p.guard = guard(p.cmd.Process.Pid)
	go func() {
		_ = p.cmd.Wait() // killed is how servers end here
		close(p.exited)
	}()
	up := poll(startTimeout, func() bool { return p.gone() || p.answers(port) })
	if up && !p.gone() {
		return p, nil
	}
	p.kill()
	text, _ := os.ReadFile(logPath)
	return nil, fmt.Errorf("%w: %s %s\n%s", errNotUp, path, strings.Join(args, " "), text)
}

// syncDir returns a directory for a server that syncs what it writes: a sentinel with each vote, a node of
// a Cluster with each change of its configuration, a replica with what it loads. Such a server answers
// nothing until the disk has it, and beside compilers a sync was seen to take 17 seconds: the
// sentinels agreed on no failover within a minute. So the directory is in memory, on systems that have such
// a place.
func syncDir(tb testing.TB) string {
	tb.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "redistest")
	if err != nil {
		return tb.TempDir()
	}
	tb.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// guard starts a shell that kills the process pid when the test program dies,
// however it dies (a panic in some goroutine, the test timeout, kill -9):
// nothing of ours runs then, but the shell's standard input ends.
func guard(pid int) *exec.Cmd {
	g := exec.Command("sh", "-c", `trap "" INT; read -r _; kill -9 "$0"`, strconv.Itoa(pid))
	if _, err := g.StdinPipe(); err != nil {
		return nil
	}
	if g.Start() != nil {
		return nil
	}
	return g
}

// answers reports whether this very process serves the port: another program
// may have taken the port before it, and would be answering in its place.
func (p *process) answers(port int) bool {
	c, err := net.DialTimeout("tcp", address(port), time.Second)
	if err != nil {
		return false
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(time.Second))
	if _, err := c.Write([]byte("INFO server\r\n")); err != nil {
		return false
	}
	want := []byte("process_id:" + strconv.Itoa(p.cmd.Process.Pid))
	for sc := bufio.NewScanner(c); sc.Scan(); {
		if bytes.Equal(bytes.TrimSpace(sc.Bytes()), want) {
			return true
		}
	}
	return false
}

// gone reports whether the process has ended.
func (p *process) gone() bool {
	select {
	case <-p.exited:
		return true
	default:
		return false
	}
}

// kill ends the process with SIGKILL, which also works on a stopped one, and
// waits until it is gone. It may be called again.
func (p *process) kill() {
	// The guard goes first: once the server is reaped its id may be given to
	// somebody else.
	if p.guard != nil {
		_ = p.guard.Process.Kill()
		_ = p.guard.Wait()
		p.guard = nil
	}
	_ = p.cmd.Process.Kill()
	<-p.exited
}

// signal sends SIGSTOP or SIGCONT and, where the system tells, waits until it
// has been acted upon: kill(2) returns before the other process has noticed.
func (p *process) signal(sig syscall.Signal) {
	if p.cmd.Process.Signal(sig) != nil {
		return
	}
	stat := fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid)
	poll(time.Second, func() bool {
		text, err := os.ReadFile(stat)
		if err != nil {
			return true
		}
		// The state is the field after the program's name in parentheses.
		i := bytes.LastIndexByte(text, ')')
		stopped := i >= 0 && i+2 < len(text) && text[i+2] == 'T'
		return stopped == (sig == syscall.SIGSTOP)
	})
}

// Ports are taken from below the range that systems give to outgoing
// connections. From within it, a client that keeps dialing a dead server's port
// may be given that very port as its own and connect to itself, and then the
// server cannot come back. They end below 22,000 because a cluster node also
// listens on its port plus 10,000.
const firstPort, lastPort, busOffset = 11_000, 21_999, 10_000

// freePort returns a port that is free now, and whose cluster bus port is.
// Somebody may take it before the caller does; the caller tries again then.
func freePort() (int, error) {
	var err error
	for range 200 {
		port := firstPort + rand.IntN(lastPort-firstPort+1)
		if err = free(port); err == nil {
			err = free(port + busOffset)
		}
		if err == nil {
			return port, nil
		}
	}
	return 0, fmt.Errorf("%w: no free port: %w", errNotUp, err)
}

// A reservation is a port that is taken and on which no server listens, so that who connects is
// refused.
type reservation struct{ fd int }

// reserve takes the port of an address; it returns nil if that cannot be had.
func reserve(addr string) *reservation {
	port, err := strconv.Atoi(portOf(addr))
	if err != nil {
		return nil
	}
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		return nil
	}
	syscall.CloseOnExec(fd)
	// With SO_REUSEADDR the port can be bound beside connections of the dead server that linger;
	// without it afterwards others cannot bind it.
	reuse := func(on int) error { return syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, on) }
	if reuse(1) != nil || syscall.Bind(fd, &syscall.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}) != nil || reuse(0) != nil {
		_ = syscall.Close(fd)
		return nil
	}
	return &reservation{fd}
}

// release gives the port back.
func (r *reservation) release() {
	if r != nil {
		_ = syscall.Close(r.fd)
	}
}

func free(port int) error {
	l, err := net.Listen("tcp", address(port))
	if err != nil {
		return err
	}
	return l.Close()
}

func address(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

func portOf(addr string) string {
	_, port, _ := net.SplitHostPort(addr)
	return port
}
