package rwlock_test

import (
	"testing"
	"time"

	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/rwlock"
)

// An owner of one lock does not take the ids of another owner's holds from another lock, whose name in braces has the
// beginning of the former's id behind it.
func TestNamesInBracesShareNoIDs(t *testing.T) {
	for name, behind := range map[string]string{"orders": "{orders}:42", "a{b}c": "a{b}c:42"} {
		t.Run(name, func(t *testing.T) {
			redistest.Each(t, func(t *testing.T, s *redistest.Server) {
				session, ctx := dial(t, s, slow), within(t, 30*time.Second)
				one, other := rwlock.New(session, name), rwlock.New(session, behind)
				_, first := hold(t, rlock.WithOwner(ctx, "42:x"), one.Lock)
				_, second := hold(t, rlock.WithOwner(ctx, "x"), other.RLock)
				must(t, first.Unlock())
				must(t, second.Unlock())
				_, third := hold(t, ctx, one.TryLock)
				must(t, third.Unlock())
			})
		})
	}
}
