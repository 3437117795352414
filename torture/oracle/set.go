package oracle

import (
	"os"
	"sync/atomic"
	"time"
	"unsafe"
)

// Set has a set for each lock, which is changed only by those that hold the lock: each section adds its
// own record. The change is a read when the section begins and a write when it ends, so an update is
// lost as soon as two sections stand at the same time, whatever their times say. The set lies in memory
// that the processes share, so that neither a killed process nor Redis takes it along.
//
// A set is a list: its head is the id of the record that was added last, and each record has seen the
// head before it. What was added and cannot be reached from the head was lost.
type Set struct {
	heads []anchor
}

// anchor is the head of one set, alone in its cache line.
type anchor struct {
	id atomic.Uint64
	_  [7]uint64
}

// OpenSet makes or opens the sets of n locks.
func OpenSet(path string, n int) (*Set, error) {
	mem, err := mapped(path, os.O_RDWR|os.O_CREATE, n*int(unsafe.Sizeof(anchor{})))
	if err != nil {
		return nil, err
	}
	return &Set{unsafe.Slice((*anchor)(unsafe.Pointer(&mem[0])), n)}, nil
}

// Head is the id of the record that was added last to the set of a lock, 0 if it is empty.
func (s *Set) Head(lock int) uint64 { return s.heads[lock].id.Load() }

// Look notes what the section sees when it begins.
func (r *Record) Look(s *Set, lock int) { r.saw.Store(s.Head(lock)) }

// Add adds the record to the set of a lock, and notes what it replaces there. A section that still
// stands behind it has certainly added it while it stood; of any other, the process may have been
// stopped just before, for longer than its lease.
func (r *Record) Add(s *Set, lock int, alive func() bool, left func() time.Duration) {
	r.tried.Store(int64(Now()))
	r.replaced.Store(s.heads[lock].id.Swap(r.id.Load()))
	r.confirm(alive, left)
}

// LookAgain notes what a reader sees when its section ends.
func (r *Record) LookAgain(s *Set, lock int, alive func() bool, left func() time.Duration) {
	r.replaced.Store(s.Head(lock))
	r.confirm(alive, left)
}

func (r *Record) confirm(alive func() bool, left func() time.Duration) {
	now := int64(Now())
	if r.Inside(alive, left) && r.safe.Load() >= now {
		r.added.Store(now)
	}
}
