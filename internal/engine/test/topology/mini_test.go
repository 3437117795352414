package topology_test

import (
	"slices"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// What a first-time user writes: an address and nothing else. rueidis takes a
// miniredis for a cluster of one node, one that knows no sharded channels.
func TestTopologyBareAddressOfMiniredis(t *testing.T) {
	t.Parallel()
	s := redistest.Mini(t)
	o := rueidis.ClientOption{InitAddress: []string{s.Addr}}
	a, b := locktest.DialOption(t, o, locktest.Slow()), locktest.DialOption(t, o, locktest.Slow())
	ctx := within(t, time.Minute)
	for _, name := range []string{redistest.Name(t), "a{b", "{}x"} {
		section, outer, err := rlock.New(a, name).Lock(ctx)
		must(t, err)
		_, inner, err := rlock.New(a, name).Lock(section)
		must(t, err)
		_, _, err = rlock.New(b, name).TryLock(ctx)
		topoIs(t, "TryLock of a held lock", err, rlock.ErrNotAcquired)
		before := s.Channels(t)
		w := locktest.BeginLock(ctx, rlock.New(b, name))
		redistest.Eventually(t, locktest.Patience, "the waiter listens", func() bool {
			return len(s.Channels(t)) > len(before)
		})
		must(t, inner.Unlock())
		w.Waits(t)
		must(t, outer.Unlock())
		t.Logf("woken after %v", w.Granted(t, locktest.Patience))
		must(t, w.Hold.Unlock())
		redistest.Eventually(t, locktest.Patience, "the channel is left", func() bool {
			return slices.Equal(s.Channels(t), before)
		})

		section, h, err := rlock.New(a, name).Lock(ctx)
		must(t, err)
		if ok, err := rlock.New(b, name).ForceUnlock(ctx); !ok || err != nil {
			t.Errorf("ForceUnlock: %v, %v", ok, err)
		}
		topoEnds(t, section, locktest.Patience, rlock.ErrLost)
		topoIs(t, "Unlock", h.Unlock(), rlock.ErrLost)
	}
	if keys := s.Keys(t); len(keys) > 0 {
		t.Errorf("left over: %q", keys)
	}
}
