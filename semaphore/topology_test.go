package semaphore_test

import (
	"bytes"
	"context"
	"runtime"
	"slices"
	"testing"
	"time"

	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/semaphore"
)

// On a Cluster all keys of a semaphore are in the slot of its name, whatever it is made
// of, and messages reach the waiters of other sessions on their shard channel (R29).
func TestCluster(t *testing.T) {
	t.Parallel()
	c := redistest.NewCluster(t)
	ctx := within(t, 2*time.Minute)
	open := func() *rlock.Session {
		ses, err := rlock.Dial(ctx, c.Option(), rlock.Config{PollFloor: time.Hour})
		must(t, err)
		return ses
	}
	a, b := open(), open()
	for _, name := range oddNames {
		oddName(t, a, name)
		inOneSlot(t, ctx, c, a, name)
	}
	for _, addr := range c.Addrs {
		wakesOn(t, ctx, c, addr, a, b)
	}
	must(t, a.Close())
	must(t, b.Close())
	// For five seconds after it has seen a new topology a rueidis client keeps a goroutine.
	redistest.Eventually(t, 10*time.Second, "the clients' last goroutines to end", func() bool {
		all := make([]byte, 1<<20)
		return !bytes.Contains(all[:runtime.Stack(all, true)], []byte("clusterClient)._refresh"))
	})
}

// inOneSlot checks in which slots the keys are that are made of a name.
func inOneSlot(t *testing.T, ctx context.Context, c *redistest.Cluster, s *rlock.Session, name string) {
	// Keys of a name with something taken, and of a request to a counter.
	_, p, err := semaphore.New(s, name, 4).Acquire(ctx, 1)
	must(t, err)
	must(t, semaphore.NewCounter(s, name+"?").Release(ctx, 1))
	slots := []int{redistest.Slot(name), redistest.Slot(name + "?"), redistest.Slot(name + "/c")}
	all := 0
	for _, addr := range c.Addrs {
		for _, key := range c.Node(addr).Keys(t) {
			all++
			if !slices.Contains(slots, redistest.Slot(key)) {
				t.Errorf("%q has a key in another slot: %q", name, key)
			}
		}
	}
	if all < 5 {
		t.Errorf("%q: %d keys", name, all)
	}
	must(t, p.Release())
	for _, addr := range c.Addrs {
		c.Node(addr).FlushAll(t)
	}
}

// wakesOn checks that a release of one session wakes the waiter of another, of a name on that node.
func wakesOn(t *testing.T, ctx context.Context, c *redistest.Cluster, addr string, a, b *rlock.Session) {
	name := nameOn(t, c, addr)
	m, other := semaphore.New(a, name, 2), semaphore.New(b, name, 2)
	_, p, err := m.Acquire(ctx, 2)
	must(t, err)
	in := start(func() error {
		return other.Do(ctx, 2, func(section context.Context) error { return section.Err() })
	})
	redistest.Eventually(t, 10*time.Second, "the waiter to listen", func() bool {
		return slices.Contains(c.Subscribed(t, addr), channel(name))
	})
	waits(t, "the waiter", in)
	must(t, p.Release())
	select {
	case err := <-in:
		must(t, err)
	case <-time.After(10 * time.Second):
		t.Errorf("the waiter on %s was not woken", addr)
	}
}

// nameOn returns a name whose slot is on that node.
func nameOn(t testing.TB, c *redistest.Cluster, addr string) string {
	for {
		if name := redistest.Name(t); c.SlotOwner(t, redistest.Slot(name)) == addr {
			return name
		}
	}
}
