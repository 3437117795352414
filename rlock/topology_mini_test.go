package rlock_test

import (
	"slices"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"relock/internal/test/redistest"
	"relock/rlock"
)

// What a first-time user writes: an address and nothing else. rueidis takes a
// miniredis for a cluster of one node, one that knows no sharded channels.
func TestTopologyBareAddressOfMiniredis(t *testing.T) {
	t.Parallel()
	s := redistest.Mini(t)
	o := rueidis.ClientOption{InitAddress: []string{s.Addr}}
	a, b := topoDial(t, o, topoSlow()), topoDial(t, o, topoSlow())
	ctx := within(t, time.Minute)
	for _, name := range []string{redistest.Name(t), "a{b", "{}x"} {
		section, outer, err := rlock.New(a, name).Lock(ctx)
		must(t, err)
		_, inner, err := rlock.New(a, name).Lock(section)
		must(t, err)
		_, _, err = rlock.New(b, name).TryLock(ctx)
		topoIs(t, "TryLock of a held lock", err, rlock.ErrNotAcquired)
		before := s.Channels(t)
		w := topoLock(ctx, rlock.New(b, name))
		redistest.Eventually(t, topoPatience, "the waiter listens", func() bool {
			return len(s.Channels(t)) > len(before)
		})
		must(t, inner.Unlock())
		w.waits(t)
		must(t, outer.Unlock())
		t.Logf("woken after %v", w.granted(t, topoPatience))
		must(t, w.hold.Unlock())
		redistest.Eventually(t, topoPatience, "the channel is left", func() bool {
			return slices.Equal(s.Channels(t), before)
		})

		section, h, err := rlock.New(a, name).Lock(ctx)
		must(t, err)
		if ok, err := rlock.New(b, name).ForceUnlock(ctx); !ok || err != nil {
			t.Errorf("ForceUnlock: %v, %v", ok, err)
		}
		topoEnds(t, section, topoPatience, rlock.ErrLost)
		topoIs(t, "Unlock", h.Unlock(), rlock.ErrLost)
	}
	if keys := s.Keys(t); len(keys) > 0 {
		t.Errorf("left over: %q", keys)
	}
}
