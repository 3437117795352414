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
	r := round{c: c, name: name, ma: ma, mb: mb}
	last := r.downgrade(t, ctx)
	st, err := ma.State(ctx)
	r.ok(t, "State", err)
	if st.Mode != "write" || st.Owners[last.hold.Owner()] != 1 {
		t.Errorf("%q: State %+v", name, st)
	}
	found, err := ma.ForceUnlock(context.Background())
	r.ok(t, "ForceUnlock", err)
	if !found {
		t.Errorf("%q: ForceUnlock found nothing", name)
	}
	ends(t, last.ctx, 20*time.Second, rlock.ErrLost)
	redistest.Eventually(t, 20*time.Second, "no key but the ids that were forced", func() bool {
		return !slices.ContainsFunc(r.keys(t), func(key string) bool { return !strings.HasPrefix(key, "relock_rw_holds:") })
	})
	for _, addr := range c.Addrs {
		for _, key := range c.Node(addr).Keys(t) {
			must(t, c.Node(addr).Do(t, "DEL", key).Error())
		}
	}
}

// A round is two sessions that use one name in a cluster.
type round struct {
	c      *redistest.Cluster
	name   string
	ma, mb *rwlock.RWMutex
}

func (r round) ok(t *testing.T, what string, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%q: %s: %v", r.name, what, err)
	}
}

func (r round) keys(t *testing.T) (all []string) {
	t.Helper()
	for _, addr := range r.c.Addrs {
		all = append(all, r.c.Node(addr).Keys(t)...)
	}
	return all
}

// inSlot checks that there are as many keys at least, all in the name's slot.
func (r round) inSlot(t *testing.T, least int) {
	t.Helper()
	keys := r.keys(t)
	for _, key := range keys {
		if redistest.Slot(key) != redistest.Slot(r.name) {
			t.Errorf("%q: key %q is in another slot", r.name, key)
		}
	}
	if len(keys) < least {
		t.Errorf("%q: %d keys, want at least %d", r.name, len(keys), least)
	}
}

// downgrade has a writer become a reader, beside which others wait and enter. It returns the
// writer that is in at the end.
func (r round) downgrade(t *testing.T, ctx context.Context) locked {
	t.Helper()
	out := context.Background()
	section, write, err := r.ma.Lock(ctx)
	r.ok(t, "Lock", err)
	_, read, err := r.ma.RLock(section)
	r.ok(t, "nested RLock", err)
	refused(t, out, r.mb.TryRLock, "a reader beside a writer")
	reader := goLock(out, r.mb.RLock)
	slot := redistest.Slot(r.name)
	node := r.c.SlotOwner(t, slot)
	redistest.Eventually(t, 20*time.Second, fmt.Sprintf("a sharded channel for %q", r.name), func() bool {
		return slices.ContainsFunc(r.c.Subscribed(t, node), func(ch string) bool { return redistest.Slot(ch) == slot && strings.HasPrefix(ch, "redisson_rwlock:") })
	})
	r.inSlot(t, 4) // the lock, the readers, the ids, the timeout key
	r.ok(t, "the downgrade", write.Unlock())
	other := in(t, reader, 20*time.Second, "the reader, at the downgrade")
	writer := goLock(out, r.mb.Lock)
	redistest.Eventually(t, 20*time.Second, "the writer to wait", func() bool {
		_, h, err := r.mb.TryRLock(out)
		if err == nil {
			r.ok(t, "Unlock", h.Unlock())
		}
		return err != nil
	})
	r.inSlot(t, 6) // another reader's ids and timeout key, and the mark
	r.ok(t, "Unlock", read.Unlock())
	r.ok(t, "Unlock", other.hold.Unlock())
	return in(t, writer, 20*time.Second, "the writer")
}
