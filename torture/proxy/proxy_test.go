package proxy_test

import (
	"bufio"
	"io"
	"net"
	"testing"
	"time"

	"relock/torture/proxy"
)

// echo is a server that tells each line that it gets, and sends it back.
func echo(t *testing.T) (addr string, got <-chan string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	lines := make(chan string, 100)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				for sc := bufio.NewScanner(c); sc.Scan(); {
					lines <- sc.Text()
					_, _ = io.WriteString(c, sc.Text()+"\n")
				}
			}()
		}
	}()
	return l.Addr().String(), lines
}

// dial returns a proxy and a connection through it to an echo.
func dial(t *testing.T) (p *proxy.Proxy, c net.Conn, got <-chan string) {
	t.Helper()
	addr, got := echo(t)
	p, err := proxy.Listen()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	c, err = proxy.Dialer(p.Addr())(t.Context(), addr, new(net.Dialer), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	say(t, c, "first")
	if line := <-got; line != "first" {
		t.Fatalf("the server got %q", line)
	}
	if line := hear(c); line != "first" {
		t.Fatalf("the client got %q", line)
	}
	return p, c, got
}

func say(t *testing.T, c net.Conn, line string) {
	t.Helper()
	if _, err := io.WriteString(c, line+"\n"); err != nil {
		t.Fatal(err)
	}
}

// hear returns the next line, or the error.
func hear(c net.Conn) string {
	line, err := bufio.NewReader(c).ReadString('\n')
	if err != nil {
		return "error"
	}
	return line[:len(line)-1]
}

// takes returns how to wait until the proxy has taken so many more bytes, in both directions.
func takes(t *testing.T, p *proxy.Proxy, n int) (await func()) {
	t.Helper()
	want := p.Taken() + int64(n)
	return func() {
		t.Helper()
		for end := time.Now().Add(10 * time.Second); p.Taken() < want; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("the proxy has taken %d bytes, want %d", p.Taken(), want)
			}
		}
	}
}

func TestDelay(t *testing.T) {
	t.Parallel()
	p, c, got := dial(t)
	p.Set(proxy.Rule{Up: 100 * time.Millisecond, Down: 100 * time.Millisecond})
	began := time.Now()
	say(t, c, "slow")
	<-got
	if took := time.Since(began); took < 100*time.Millisecond {
		t.Errorf("up after %v", took)
	}
	if line, took := hear(c), time.Since(began); line != "slow" || took < 200*time.Millisecond {
		t.Errorf("%q after %v", line, took)
	}
}

func TestCutAnswers(t *testing.T) {
	t.Parallel()
	p, c, got := dial(t)
	p.Set(proxy.Rule{CutDown: true})
	answered := takes(t, p, 2*len("unanswered\n"))
	say(t, c, "unanswered")
	if line := <-got; line != "unanswered" {
		t.Errorf("the server got %q", line)
	}
	answered()
	_ = c.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
	if line := hear(c); line != "error" {
		t.Errorf("the client got %q", line)
	}
	p.Set(proxy.Rule{})
	_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
	if _, err := c.Read(make([]byte, 1)); err == nil || isTimeout(err) {
		t.Errorf("a connection that has lost bytes goes on: %v", err)
	}
}

func isTimeout(err error) bool {
	ne, ok := err.(net.Error)
	return ok && ne.Timeout()
}

func TestCutCommands(t *testing.T) {
	t.Parallel()
	p, c, got := dial(t)
	p.Set(proxy.Rule{CutUp: true})
	say(t, c, "lost")
	select {
	case line := <-got:
		t.Errorf("the server got %q", line)
	case <-time.After(100 * time.Millisecond):
	}
}

func TestForsakenCommandsArriveLate(t *testing.T) {
	t.Parallel()
	p, c, got := dial(t)
	p.Set(proxy.Rule{Up: 300 * time.Millisecond})
	sent := takes(t, p, len("late\n"))
	began := time.Now()
	say(t, c, "late")
	sent()
	p.Forsake()
	if line := hear(c); line != "error" {
		t.Errorf("the client got %q", line)
	}
	if line, took := <-got, time.Since(began); line != "late" || took < 300*time.Millisecond {
		t.Errorf("%q after %v", line, took)
	}
}

func TestResetAndRefuse(t *testing.T) {
	t.Parallel()
	p, c, _ := dial(t)
	p.Set(proxy.Rule{Refuse: true})
	p.Reset()
	if line := hear(c); line != "error" {
		t.Errorf("the client got %q", line)
	}
	n, err := proxy.Dialer(p.Addr())(t.Context(), "127.0.0.1:1", new(net.Dialer), nil)
	if err == nil {
		defer n.Close()
		_ = n.SetReadDeadline(time.Now().Add(10 * time.Second))
		if _, err := n.Read(make([]byte, 1)); err == nil || isTimeout(err) {
			t.Errorf("a new connection goes on: %v", err)
		}
	}
}
