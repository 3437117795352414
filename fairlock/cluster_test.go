package fairlock_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"relock/fairlock"
	"relock/internal/test/faulttest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

func TestCluster(t *testing.T) {
	t.Parallel()
	c := redistest.NewCluster(t)
	t.Run("OrderOnEveryNode", func(t *testing.T) { clusterOrder(t, c) })
	t.Run("GrantWhileTheSlotMoves", func(t *testing.T) { clusterGrantWhileTheSlotMoves(t, c) })
	t.Run("OddNamesStayInOneSlot", func(t *testing.T) { clusterOddNames(t, c) })
	t.Run("DeadWaitersAreSkipped", func(t *testing.T) { clusterDead(t, c) })
	// For five seconds after it has seen a new topology a rueidis client keeps a goroutine,
	// which must be gone if no other test follows.
	pause(5500 * time.Millisecond)
}

// clusterDial makes a session of the cluster.
func clusterDial(t testing.TB, c *redistest.Cluster, cfg rlock.Config) *rlock.Session {
	t.Helper()
	ses, err := rlock.Dial(within(t, patience), c.Option(), cfg)
	must(t, err)
	t.Cleanup(func() {
		if err := ses.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return ses
}

func clusterKeys(t testing.TB, c *redistest.Cluster) (keys []string) {
	t.Helper()
	for _, addr := range c.Addrs {
		keys = append(keys, c.Node(addr).Keys(t)...)
	}
	return keys
}

// Order and hand-over on each node, by message alone: wherever a session's own channel is
// listened to, the message gets there.
func clusterOrder(t *testing.T, c *redistest.Cluster) {
	ctx := within(t, 60*time.Second)
	var sessions []*rlock.Session
	for range 3 {
		sessions = append(sessions, clusterDial(t, c, silent()))
	}
	for node, addr := range c.Addrs {
		name := redistest.Name(t)
		for c.SlotOwner(t, redistest.Slot(name)) != addr {
			name = redistest.Name(t)
		}
		first := lock(t, ctx, fairlock.New(sessions[node], name))
		var mu sync.Mutex
		var served []int
		var wg sync.WaitGroup
		for i := range 12 {
			m := fairlock.New(sessions[i%3], name)
			wg.Go(func() {
				if err := m.Do(ctx, func(context.Context) error {
					mu.Lock()
					defer mu.Unlock()
					served = append(served, i)
					return nil
				}); err != nil {
					t.Errorf("node %d, waiter %d: %v", node, i, err)
				}
			})
			queued(t, m, i+1)
		}
		began := time.Now()
		unlock(t, first)
		wg.Wait()
		t.Logf("node %d: 12 served in %v", node, time.Since(began))
		for i, n := range served {
			if i != n {
				t.Fatalf("node %d: served in the order %v", node, served)
			}
		}
	}
	if keys := clusterKeys(t, c); len(keys) != 0 {
		t.Errorf("left behind: %q", keys)
	}
}

func clusterOddNames(t *testing.T, c *redistest.Cluster) {
	ctx := within(t, 60*time.Second)
	a, b := clusterDial(t, c, silent()), clusterDial(t, c, silent())
	for _, name := range []string{
		"a}b", "a{b", "{}x", "{b}", "a{b}c", "}{", "{", "}", "{}", "{}{b}", "{{b}}", "{b}{c}", "a}{b}", " ",
		"\x00\xff\xfe{\x80", strings.Repeat("k", 1024), "*?[x]",
	} {
		m := fairlock.New(a, name, rlock.Fenced())
		first := lock(t, ctx, m)
		next := goQueued(t, ctx, fairlock.New(b, name, rlock.Fenced()), 1)
		n := 0
		for _, key := range clusterKeys(t, c) {
			if strings.HasPrefix(key, "redisson_lock_token:") {
				continue // also of the names before
			}
			if n++; redistest.Slot(key) != redistest.Slot(name) {
				t.Errorf("%q: key %q is in another slot", name, key)
			}
		}
		if n != 2 {
			t.Errorf("%q: %d keys, want the lock and its line", name, n)
		}
		_, err := m.ForceUnlock(ctx)
		must(t, err)
		l := granted(t, next, patience, fmt.Sprintf("the waiter for %q", name))
		ends(t, first.ctx, patience, rlock.ErrLost)
		unlock(t, l)
	}
	for _, key := range clusterKeys(t, c) {
		if !strings.HasPrefix(key, "redisson_lock_token:") {
			t.Errorf("left behind: %q", key)
		}
	}
}

// Here nobody can tell how many have heard a message, so it takes a QueueLease, and no more
// however many have died.
func clusterDead(t *testing.T, c *redistest.Cluster) {
	ctx := within(t, 60*time.Second)
	cfg := short(new(redistest.Server))
	a := clusterDial(t, c, cfg)
	m := fairlock.New(a, "x")
	first := lock(t, ctx, m)

	// A session of its own, every node of which is behind a proxy.
	dead, proxies := clusterDialProxies(t, c, cfg)
	own, cancel := context.WithCancel(ctx)
	defer cancel()
	var cut []<-chan locked
	for i := range 6 {
		cut = append(cut, goQueued(t, own, fairlock.New(dead, "x"), i+1))
	}
	next := goQueued(t, ctx, m, 7)
	for _, p := range proxies {
		p.BlackHole(true)
	}
	began := time.Now()
	unlock(t, first)
	l := granted(t, next, patience, "the live one")
	t.Logf("behind %d silent ones: %v", len(cut), l.at.Sub(began))
	if d := l.at.Sub(began); d > cfg.QueueLease+cfg.QueueLease/4 { // one claim more: six that are let in one by one cost six
		t.Errorf("the live one had to wait for %v after the release, want one QueueLease, %v, at most", d, cfg.QueueLease)
	}
	unlock(t, l)
	cancel()
	for _, p := range proxies {
		p.BlackHole(false)
	}
	for _, c := range cut {
		if l := <-c; l.err == nil {
			unlock(t, l)
		}
	}
}

// clusterDialProxies makes a session that reaches each node through a proxy.
func clusterDialProxies(t testing.TB, c *redistest.Cluster, cfg rlock.Config) (*rlock.Session, map[string]*faulttest.Proxy) {
	t.Helper()
	proxies := map[string]*faulttest.Proxy{}
	for _, addr := range c.Addrs {
		proxies[addr] = faulttest.New(t, addr)
	}
	opt := c.Option()
	opt.DialCtxFn = func(ctx context.Context, addr string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
		return d.DialContext(ctx, "tcp", proxies[addr].Addr())
	}
	ses, err := rlock.Dial(within(t, patience), opt, cfg)
	must(t, err)
	t.Cleanup(func() { _ = ses.Close() })
	return ses, proxies
}
