package rwlock_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/rwlock"
)

// In a real Cluster every name works, keeps all its keys in one slot, and waits on sharded
// channels (R29).
func TestClusterNames(t *testing.T) {
	t.Parallel()
	c := redistest.NewCluster(t)
	ctx := within(t, 2*time.Minute)
	open := func() *rlock.Session {
		ses, err := rlock.Dial(ctx, c.Option(), rlock.Config{PollFloor: time.Minute, Lease: 3 * time.Second})
		must(t, err)
		t.Cleanup(func() { must(t, ses.Close()) })
		return ses
	}
	a, b := open(), open()
	for _, name := range []string{
		"plain", "a}b", "a{b", "{}x", "{b}", "a{b}c", "}{", "{", "{}", "{b}{c}", " ", "two words",
		"\x00\xff\xfe{\x80", "ключ-锁-🔒", strings.Repeat("k", 1024), "a:b:c", "*?[x]",
	} {
		for _, owner := range []string{"", "{owner} of " + name} {
			ctx := ctx
			if owner != "" {
				ctx = rlock.WithOwner(ctx, owner)
			}
			clusterRound(t, c, ctx, name, rwlock.New(a, name), rwlock.New(b, name))
		}
	}
}

// clusterRound does everything once that two sessions can do with one name.
func clusterRound(t *testing.T, c *redistest.Cluster, ctx context.Context, name string, ma, mb *rwlock.RWMutex) {
	t.Helper()
	slot := redistest.Slot(name)
	inSlot := func(least int) {
		t.Helper()
		n := 0
		for _, addr := range c.Addrs {
			for _, key := range c.Node(addr).Keys(t) {
				n++
				if redistest.Slot(key) != slot {
					t.Errorf("%q: key %q is in another slot", name, key)
				}
			}
		}
		if n < least {
			t.Errorf("%q: %d keys, want at least %d", name, n, least)
		}
	}
	out := context.Background()
	ok := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%q: %s: %v", name, what, err)
		}
	}
	section, w, err := ma.Lock(ctx)
	ok("Lock", err)
	_, r, err := ma.RLock(section)
	ok("nested RLock", err)
	refused(t, out, mb.TryRLock, "a reader beside a writer")
	reader := goLock(out, mb.RLock)
	node := c.SlotOwner(t, slot)
	redistest.Eventually(t, 20*time.Second, fmt.Sprintf("a sharded channel for %q", name), func() bool {
		return slices.ContainsFunc(c.Subscribed(t, node), func(ch string) bool { return redistest.Slot(ch) == slot && strings.HasPrefix(ch, "redisson_rwlock:") })
	})
	inSlot(4) // the lock, the readers, the ids, the timeout key
	ok("the downgrade", w.Unlock())
	other := in(t, reader, 20*time.Second, "the reader, at the downgrade")
	writer := goLock(out, mb.Lock)
	redistest.Eventually(t, 20*time.Second, "the writer to wait", func() bool {
		_, h, err := mb.TryRLock(out)
		if err == nil {
			ok("Unlock", h.Unlock())
		}
		return err != nil
	})
	inSlot(6) // another reader's ids and timeout key, and the mark
	ok("Unlock", r.Unlock())
	ok("Unlock", other.hold.Unlock())
	last := in(t, writer, 20*time.Second, "the writer")
	st, err := ma.State(ctx)
	ok("State", err)
	if st.Mode != "write" || st.Owners[last.hold.Owner()] != 1 {
		t.Errorf("%q: State %+v", name, st)
	}
	found, err := ma.ForceUnlock(out)
	ok("ForceUnlock", err)
	if !found {
		t.Errorf("%q: ForceUnlock found nothing", name)
	}
	ends(t, last.ctx, 20*time.Second, rlock.ErrLost)
	redistest.Eventually(t, 20*time.Second, "no key but the ids that were forced", func() bool {
		for _, addr := range c.Addrs {
			for _, key := range c.Node(addr).Keys(t) {
				if !strings.HasPrefix(key, "relock_holds:") {
					return false
				}
			}
		}
		return true
	})
	for _, addr := range c.Addrs {
		for _, key := range c.Node(addr).Keys(t) {
			must(t, c.Node(addr).Do(t, "DEL", key).Error())
		}
	}
}
