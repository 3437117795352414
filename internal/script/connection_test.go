package script_test

import (
	"io"
	"net"
	"runtime"
	"sync/atomic"
	"testing"

	"relock/internal/script"
)

// noting is a connection that notes what the counter says while it is written to.
type noting struct {
	net.Conn
	ran  *atomic.Int64
	seen int64
}

func (c *noting) Write(p []byte) (int, error) {
	c.seen = c.ran.Load()
	return len(p), nil
}

// With many calls on their way a write lets the callers that can run go first; with few it waits
// for nothing. The scheduler promises neither, so most of many rounds count.
func TestAWriteLetsACrowdGather(t *testing.T) {
	const rounds = 200
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // or another processor runs the caller meanwhile
	for calls, crowded := range map[int]bool{1: false, 8: false, 9: true, 64: true} {
		conn := script.NewConnection()
		conn.SetFlying(calls)
		first := 0
		for range rounds {
			under := &noting{ran: new(atomic.Int64)}
			w := conn.Watch(under)
			done := make(chan struct{})
			go func() {
				under.ran.Add(1)
				close(done)
			}()
			if n, err := w.Write([]byte("x")); n != 1 || err != nil {
				t.Fatal(n, err)
			}
			<-done
			first += int(under.seen)
		}
		if crowded != (first > rounds/2) {
			t.Errorf("%d calls: the caller ran before the write in %d of %d rounds", calls, first, rounds)
		}
	}
}

// answering is a connection on which the server says one thing, in pieces of so many bytes.
type answering struct {
	net.Conn
	says  string
	piece int
}

func (c *answering) Write(p []byte) (int, error) { return len(p), nil }

func (c *answering) Read(p []byte) (int, error) {
	if c.says == "" {
		return 0, io.EOF
	}
	n := copy(p, c.says[:min(len(c.says), c.piece)])
	c.says = c.says[n:]
	return n, nil
}

// Behind UNSUBSCRIBE the client panics at the answers of a server that is busy or cannot serve: they end the connection.
func TestWhatPanicsBehindUnsubscribeEndsTheConnection(t *testing.T) {
	const unsubscribe = "*2\r\n$11\r\nUNSUBSCRIBE\r\n$1\r\nx\r\n"
	push := ">3\r\n$11\r\nunsubscribe\r\n$1\r\nx\r\n:0\r\n"
	for says, ends := range map[string]bool{
		"-BUSY Redis is busy": true, push + "-MISCONF Errors writing": true, push + "-MASTERDOWN Link": true,
		push + "+PONG": false, push + "-LOADING Redis is loading": false, push + "-NOPERM no 'ping'": false,
	} {
		for _, sent := range []string{unsubscribe, "*1\r\n$4\r\nPING\r\n"} {
			for _, piece := range []int{1, 2, 9, 15, 1000} {
				w := script.NewConnection().Watch(&answering{says: says + " …\r\n", piece: piece})
				if _, err := w.Write([]byte(sent)); err != nil {
					t.Fatal(err)
				}
				_, err := io.ReadAll(w)
				if want := ends && sent == unsubscribe; (err != nil) != want {
					t.Errorf("%q behind %q, in pieces of %d: %v", says, sent, piece, err)
				}
			}
		}
	}
}
