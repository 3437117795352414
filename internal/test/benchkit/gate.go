package benchkit

import (
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
	"unsafe"
)

// A Gate sees who is inside, from outside the lock. It can be shared by processes: their
// clocks and messages could not tell an overlap of microseconds, shared memory can.
// Safe for concurrent use.
type Gate struct {
	inside     *int64 // writers << 32 + readers
	violations *int64
	mem        []byte // the mapping; nil for a gate of one process
}

const (
	oneWriter  = 1 << 32
	gateBytes  = 16
	manyReader = oneWriter - 1
)

// NewGate returns a gate for one process.
func NewGate() *Gate { return &Gate{inside: new(int64), violations: new(int64)} }

// OpenGate returns the gate that lies in the file, which it makes if need be: all processes
// that open it share it. Close it in the end.
func OpenGate(path string) (*Gate, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("benchkit: gate: %w", err)
	}
	defer f.Close() // the mapping stays
	if err := f.Truncate(gateBytes); err != nil {
		return nil, fmt.Errorf("benchkit: gate: %w", err)
	}
	mem, err := syscall.Mmap(int(f.Fd()), 0, gateBytes, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("benchkit: gate: %w", err)
	}
	// A mapping begins on a page, so both words are aligned.
	return &Gate{
		inside:     (*int64)(unsafe.Pointer(&mem[0])),
		violations: (*int64)(unsafe.Pointer(&mem[8])),
		mem:        mem,
	}, nil
}

// Close gives the shared memory back. Nobody may use the gate any more.
func (g *Gate) Close() error {
	if g.mem == nil {
		return nil
	}
	return syscall.Munmap(g.mem)
}

// Enter notes that somebody came in: alone if write, else beside at most readers-1 others
// (0: any number). Whoever should not have come in counts as a violation.
func (g *Gate) Enter(write bool, readers int) {
	if write {
		if atomic.AddInt64(g.inside, oneWriter) != oneWriter {
			atomic.AddInt64(g.violations, 1)
		}
		return
	}
	now := atomic.AddInt64(g.inside, 1)
	if now >= oneWriter || (readers > 0 && now&manyReader > int64(readers)) {
		atomic.AddInt64(g.violations, 1)
	}
}

// Leave notes that one who entered goes.
func (g *Gate) Leave(write bool) {
	if write {
		atomic.AddInt64(g.inside, -oneWriter)
		return
	}
	atomic.AddInt64(g.inside, -1)
}

// Violations returns how often somebody came in who should not have.
func (g *Gate) Violations() int { return int(atomic.LoadInt64(g.violations)) }
