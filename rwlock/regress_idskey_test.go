package rwlock_test

import (
	"testing"
	"time"

	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/rwlock"
)

// The ids of an owner of a read-write lock are no other lock's, as one whose name is that of the former and its owner.
func TestIdsOfAnOwnerAreNoOtherLocks(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ses := dial(t, s, slow)
		me := rlock.WithOwner(within(t, 30*time.Second), "42")
		for _, lock := range []lockFunc{rwlock.New(ses, "orders").RLock, rwlock.New(ses, "orders").Lock} {
			_, h := hold(t, me, lock)
			_, plain := hold(t, me, rlock.New(ses, "{orders}:42").Lock)
			must(t, h.Unlock())
			must(t, plain.Unlock())
			nothingLeft(t, s)
		}
	})
}
