package quorum_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"relock/internal/test/redistest"
	"relock/quorum"
	"relock/rlock"
)

// A plain mutex of the same name that sessions only keep is asked back for votes, by a caller that waits and by
// one that does not: nobody is inside.
func TestKeptLocksAreAskedFor(t *testing.T) {
	each(t, func(t *testing.T, all []*redistest.Server) {
		ctx := within(t, time.Minute)
		keepers, others := dial(t, all, slow()), dial(t, all, slow())
		keep := func(name string) {
			t.Helper()
			for i, s := range keepers {
				must(t, rlock.New(s, name, rlock.Keep(20*time.Minute)).Do(ctx, func(context.Context) error { return nil }))
				if keys := all[i].Keys(t); !slices.Contains(keys, name) {
					t.Fatalf("the lock is not kept: %q", keys)
				}
			}
		}
		keep("tried")
		_, _, err := quorum.New(others, "tried").TryLock(ctx)
		is(t, "TryLock of a lock that is kept", err, rlock.ErrNotAcquired)
		redistest.Eventually(t, 10*time.Second, "a majority to be given back", func() bool { // the others may not have been heard
			free := 0
			for _, s := range all {
				if !slices.Contains(s.Keys(t), "tried") {
					free++
				}
			}
			return free > len(all)/2
		})
		keep("waited for")
		free(t, ctx, quorum.New(others, "waited for"))
		keep("their own")
		free(t, ctx, quorum.New(keepers, "their own"))
	})
}
