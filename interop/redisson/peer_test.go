package redisson

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
)

const (
	// startTimeout is for a Java machine to come up, on a busy host.
	startTimeout = time.Minute

	// answerTimeout is for what should not have to wait.
	answerTimeout = 30 * time.Second
)

// A peer is one Java process with Redisson, see peer/.
type peer struct {
	version string // the jar that Redisson came from
	id      string // what its owners begin with

	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stderr lockedBuffer
	gone   chan struct{} // closed when all of its output has been read

	mu      sync.Mutex
	pending map[string]chan answer
	next    int
}

// An answer is what came of one operation.
type answer struct {
	value        string
	err          error     // what was thrown, as text
	began, ended time.Time // by the clock of the host, which both sides share
}

// startPeer starts a Java process and returns when it is connected. It is killed when the
// test ends. Options are those of Peer.java.
func startPeer(t testing.TB, e *env, options ...string) *peer {
	t.Helper()
	args := append([]string{"-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC",
		"-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", classPath(t), "relock.interop.Peer",
	}, append(e.options(), options...)...)
	p := &peer{cmd: exec.Command("java", args...), gone: make(chan struct{}), pending: map[string]chan answer{}}
	var err error
	p.stdin, err = p.cmd.StdinPipe()
	locktest.Must(t, err)
	stdout, err := p.cmd.StdoutPipe()
	locktest.Must(t, err)
	p.cmd.Stderr = &p.stderr
	locktest.Must(t, p.cmd.Start())
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("the Java process has written:\n%s", p.stderr.String())
		}
	})
	ready := make(chan string, 1)
	go p.read(bufio.NewReader(stdout), ready)
	hello := strings.Split(locktest.Get(t, ready, startTimeout, "Java to start"), "\t")
	if len(hello) != 3 || hello[0] != "ready" {
		t.Fatalf("Java begins with %q\n%s", hello, p.stderr.String())
	}
	p.version, p.id = strings.TrimSuffix(hello[1], ".jar"), hello[2]
	return p
}

// read hands out answers until there are no more.
func (p *peer) read(out *bufio.Reader, ready chan<- string) {
	defer close(p.gone)
	line, _ := out.ReadString('\n')
	ready <- strings.TrimSuffix(line, "\n")
	for {
		line, err := out.ReadString('\n')
		if err != nil {
			break
		}
		f := strings.SplitN(strings.TrimSuffix(line, "\n"), "\t", 5)
		if len(f) != 5 {
			continue // not an answer; the call that waits for one says so
		}
		a := answer{value: f[4], began: nanos(f[2]), ended: nanos(f[3])}
		if f[1] != "ok" {
			a.value, a.err = "", fmt.Errorf("java: %s", f[4])
		}
		p.mu.Lock()
		c := p.pending[f[0]]
		delete(p.pending, f[0])
		p.mu.Unlock()
		if c != nil {
			c <- a
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.pending {
		c <- answer{err: fmt.Errorf("the Java process is gone")}
	}
	p.pending = nil
}

func nanos(text string) time.Time {
	n, _ := strconv.ParseInt(text, 10, 64)
	return time.Unix(0, n)
}

// send asks for one operation. The channel gets the answer.
func (p *peer) send(fields ...string) <-chan answer {
	c := make(chan answer, 1)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pending == nil {
		c <- answer{err: fmt.Errorf("the Java process is gone")}
		return c
	}
	p.next++
	id := strconv.Itoa(p.next)
	p.pending[id] = c
	if _, err := io.WriteString(p.stdin, id+"\t"+strings.Join(fields, "\t")+"\n"); err != nil {
		delete(p.pending, id)
		c <- answer{err: err}
	}
	return c
}

// kill ends the process as a crash would. It may be called again.
func (p *peer) kill() {
	_ = p.cmd.Process.Kill()
	<-p.gone
	_ = p.cmd.Wait()
}

// A thread is one Java thread of a peer, which is what Redisson's locks belong to.
type thread struct {
	t    testing.TB
	p    *peer
	name string
}

// thread returns a thread that no other test uses.
func (p *peer) thread(t testing.TB) *thread {
	return &thread{t, p, redistest.Name(t)}
}

// start begins an operation.
func (th *thread) start(kind, name, op string, args ...string) <-chan answer {
	return th.p.send(append([]string{th.name, kind, name, op}, args...)...)
}

// do returns what an operation returns, which must not fail.
func (th *thread) do(kind, name, op string, args ...string) string {
	th.t.Helper()
	a := locktest.Get(th.t, th.start(kind, name, op, args...), answerTimeout, "Java: "+kind+" "+op)
	if a.err != nil {
		th.t.Fatalf("%s %s: %v", kind, op, a.err)
	}
	return a.value
}

// want does an operation that must have a certain result.
func (th *thread) want(want, kind, name, op string, args ...string) {
	th.t.Helper()
	if got := th.do(kind, name, op, args...); got != want {
		th.t.Fatalf("Java's %s %s %v is %q, want %q", kind, op, args, got, want)
	}
}

// throws does an operation that must throw an exception.
func (th *thread) throws(exception, kind, name, op string, args ...string) {
	th.t.Helper()
	a := locktest.Get(th.t, th.start(kind, name, op, args...), answerTimeout, "Java: "+kind+" "+op)
	if a.err == nil || !strings.HasPrefix(a.err.Error(), "java: "+exception) {
		th.t.Fatalf("Java's %s %s is %q, %v; want %s", kind, op, a.value, a.err, exception)
	}
}

// parked reports whether the thread sleeps until a message comes.
func (th *thread) parked() bool {
	th.t.Helper()
	return locktest.Get(th.t, th.p.send(th.name, "", "", "parked"), answerTimeout, "Java: parked").value == "true"
}

// waits returns when the thread sleeps until a message comes, in the operation whose answer
// goes to done: it must not have come already.
func (th *thread) waits(done <-chan answer) {
	th.t.Helper()
	redistest.Eventually(th.t, answerTimeout, "the Java thread waits", func() bool {
		parked := th.parked()
		stillWaits(th.t, done, "Java")
		return parked
	})
}

// lockedBuffer keeps the end of what a process writes.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(text []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.buf.Len() > 1<<20 {
		b.buf.Reset()
	}
	return b.buf.Write(text)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
