package script_test

import (
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
