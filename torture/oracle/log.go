package oracle

import (
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

const recordSize = 128

var _ = [1]struct{}{}[unsafe.Sizeof(Record{})-recordSize] // does not compile otherwise

// capacity is how many records a file has room for. What is not written takes no space.
const capacity = 1 << 22

// Log is the file of one process. Its methods are safe for concurrent use.
type Log struct {
	records []Record
	first   uint64 // id of the first record, less 1
	next    atomic.Int64
}

// Create makes the file of this process. It stays mapped until the process ends. life is the number of
// the process among all of a round, so that the ids of its records are its own.
func Create(path string, life int) (*Log, error) {
	mem, err := mapped(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, capacity*recordSize)
	if err != nil {
		return nil, err
	}
	return &Log{records: unsafe.Slice((*Record)(unsafe.Pointer(&mem[0])), capacity), first: uint64(life) << 32}, nil
}

// mapped maps a file of size bytes into memory, where it stays until the process ends.
func mapped(path string, flags, size int) ([]byte, error) {
	f, err := os.OpenFile(path, flags, 0o600)
	if err != nil {
		return nil, err
	}
	defer f.Close() // the mapping stays
	if err := f.Truncate(int64(size)); err != nil {
		return nil, err
	}
	mem, err := syscall.Mmap(int(f.Fd()), 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("oracle: map %s: %w", path, err)
	}
	return mem, nil
}

// Begin starts a record whose call begins now.
func (l *Log) Begin(k Kind, op Op, lock, owner int, n int64, flags uint8) *Record {
	i := l.next.Add(1) - 1
	if i >= capacity {
		panic("oracle: the log is full; make the round shorter")
	}
	r := &l.records[i]
	r.what.Store(uint64(lock)<<32 | uint64(uint32(owner)))
	r.id.Store(l.first | uint64(i+1))
	r.n.Store(n)
	r.call.Store(int64(Now()))
	r.head.Store(head(k, Pending, op, flags))
	return r
}

// stallAfter is what counts as a stall: more than a busy machine's ordinary delay, and less
// than the margin of the shortest lease.
const stallAfter = 20 * time.Millisecond

// WatchStalls notes when this process does not run, for the rest of its life. It is the
// process's own view, which also covers a machine that is too busy.
func (l *Log) WatchStalls() {
	const every = 5 * time.Millisecond
	for last := Now(); ; {
		time.Sleep(every)
		now := Now()
		if now-last > every+stallAfter {
			r := l.Begin(Stall, 0, 0, 0, 0, 0)
			r.call.Store(int64(last))
			r.end.Store(int64(now))
		}
		last = now
	}
}

// Load returns all records of a file. Its process should have ended.
func Load(path string) ([]Entry, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	mem, err := syscall.Mmap(int(f.Fd()), 0, capacity*recordSize, syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("oracle: map %s: %w", path, err)
	}
	defer func() { _ = syscall.Munmap(mem) }()
	var entries []Entry
	// A process that was killed may have taken a place and not have written it; a few of
	// those may be next to each other, as many as it had threads.
	for i, empty := 0, 0; i < capacity && empty < 1000; i++ {
		e := (*Record)(unsafe.Pointer(&mem[i*recordSize])).read()
		if e.Kind == 0 {
			empty++
			continue
		}
		empty = 0
		entries = append(entries, e)
	}
	return entries, nil
}
