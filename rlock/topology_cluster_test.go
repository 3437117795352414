package rlock_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"relock/internal/test/redistest"
	"relock/rlock"
)

func TestTopologyCluster(t *testing.T) {
	t.Parallel()
	c := redistest.NewCluster(t)
	t.Run("WakesByMessageOnEveryNode", func(t *testing.T) { topoWakesOnEveryNode(t, c) })
	t.Run("OddNamesStayInOneSlot", func(t *testing.T) { topoOddNames(t, c, "") })
	t.Run("OddPrefixStaysInOneSlot", func(t *testing.T) { topoOddNames(t, c, "a}p{") })
	t.Run("ForceUnlockReachesAnotherNode", func(t *testing.T) { topoForceUnlock(t, c) })
	t.Run("CloseReleasesAllNodes", func(t *testing.T) { topoClose(t, c) })
	t.Run("WatchdogKeepsLocksOfAllSlots", func(t *testing.T) { topoWatchdog(t, c) })
}

// Only a message can wake the waiter within the test's patience. It comes on a shard channel
// of the lock's own node, or, before Redis 7.0, on a plain one. The channel is gone when the
// last waiter has left.
func topoWakesOnEveryNode(t *testing.T, c *redistest.Cluster) {
	ctx := within(t, time.Minute)
	a, b := topoDial(t, c.Option(), topoSlow()), topoDial(t, c.Option(), topoSlow())
	sharded := redistest.ServerVersion(t).Sharded()
	for i, addr := range c.Addrs {
		name := topoNameOn(t, c, addr)
		section, outer, err := rlock.New(a, name).Lock(ctx)
		must(t, err)
		_, inner, err := rlock.New(a, name).Lock(section)
		must(t, err)
		if got := topoField(t, c.Node(addr), name, outer.Owner()); got != "2" {
			t.Errorf("node %d: the owner's count is %q, want 2", i, got)
		}
		if _, _, err := rlock.New(b, name).TryLock(ctx); true {
			topoIs(t, "TryLock of a held lock", err, rlock.ErrNotAcquired)
		}
		w := topoLock(ctx, rlock.New(b, name))
		topoListening(t, c, topoChannel(name), addr)
		for _, node := range c.Addrs {
			if list := c.Node(node).Channels(t); sharded && slices.Contains(list, topoChannel(name)) {
				t.Errorf("node %d: a plain subscription: %q", i, list)
			}
		}
		must(t, inner.Unlock())
		w.waits(t)
		must(t, outer.Unlock())
		t.Logf("node %d: woken after %v", i, w.granted(t, topoPatience))
		must(t, w.hold.Unlock())
		topoSilent(t, c, topoChannel(name))
		if keys := c.Node(addr).Keys(t); slices.Contains(keys, name) {
			t.Errorf("node %d: the key is left", i)
		}
	}
}

func topoOddNames(t *testing.T, c *redistest.Cluster, prefix string) {
	ctx := within(t, time.Minute)
	cfg := topoSlow()
	cfg.Prefix = prefix
	a, b := topoDial(t, c.Option(), cfg), topoDial(t, c.Option(), cfg)
	base := topoClusterKeys(t, c)
	for _, name := range []string{
		"a}b", "a{b", "{}x", "{b}", "a{b}c", "}{", "{", "}", "{}", "{}{b}", "{{b}}", "{b}{c}", "a}{b}",
		" ", "two words", "tab\tand\nline", "\x00\xff\xfe{\x80", "ключ-锁-🔒", strings.Repeat("k", 1024),
		strings.Repeat("{", 1024), "a:b:c", "*?[x]",
	} {
		slot := redistest.Slot(prefix + name)
		// inSlot looks at all that this name has put into the cluster by now.
		inSlot := func(when string, least int) {
			t.Helper()
			n := 0
			for _, key := range topoClusterKeys(t, c) {
				if slices.Contains(base, key) {
					continue
				}
				n++
				if redistest.Slot(key) != slot {
					t.Errorf("%q, %s: key %q is in another slot", name, when, key)
				}
			}
			if n < least {
				t.Errorf("%q, %s: %d keys, want at least %d", name, when, n, least)
			}
		}
		fail := func(what string, err error) {
			t.Helper()
			if err != nil {
				t.Fatalf("%q: %s: %v", name, what, err)
			}
		}

		// Contended and fenced.
		_, first, err := rlock.New(a, name, rlock.Fenced()).Lock(ctx)
		fail("fenced Lock", err)
		if _, _, err := rlock.New(b, name).TryLock(ctx); true {
			topoIs(t, "TryLock of a held lock", err, rlock.ErrNotAcquired)
		}
		w := topoLock(ctx, rlock.New(b, name, rlock.Fenced()))
		owner := c.SlotOwner(t, slot)
		redistest.Eventually(t, topoPatience, fmt.Sprintf("a channel of slot %d for %q", slot, name), func() bool {
			return slices.ContainsFunc(c.Subscribed(t, owner), func(channel string) bool {
				return redistest.Slot(channel) == slot && strings.Contains(channel, prefix+name)
			})
		})
		inSlot("fenced", 2)
		fail("Unlock", first.Unlock())
		w.granted(t, topoPatience)
		if w.hold.Token() <= first.Token() || first.Token() < 1 {
			t.Errorf("%q: token %d after %d", name, w.hold.Token(), first.Token())
		}
		fail("Unlock", w.hold.Unlock())

		// An owner that two sessions share.
		named := rlock.WithOwner(ctx, "owner of "+name)
		_, h1, err := rlock.New(a, name).Lock(named)
		fail("Lock with WithOwner", err)
		_, h2, err := rlock.New(b, name).Lock(named)
		fail("Lock with WithOwner in another session", err)
		inSlot("shared", 3) // the lock, the token, what is remembered of the requests
		st, err := rlock.New(a, name).State(ctx)
		fail("State", err)
		if len(st.Owners) != 1 || st.Owners["owner of "+name] != 2 {
			t.Errorf("%q: State %v", name, st)
		}
		fail("Unlock", h1.Unlock())
		fail("Unlock", h2.Unlock())

		// ForceUnlock, both kinds of owner.
		for _, ctx := range []context.Context{ctx, named} {
			section, h, err := rlock.New(a, name).Lock(ctx)
			fail("Lock", err)
			if ok, err := rlock.New(b, name).ForceUnlock(ctx); !ok || err != nil {
				t.Errorf("%q: ForceUnlock: %v, %v", name, ok, err)
			}
			topoEnds(t, section, topoPatience, rlock.ErrLost)
			topoIs(t, "Unlock", h.Unlock(), rlock.ErrLost)
		}
		inSlot("at the end", 1)

		left := topoClusterKeys(t, c)
		if slices.Contains(left, prefix+name) {
			t.Errorf("%q: the lock is left", name)
		}
		base = left
	}
}

func topoWatchdog(t *testing.T, c *redistest.Cluster) {
	const locks, lease = 300, 2 * time.Second
	ctx := within(t, time.Minute)
	a, b := topoDial(t, c.Option(), rlock.Config{Lease: lease}), topoDial(t, c.Option(), rlock.Config{})
	name := redistest.Name(t)
	sections, holds := topoLockMany(t, ctx, a, name, locks)
	topoStays(t, 3*lease, sections...)
	var wg sync.WaitGroup
	for i := range locks {
		wg.Go(func() {
			_, _, err := rlock.New(b, fmt.Sprint(name, i)).TryLock(ctx)
			topoIs(t, "TryLock of a held lock", err, rlock.ErrNotAcquired)
		})
	}
	wg.Wait()
	for _, h := range holds {
		must(t, h.Unlock())
	}
}

// topoLockMany takes the locks name0, name1, ...
func topoLockMany(t *testing.T, ctx context.Context, s *rlock.Session, name string, n int) ([]context.Context, []*rlock.Hold) {
	t.Helper()
	sections, holds, errs := make([]context.Context, n), make([]*rlock.Hold, n), make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { sections[i], holds[i], errs[i] = rlock.New(s, fmt.Sprint(name, i)).Lock(ctx) })
	}
	wg.Wait()
	for _, err := range errs {
		must(t, err)
	}
	return sections, holds
}

// Renewals are a minute apart, so that only the message can tell the holder; and it
// comes from the lock's node, while the session listens on its own channel at another.
func topoForceUnlock(t *testing.T, c *redistest.Cluster) {
	ctx := within(t, time.Minute)
	a, b := topoDial(t, c.Option(), topoSlow()), topoDial(t, c.Option(), topoSlow())
	for _, named := range []bool{false, true} {
		name := topoNameOn(t, c, topoOther(c, topoCarrier(t, c, a)))
		ctx := ctx
		if named {
			ctx = rlock.WithOwner(ctx, redistest.Name(t))
		}
		section, h, err := rlock.New(a, name).Lock(ctx)
		must(t, err)
		w := topoLock(within(t, time.Minute), rlock.New(b, name))
		topoListening(t, c, topoChannel(name), c.SlotOwner(t, redistest.Slot(name)))
		ok, err := rlock.New(b, name).ForceUnlock(ctx)
		if !ok || err != nil {
			t.Fatalf("ForceUnlock: %v, %v", ok, err)
		}
		t.Logf("named owner %v: told after %v", named, topoEnds(t, section, topoPatience, rlock.ErrLost))
		topoIs(t, "Unlock", h.Unlock(), rlock.ErrLost)
		w.granted(t, topoPatience)
		if got := topoField(t, c.Node(c.SlotOwner(t, redistest.Slot(name))), name, w.hold.Owner()); got != "1" {
			t.Errorf("the successor's count is %q", got)
		}
		must(t, w.hold.Unlock())
	}
}

func topoClose(t *testing.T, c *redistest.Cluster) {
	ctx := within(t, time.Minute)
	a, b := topoDial(t, c.Option(), topoSlow()), topoDial(t, c.Option(), topoSlow())
	name := redistest.Name(t)
	sections, holds := topoLockMany(t, ctx, a, name, 300)
	w := topoLock(ctx, rlock.New(b, name+"0"))
	topoListening(t, c, topoChannel(name+"0"), c.SlotOwner(t, redistest.Slot(name+"0")))
	must(t, a.Close())
	for i := range sections {
		topoEnds(t, sections[i], topoPatience, rlock.ErrClosed)
	}
	topoIs(t, "Unlock after Close", holds[7].Unlock(), rlock.ErrClosed)
	w.granted(t, topoPatience)
	must(t, w.hold.Unlock())
	for _, key := range topoClusterKeys(t, c) {
		if strings.HasPrefix(key, name) {
			t.Errorf("%q is left", key)
		}
	}
	for _, addr := range c.Addrs {
		for _, channel := range c.Node(addr).Channels(t) {
			if channel == "relock_session:"+a.ID() {
				t.Error("the session's channel is left")
			}
		}
	}
}
