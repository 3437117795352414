package rwlock_test

import (
	"testing"
	"time"

	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/rwlock"
)

// The holds of a named owner that several sessions share leave no timeout key, in whatever order they end. One stayed for its
// lease where the session that had the last of them left first.
func TestSharedReadHoldsLeaveNoTimeoutKey(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		me := rlock.WithOwner(within(t, time.Minute), "me")
		one, other := rwlock.New(dial(t, s, slow), "x"), rwlock.New(dial(t, s, slow), "x")
		for _, order := range [][3]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
			var holds []*rlock.Hold
			for _, m := range []*rwlock.RWMutex{one, other, other} {
				_, h := hold(t, me, m.RLock)
				holds = append(holds, h)
			}
			for _, i := range order {
				must(t, holds[i].Unlock())
			}
			nothingLeft(t, s)
		}
	})
}
