package redistest

import (
	"net"
	"sync"
	"syscall"

	"github.com/alicebob/miniredis/v2"
)

// A bubble is the way to a miniredis that has no address: in the bubble of a test, connections are in
// memory.
type bubble struct {
	mini *miniredis.Miniredis

	mu   sync.Mutex // guards what follows
	down bool       // and nobody is let in: to dial a miniredis starts it
}

func (b *bubble) dial() (net.Conn, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.down {
		return nil, &net.OpError{Op: "dial", Net: "memory", Err: syscall.ECONNREFUSED}
	}
	return b.mini.Dial()
}

// set says whether the server is down.
func (b *bubble) set(down bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.down = down
}
