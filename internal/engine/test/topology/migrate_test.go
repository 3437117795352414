package topology_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/semaphore"
)

func TestTopologyMigration(t *testing.T) {
	t.Parallel()
	c := redistest.NewCluster(t)
	t.Run("WaiterFollowsByMessage", func(t *testing.T) { topoWaiterFollows(t, c) })
	t.Run("WakeUpPublishedMidway", func(t *testing.T) { topoMidwayWakeUp(t, c) })
	t.Run("MidwayHoldersAreRenewed", func(t *testing.T) { topoMidwayRenewed(t, c) })
	t.Run("MidwayPermitsAreRenewed", func(t *testing.T) { topoMidwayPermits(t, c) })
	t.Run("MidwayManyKeys", func(t *testing.T) { topoMidwayManyKeys(t, c) })
	t.Run("MidwayForceUnlock", func(t *testing.T) { topoMidwayForceUnlock(t, c) })
	t.Run("MidwayUnlockByID", func(t *testing.T) { topoMidwayUnlockByID(t, c) })
	t.Run("UnlockAsyncFollows", func(t *testing.T) { topoUnlockAsync(t, c) })
	// Last, because it takes long enough for the goroutines of the others' clients.
	t.Run("HolderIsRenewed", func(t *testing.T) { topoHolderRenewed(t, c) })
}

// R16: nothing but a message, or the news that one may have been missed, wakes the
// waiter in time. The slot moves and moves back, so that what the session learned of
// it is wrong twice.
func topoWaiterFollows(t *testing.T, c *redistest.Cluster) {
	ctx := within(t, time.Minute)
	a, b := locktest.DialOption(t, c.Option(), locktest.Slow()), locktest.DialOption(t, c.Option(), locktest.Slow())
	from := c.Addrs[0]
	name := locktest.NameOn(t, c, from)
	slot, channel := redistest.Slot(name), locktest.Channel(name)
	section, h, err := rlock.New(a, name).Lock(ctx)
	must(t, err)
	w := locktest.BeginLock(ctx, rlock.New(b, name))
	topoListening(t, c, channel, from)
	for _, to := range []string{c.Addrs[1], from, c.Addrs[2]} {
		c.MigrateSlot(t, slot, to)
		topoListening(t, c, channel, to)
		w.Waits(t)
		if got := topoField(t, c.Node(to), name, h.Owner()); got != "1" {
			t.Errorf("the holder's count on the new node is %q", got)
		}
	}
	must(t, section.Err())
	must(t, h.Unlock())
	t.Logf("woken after %v", w.Granted(t, locktest.Patience))
	must(t, w.Hold.Unlock())

	// A subscription that begins after the migration is where the slot is now.
	topoSilent(t, c, channel)
	_, h, err = rlock.New(b, name).Lock(ctx)
	must(t, err)
	w = locktest.BeginLock(ctx, rlock.New(a, name))
	topoListening(t, c, channel, c.Addrs[2])
	must(t, h.Unlock())
	w.Granted(t, locktest.Patience)
	must(t, w.Hold.Unlock())
	topoSilent(t, c, channel)
}

func topoHolderRenewed(t *testing.T, c *redistest.Cluster) {
	const lease = 1500 * time.Millisecond
	ctx := within(t, time.Minute)
	a, b := locktest.DialOption(t, c.Option(), rlock.Config{Lease: lease}), locktest.DialOption(t, c.Option(), rlock.Config{Lease: lease})
	name := locktest.NameOn(t, c, c.Addrs[0])
	section, h, err := rlock.New(a, name).Lock(ctx)
	must(t, err)
	w := locktest.BeginLock(ctx, rlock.New(b, name))
	topoListening(t, c, locktest.Channel(name), c.Addrs[0])
	c.MigrateSlot(t, redistest.Slot(name), c.Addrs[1])
	topoStays(t, 2*lease, section)
	w.Waits(t)
	must(t, h.Unlock())
	w.Granted(t, locktest.Patience)
	topoStays(t, 2*lease, w.Ctx)
	must(t, w.Hold.Unlock())
}

// topoMigration is the migration of a slot that has begun and not ended: keys that
// are on neither node are made on the target.
type topoMigration struct {
	c        *redistest.Cluster
	slot     string
	from, to *redistest.Server
	toID     string
}

func topoBegin(t *testing.T, c *redistest.Cluster, slot int, to string) *topoMigration {
	t.Helper()
	m := &topoMigration{c: c, slot: strconv.Itoa(slot), from: c.Node(c.SlotOwner(t, slot)), to: c.Node(to)}
	var err error
	m.toID, err = m.to.Do(t, "CLUSTER", "MYID").ToString()
	must(t, err)
	fromID, err := m.from.Do(t, "CLUSTER", "MYID").ToString()
	must(t, err)
	topoDo(t, m.to, "CLUSTER", "SETSLOT", m.slot, "IMPORTING", fromID)
	topoDo(t, m.from, "CLUSTER", "SETSLOT", m.slot, "MIGRATING", m.toID)
	return m
}

// move moves one key.
func (m *topoMigration) move(t *testing.T, key string) {
	t.Helper()
	_, port, _ := strings.Cut(m.to.Addr, ":")
	topoDo(t, m.from, "MIGRATE", "127.0.0.1", port, key, "0", "5000")
}

// end moves what is left and makes the target the owner.
func (m *topoMigration) end(t *testing.T) {
	t.Helper()
	keys, err := m.from.Do(t, "CLUSTER", "GETKEYSINSLOT", m.slot, "1000").AsStrSlice()
	must(t, err)
	for _, key := range keys {
		m.move(t, key)
	}
	topoDo(t, m.to, "CLUSTER", "SETSLOT", m.slot, "NODE", m.toID)
	topoDo(t, m.from, "CLUSTER", "SETSLOT", m.slot, "NODE", m.toID)
	for _, addr := range m.c.Addrs {
		topoDo(t, m.c.Node(addr), "CLUSTER", "SETSLOT", m.slot, "NODE", m.toID)
	}
}

// The release is published on the target while the waiter is subscribed at the
// source: that message nobody can hear. The end of the migration makes up for it, and
// where that does not come the poll floor does.
func topoMidwayWakeUp(t *testing.T, c *redistest.Cluster) {
	ctx := within(t, time.Minute)
	patient := locktest.DialOption(t, c.Option(), locktest.Slow())
	polling := locktest.DialOption(t, c.Option(), rlock.Config{Lease: 3 * time.Minute, PollFloor: 300 * time.Millisecond})
	for _, b := range []*rlock.Session{patient, polling} {
		a := locktest.DialOption(t, c.Option(), locktest.Slow())
		name := locktest.NameOn(t, c, c.Addrs[0])
		_, h, err := rlock.New(a, name).Lock(ctx)
		must(t, err)
		w := locktest.BeginLock(ctx, rlock.New(b, name))
		topoListening(t, c, locktest.Channel(name), c.Addrs[0])
		m := topoBegin(t, c, redistest.Slot(name), c.Addrs[1])
		m.move(t, name)
		must(t, h.Unlock())
		if b == patient {
			m.end(t)
		}
		t.Logf("woken after %v", w.Granted(t, locktest.Patience))
		if b != patient {
			m.end(t)
		}
		must(t, w.Ctx.Err())
		must(t, w.Hold.Unlock())
		if got := topoField(t, c.Node(c.Addrs[1]), name, w.Hold.Owner()); got != "" {
			t.Errorf("after Unlock the count is %q", got)
		}
	}
}

// A slot that holds many keys is on the move for long. The locks in it, some moved, one of
// them without the key of its nested hold, and some not, are renewed all the while, and can be
// released, and taken.
func topoMidwayRenewed(t *testing.T, c *redistest.Cluster) {
	const lease = 1500 * time.Millisecond
	for _, n := range []int{1, 3} {
		t.Run(fmt.Sprint(n, "InTheSlot"), func(t *testing.T) {
			ctx := within(t, time.Minute)
			a, b := locktest.DialOption(t, c.Option(), rlock.Config{Lease: lease}), locktest.DialOption(t, c.Option(), locktest.Slow())
			tag := "{" + locktest.NameOn(t, c, c.Addrs[0]) + "}"
			sections, holds := topoLockMany(t, ctx, a, tag, n)
			if n > 2 {
				_, _, err := rlock.New(a, tag+"2").Lock(sections[2])
				must(t, err)
			}
			m := topoBegin(t, c, redistest.Slot(tag), c.Addrs[1])
			m.move(t, tag+"0")
			if n > 2 {
				m.move(t, tag+"2")
			}
			topoStays(t, 2*lease, sections...)

			// Midway others are kept out, and a free lock is to be had.
			for i := range n {
				_, _, err := rlock.New(b, fmt.Sprint(tag, i)).TryLock(ctx)
				topoIs(t, "TryLock of a held lock", err, rlock.ErrNotAcquired)
			}
			_, free, err := rlock.New(b, tag+"free").TryLock(ctx)
			must(t, err)
			must(t, free.Unlock())
			must(t, holds[0].Unlock())
			m.end(t)
			for _, h := range holds[1:min(n, 2)] { // the nested hold is not counted any more
				must(t, h.Unlock())
			}
		})
	}
}

// Permits are renewed by the key of those that are taken, whichever of the two keys has moved.
func topoMidwayPermits(t *testing.T, c *redistest.Cluster) {
	const lease = 1500 * time.Millisecond
	for _, moved := range []string{"%s", "{%s}:timeout"} {
		ctx := within(t, time.Minute)
		s := locktest.DialOption(t, c.Option(), rlock.Config{Lease: lease})
		name := locktest.NameOn(t, c, c.Addrs[0])
		m := semaphore.New(s, name, 3)
		section, p, err := m.Acquire(ctx, 2)
		must(t, err)
		move := topoBegin(t, c, redistest.Slot(name), c.Addrs[1])
		move.move(t, fmt.Sprintf(moved, name))
		topoStays(t, 2*lease, section)
		move.end(t)
		if free, err := m.Available(ctx); err != nil || free != 1 {
			t.Errorf("%d of three permits are free, %v; two are held", free, err)
		}
		must(t, p.Release())
	}
}

// A script with several keys is refused (TRYAGAIN) while only some of them are there.
// That passes; Lock waits for it, and TryLock says so.
func topoMidwayManyKeys(t *testing.T, c *redistest.Cluster) {
	ctx := within(t, time.Minute)
	a := locktest.DialOption(t, c.Option(), locktest.Slow())
	name := locktest.NameOn(t, c, c.Addrs[0])
	fenced := rlock.New(a, name, rlock.Fenced())
	_, h, err := fenced.Lock(ctx)
	must(t, err)
	must(t, h.Unlock()) // the token stays
	m := topoBegin(t, c, redistest.Slot(name), c.Addrs[1])
	_, _, err = fenced.TryLock(ctx)
	if err == nil || !strings.Contains(err.Error(), "TRYAGAIN") {
		t.Errorf("TryLock: %v, want Redis's TRYAGAIN", err)
	}
	plain := locktest.BeginLock(ctx, fenced)
	shared := locktest.BeginLock(rlock.WithOwner(ctx, name), rlock.New(a, "{"+name+"}2"))
	m.end(t)
	plain.Granted(t, locktest.Patience)
	shared.Granted(t, locktest.Patience)
	if plain.Hold.Token() <= h.Token() {
		t.Errorf("token %d after %d", plain.Hold.Token(), h.Token())
	}
	must(t, plain.Hold.Unlock())
	must(t, shared.Hold.Unlock())
}

// A ForceUnlock does not wait until the slot has moved: it goes without its mark, which is on neither node.
func topoMidwayForceUnlock(t *testing.T, c *redistest.Cluster) {
	ctx := within(t, time.Minute)
	a, operator := locktest.DialOption(t, c.Option(), locktest.Slow()), locktest.DialOption(t, c.Option(), locktest.Slow())
	for _, moved := range []bool{false, true} {
		name := locktest.NameOn(t, c, c.Addrs[0])
		_, h, err := rlock.New(a, name).Lock(ctx)
		must(t, err)
		m := topoBegin(t, c, redistest.Slot(name), c.Addrs[1])
		if moved {
			m.move(t, name)
		}
		found, err := rlock.New(operator, name).ForceUnlock(ctx)
		if err != nil || !found {
			t.Errorf("the lock has moved: %v; ForceUnlock: %v, %v", moved, found, err)
		}
		m.end(t)
		topoIs(t, "Unlock", h.Unlock(), rlock.ErrLost)
	}
}

// The last hold of a named owner takes the last of its ids out. The key of the ids is gone then, and in
// the middle of a script a node whose slot moves refuses to be asked for it: the lock stood without
// its holds until its lease was over, and Unlock said so in words of its own.
func topoMidwayUnlockByID(t *testing.T, c *redistest.Cluster) {
	ctx := within(t, time.Minute)
	a, b := locktest.DialOption(t, c.Option(), locktest.Slow()), locktest.DialOption(t, c.Option(), locktest.Slow())
	name := locktest.NameOn(t, c, c.Addrs[0])
	named := rlock.WithOwner(ctx, "owner")
	section, h, err := rlock.New(a, name).Lock(named)
	must(t, err)
	_, nested, err := rlock.New(a, name).Lock(section)
	must(t, err)
	m := topoBegin(t, c, redistest.Slot(name), c.Addrs[1])
	must(t, nested.Unlock())
	must(t, h.Unlock())
	if keys := m.from.Keys(t); slices.Contains(keys, name) {
		t.Errorf("after Unlock Redis has %q", keys)
	}
	m.end(t)
	_, h, err = rlock.New(b, name).TryLock(ctx)
	must(t, err)
	must(t, h.Unlock())
}
