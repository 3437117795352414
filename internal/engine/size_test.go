package engine

import (
	"testing"
	"unsafe"
)

// A session may hold a great many locks, each with a record and a claim. Both fill a size class of
// Go's allocator: one field more costs each held lock 16 bytes. BenchmarkHeld measures the whole.
func TestAHeldLockIsSmall(t *testing.T) {
	if size := unsafe.Sizeof(claim{}); size > 224 {
		t.Errorf("a claim has %d bytes, want at most 224", size)
	}
	if size := unsafe.Sizeof(lock{}); size > 80 {
		t.Errorf("a lock has %d bytes, want at most 80", size)
	}
}
