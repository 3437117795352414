package topology_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"relock/internal/test/locktest"
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
	a, b := locktest.DialOption(t, c.Option(), locktest.Slow()), locktest.DialOption(t, c.Option(), locktest.Slow())
	sharded := redistest.ServerVersion(t).Sharded()
	for i, addr := range c.Addrs {
		name := locktest.NameOn(t, c, addr)
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
		w := locktest.BeginLock(ctx, rlock.New(b, name))
		topoListening(t, c, locktest.Channel(name), addr)
		for _, node := range c.Addrs {
			if list := c.Node(node).Channels(t); sharded && slices.Contains(list, locktest.Channel(name)) {
				t.Errorf("node %d: a plain subscription: %q", i, list)
			}
		}
		must(t, inner.Unlock())
		w.Waits(t)
		must(t, outer.Unlock())
		t.Logf("node %d: woken after %v", i, w.Granted(t, locktest.Patience))
		must(t, w.Hold.Unlock())
		topoSilent(t, c, locktest.Channel(name))
		if keys := c.Node(addr).Keys(t); slices.Contains(keys, name) {
			t.Errorf("node %d: the key is left", i)
		}
	}
}

func topoOddNames(t *testing.T, c *redistest.Cluster, prefix string) {
	ctx := within(t, time.Minute)
	cfg := locktest.Slow()
	cfg.Prefix = prefix
	o := topoOdd{c: c, prefix: prefix, a: locktest.DialOption(t, c.Option(), cfg), b: locktest.DialOption(t, c.Option(), cfg), base: topoClusterKeys(t, c)}
	for _, o.name = range []string{
		"a}b", "a{b", "{}x", "{b}", "a{b}c", "}{", "{", "}", "{}", "{}{b}", "{{b}}", "{b}{c}", "a}{b}",
		" ", "two words", "tab\tand\nline", "\x00\xff\xfe{\x80", "ключ-锁-🔒", strings.Repeat("k", 1024),
		strings.Repeat("{", 1024), "a:b:c", "*?[x]",
	} {
		o.contended(t, ctx)
		named := rlock.WithOwner(ctx, "owner of "+o.name)
		o.shared(t, ctx, named)
		o.forced(t, ctx, named)
		o.inSlot(t, "at the end", 1)

		left := topoClusterKeys(t, c)
		if slices.Contains(left, prefix+o.name) {
			t.Errorf("%q: the lock is left", o.name)
		}
		o.base = left
	}
}

// A topoOdd is two sessions that lock an odd name.
type topoOdd struct {
	c            *redistest.Cluster
	a, b         *rlock.Session
	prefix, name string
	base         []string // the keys that were there before
}

func (o *topoOdd) slot() int { return redistest.Slot(o.prefix + o.name) }

// inSlot looks at all that this name has put into the cluster by now.
func (o *topoOdd) inSlot(t *testing.T, when string, least int) {
	t.Helper()
	n := 0
	for _, key := range topoClusterKeys(t, o.c) {
		if slices.Contains(o.base, key) {
			continue
		}
		n++
		if redistest.Slot(key) != o.slot() {
			t.Errorf("%q, %s: key %q is in another slot", o.name, when, key)
		}
	}
	if n < least {
		t.Errorf("%q, %s: %d keys, want at least %d", o.name, when, n, least)
	}
}

func (o *topoOdd) ok(t *testing.T, what string, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%q: %s: %v", o.name, what, err)
	}
}

// contended: one session waits for the other; both want tokens.
func (o *topoOdd) contended(t *testing.T, ctx context.Context) {
	t.Helper()
	_, first, err := rlock.New(o.a, o.name, rlock.Fenced()).Lock(ctx)
	o.ok(t, "fenced Lock", err)
	_, _, err = rlock.New(o.b, o.name).TryLock(ctx)
	topoIs(t, "TryLock of a held lock", err, rlock.ErrNotAcquired)
	w := locktest.BeginLock(ctx, rlock.New(o.b, o.name, rlock.Fenced()))
	owner := o.c.SlotOwner(t, o.slot())
	redistest.Eventually(t, locktest.Patience, fmt.Sprintf("a channel of slot %d for %q", o.slot(), o.name), func() bool {
		return slices.ContainsFunc(o.c.Subscribed(t, owner), func(channel string) bool {
			return redistest.Slot(channel) == o.slot() && strings.Contains(channel, o.prefix+o.name)
		})
	})
	o.inSlot(t, "fenced", 2)
	o.ok(t, "Unlock", first.Unlock())
	w.Granted(t, locktest.Patience)
	if w.Hold.Token() <= first.Token() || first.Token() < 1 {
		t.Errorf("%q: token %d after %d", o.name, w.Hold.Token(), first.Token())
	}
	o.ok(t, "Unlock", w.Hold.Unlock())
}

// shared: both sessions are in, as the same owner.
func (o *topoOdd) shared(t *testing.T, ctx, named context.Context) {
	t.Helper()
	_, h1, err := rlock.New(o.a, o.name).Lock(named)
	o.ok(t, "Lock with WithOwner", err)
	_, h2, err := rlock.New(o.b, o.name).Lock(named)
	o.ok(t, "Lock with WithOwner in another session", err)
	o.inSlot(t, "shared", 3) // the lock, the token, what is remembered of the requests
	st, err := rlock.New(o.a, o.name).State(ctx)
	o.ok(t, "State", err)
	if len(st.Owners) != 1 || st.Owners["owner of "+o.name] != 2 {
		t.Errorf("%q: State %v", o.name, st)
	}
	o.ok(t, "Unlock", h1.Unlock())
	o.ok(t, "Unlock", h2.Unlock())
}

// forced: one session takes the lock of the other away, whatever kind its owner is of.
func (o *topoOdd) forced(t *testing.T, contexts ...context.Context) {
	t.Helper()
	for _, ctx := range contexts {
		section, h, err := rlock.New(o.a, o.name).Lock(ctx)
		o.ok(t, "Lock", err)
		if ok, err := rlock.New(o.b, o.name).ForceUnlock(ctx); !ok || err != nil {
			t.Errorf("%q: ForceUnlock: %v, %v", o.name, ok, err)
		}
		topoEnds(t, section, locktest.Patience, rlock.ErrLost)
		topoIs(t, "Unlock", h.Unlock(), rlock.ErrLost)
	}
}

func topoWatchdog(t *testing.T, c *redistest.Cluster) {
	const locks, lease = 300, topoLease
	ctx := within(t, 2*time.Minute)
	a, b := locktest.DialOption(t, c.Option(), rlock.Config{Lease: lease}), locktest.DialOption(t, c.Option(), rlock.Config{})
	name := redistest.Name(t)
	sections, holds := topoLockMany(t, ctx, a, name, locks)
	topoStays(t, 3*lease, sections...)
	for i := range locks { // one by one, since each has a second
		_, _, err := rlock.New(b, fmt.Sprint(name, i)).TryLock(ctx)
		topoIs(t, "TryLock of a held lock", err, rlock.ErrNotAcquired)
	}
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
	a, b := locktest.DialOption(t, c.Option(), locktest.Slow()), locktest.DialOption(t, c.Option(), locktest.Slow())
	for _, named := range []bool{false, true} {
		name := locktest.NameOn(t, c, topoOther(c, topoCarrier(t, c, a)))
		ctx := ctx
		if named {
			ctx = rlock.WithOwner(ctx, redistest.Name(t))
		}
		section, h, err := rlock.New(a, name).Lock(ctx)
		must(t, err)
		w := locktest.BeginLock(within(t, time.Minute), rlock.New(b, name))
		topoListening(t, c, locktest.Channel(name), c.SlotOwner(t, redistest.Slot(name)))
		ok, err := rlock.New(b, name).ForceUnlock(ctx)
		if !ok || err != nil {
			t.Fatalf("ForceUnlock: %v, %v", ok, err)
		}
		t.Logf("named owner %v: told after %v", named, topoEnds(t, section, locktest.Patience, rlock.ErrLost))
		topoIs(t, "Unlock", h.Unlock(), rlock.ErrLost)
		w.Granted(t, locktest.Patience)
		if got := topoField(t, c.Node(c.SlotOwner(t, redistest.Slot(name))), name, w.Hold.Owner()); got != "1" {
			t.Errorf("the successor's count is %q", got)
		}
		must(t, w.Hold.Unlock())
	}
}

func topoClose(t *testing.T, c *redistest.Cluster) {
	ctx := within(t, time.Minute)
	a, b := locktest.DialOption(t, c.Option(), locktest.Slow()), locktest.DialOption(t, c.Option(), locktest.Slow())
	name := redistest.Name(t)
	sections, holds := topoLockMany(t, ctx, a, name, 300)
	w := locktest.BeginLock(ctx, rlock.New(b, name+"0"))
	topoListening(t, c, locktest.Channel(name+"0"), c.SlotOwner(t, redistest.Slot(name+"0")))
	must(t, a.Close())
	for i := range sections {
		topoEnds(t, sections[i], locktest.Patience, rlock.ErrClosed)
	}
	topoIs(t, "Unlock after Close", holds[7].Unlock(), rlock.ErrClosed)
	w.Granted(t, locktest.Patience)
	must(t, w.Hold.Unlock())
	for _, key := range topoClusterKeys(t, c) {
		if strings.HasPrefix(key, name) {
			t.Errorf("%q is left", key)
		}
	}
	redistest.Eventually(t, locktest.Patience, "no node to have the session's channel", func() bool { // it hears of closed connections late
		return !slices.ContainsFunc(c.Addrs, func(addr string) bool {
			return slices.Contains(c.Node(addr).Channels(t), "relock_session:"+a.ID())
		})
	})
}
