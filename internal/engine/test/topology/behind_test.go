package topology_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"relock/fairlock"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/semaphore"
)

// While a slot is half moved Redis lets nobody at a lock and its line together. So a caller that leaves, or that gets
// the lock, leaves its entry in the line. Once its session has closed, a release gave the lock to it: nobody had the
// lock then for a grant's lease.
func TestNothingStaysBehindInAHalfMovedSlot(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	c := redistest.NewCluster(t)
	for kind, lock := range map[string]func(*rlock.Session, string) topoLock{
		"Plain": func(s *rlock.Session, name string) topoLock { return rlock.New(s, name).Lock },
		"Fair":  func(s *rlock.Session, name string) topoLock { return fairlock.New(s, name).Lock },
		"Permit": func(s *rlock.Session, name string) topoLock {
			return func(ctx context.Context, _ ...rlock.LockOption) (context.Context, *rlock.Hold, error) {
				ctx, p, err := semaphore.New(s, name, 1).Acquire(ctx, 1)
				return ctx, (*rlock.Hold)(p), err
			}
		},
	} {
		t.Run(kind, func(t *testing.T) { topoLeaves(t, c, lock) })
	}
	t.Run("ForLongerThanALease", func(t *testing.T) { topoLongerThanALease(t, c) })
	t.Run("OfOneThatGotIn", func(t *testing.T) { topoGotIn(t, c) })
	t.Run("OfOneWithPermits", func(t *testing.T) { topoHasPermits(t, c) })
	t.Run("ForEver", func(t *testing.T) { topoNeverWhole(t, c) })
}

type topoLock func(context.Context, ...rlock.LockOption) (context.Context, *rlock.Hold, error)

// topoLeaves has a caller leave while the slot is half moved, in a session that is closed when it is whole, or is not.
func topoLeaves(t *testing.T, c *redistest.Cluster, lock func(*rlock.Session, string) topoLock) {
	for _, closes := range []bool{false, true} {
		st := topoWaits(t, c, 3*time.Minute, lock)
		st.leave()
		<-st.left
		if n := topoEntries(t, c, st.waiting); n != 1 {
			t.Fatalf("%d entries are in the line of a slot that is half moved", n)
		}
		st.moving.end(t)
		if closes {
			must(t, st.waiting.Close())
			if n := topoEntries(t, c, st.waiting); n != 0 {
				t.Errorf("%d entries have stayed in the line", n)
			}
		} else {
			redistest.Eventually(t, locktest.Patience, "the entry is taken out", func() bool { return topoEntries(t, c, st.waiting) == 0 })
		}
		must(t, st.hold.Unlock())
	}
}

// A topoWaiting is a lock that one session holds and another one waits for, in a slot that has half moved since.
type topoWaiting struct {
	name    string
	hold    *rlock.Hold
	waiting *rlock.Session
	leave   func()
	left    chan struct{} // closed when the caller has come back
	got     *rlock.Hold
	moving  *topoMigration
}

func topoWaits(t *testing.T, c *redistest.Cluster, lease time.Duration, lock func(*rlock.Session, string) topoLock) *topoWaiting {
	t.Helper()
	ctx := within(t, time.Minute)
	cfg := rlock.Config{Lease: 3 * time.Minute, PollFloor: 2 * time.Second}
	a := locktest.DialOption(t, c.Option(), cfg)
	cfg.Lease = lease // of the one that waits
	st := &topoWaiting{name: locktest.NameOn(t, c, c.Addrs[0]), waiting: locktest.DialOption(t, c.Option(), cfg), left: make(chan struct{})}
	var err error
	_, st.hold, err = lock(a, st.name)(ctx)
	must(t, err)
	ctx, st.leave = context.WithCancel(ctx)
	t.Cleanup(st.leave)
	go func() {
		defer close(st.left)
		_, st.got, _ = lock(st.waiting, st.name)(ctx)
	}()
	redistest.Eventually(t, locktest.Patience, "the caller stands in the line", func() bool { return topoEntries(t, c, st.waiting) == 1 })
	st.moving = topoBegin(t, c, redistest.Slot(st.name), c.Addrs[1])
	keys, err := st.moving.from.Do(t, "CLUSTER", "GETKEYSINSLOT", st.moving.slot, "1000").AsStrSlice()
	must(t, err)
	for _, key := range keys {
		if !strings.HasPrefix(key, "relock_line") {
			st.moving.move(t, key)
		}
	}
	return st
}

// The slot is half moved for longer than what the caller that has left could have had in Redis.
func topoLongerThanALease(t *testing.T, c *redistest.Cluster) {
	st := topoWaits(t, c, time.Second, func(s *rlock.Session, name string) topoLock { return rlock.New(s, name).Lock })
	st.leave()
	<-st.left
	<-time.After(2500 * time.Millisecond)
	st.moving.end(t)
	// The line itself ends later than that, by its TTL.
	redistest.Eventually(t, 5*time.Second, "the entry is taken out", func() bool { return topoEntries(t, c, st.waiting) == 0 })
	must(t, st.hold.Unlock())
}

// A caller whose entry stands in the line gets the lock by its key alone, and releases it so.
func topoGotIn(t *testing.T, c *redistest.Cluster) {
	st := topoWaits(t, c, 3*time.Minute, func(s *rlock.Session, name string) topoLock { return rlock.New(s, name).Lock })
	must(t, st.hold.Unlock())
	<-st.left
	if st.got == nil {
		t.Fatal("the caller did not get the lock")
	}
	must(t, st.got.Unlock())
	if n := topoEntries(t, c, st.waiting); n != 1 {
		t.Fatalf("%d entries are in the line of a slot that is half moved", n)
	}
	st.moving.end(t)
	must(t, st.waiting.Close())
	if n := topoEntries(t, c, st.waiting); n != 0 {
		t.Errorf("%d entries have stayed in the line", n)
	}
}

// A caller whose entry stands in the line has its permit by the keys alone. The next release gave the entry that permit
// once more: one was counted down for good, and the permit expired with the lease of a grant, before its holder's.
func topoHasPermits(t *testing.T, c *redistest.Cluster) {
	ctx := within(t, time.Minute)
	var m *semaphore.Semaphore
	var other *semaphore.Permits // with it the key of those that are taken stays
	st := topoWaits(t, c, 3*time.Minute, func(s *rlock.Session, name string) topoLock {
		return func(ctx context.Context, _ ...rlock.LockOption) (context.Context, *rlock.Hold, error) {
			if m == nil {
				var err error
				m = semaphore.New(s, name, 2)
				_, other, err = m.Acquire(ctx, 1)
				must(t, err)
			}
			ctx, p, err := semaphore.New(s, name, 2).Acquire(ctx, 1)
			return ctx, (*rlock.Hold)(p), err
		}
	})
	must(t, st.hold.Unlock())
	<-st.left
	if st.got == nil {
		t.Fatal("the caller did not get its permit")
	}
	st.moving.end(t)
	must(t, other.Release())
	free, err := m.Available(ctx)
	must(t, err)
	taken := "{" + st.name + "}:timeout"
	soon, err := st.moving.to.Do(t, "ZCOUNT", taken, "-inf", fmt.Sprint(time.Now().Add(time.Minute).UnixMilli())).AsInt64()
	must(t, err)
	if free != 1 || soon != 0 {
		t.Errorf("one of two permits is taken: %d are free, and %d expire within a minute", free, soon)
	}
	must(t, st.got.Unlock())
}

// A slot that stays half moved makes Close slower by a second at most, and is no reason for an error.
func topoNeverWhole(t *testing.T, c *redistest.Cluster) {
	st := topoWaits(t, c, 3*time.Minute, func(s *rlock.Session, name string) topoLock { return rlock.New(s, name).Lock })
	begun := time.Now()
	must(t, st.waiting.Close())
	if d := time.Since(begun); d > 4*time.Second {
		t.Errorf("Close took %v", d)
	}
	<-st.left
	must(t, st.hold.Unlock())
	st.moving.end(t)
}

// topoEntries returns how many entries of the session stand in lines, on all nodes. Other members that speak of it are its id
// and one letter.
func topoEntries(t testing.TB, c *redistest.Cluster, s *rlock.Session) (n int) {
	t.Helper()
	for _, addr := range c.Addrs {
		for _, key := range c.Node(addr).Keys(t) {
			members, _ := c.Node(addr).Do(t, "ZRANGE", key, "0", "-1").AsStrSlice() // none of a key of another type
			for _, m := range members {
				if strings.Contains(m, s.ID()) && len(m) > len(s.ID())+1 && strings.Contains("gzfhPQ", m[:1]) {
					n++
				}
			}
		}
	}
	return n
}
