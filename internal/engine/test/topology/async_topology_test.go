package topology_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// asyncCycles takes each kind of a session again and again, by Lock and by TryLock in turns, until ctx ends. No TryLock
// may be refused: what it meets is what its own session has left without waiting for the answer. It counts how often it
// was inside.
func asyncCycles(ctx, all context.Context, t *testing.T, kinds []locktest.AsyncKind, inside *atomic.Int64) {
	for i := 0; ctx.Err() == nil; i++ {
		for _, k := range kinds {
			take, what := k.Lock, "lock"
			if i%2 == 1 {
				take, what = k.Try, "try"
			}
			_, end, err := take(all)
			switch {
			case errors.Is(err, rlock.ErrNotAcquired):
				t.Errorf("%s, %s: refused by the session's own release: %v", k.Name, what, err)
				return
			case err == nil:
				inside.Add(1)
				end()
			case what == "lock" || !strings.Contains(err.Error(), "TRYAGAIN") && !errors.Is(err, rlock.ErrUnavailable):
				t.Errorf("%s, %s: %v", k.Name, what, err)
				return
			}
		}
	}
}

// The release and the attempt behind it follow a slot that moves, in their order, and those of two sessions exclude each
// other meanwhile. Nothing is left on any node.
func topoUnlockAsync(t *testing.T, c *redistest.Cluster) {
	all := within(t, 2*time.Minute)
	ses, one, other := locktest.DialOption(t, c.Option(), locktest.Slow()), locktest.DialOption(t, c.Option(), locktest.Slow()), locktest.DialOption(t, c.Option(), locktest.Slow())
	name := locktest.NameOn(t, c, c.Addrs[0])
	tag := "{" + name + "}" // all keys are in the slot
	ctx, stop := context.WithCancel(all)
	var workers sync.WaitGroup
	var alone, contended atomic.Int64
	workers.Go(func() { asyncCycles(ctx, all, t, locktest.AsyncKinds(ses, tag+"alone"), &alone) })
	var inside atomic.Int32
	for _, of := range []*rlock.Session{one, other} {
		m := rlock.New(of, tag+"both")
		workers.Go(func() {
			for ctx.Err() == nil {
				_, h, err := m.Lock(all)
				if err != nil {
					t.Errorf("Lock: %v", err)
					return
				}
				if n := inside.Add(1); n != 1 {
					t.Errorf("%d are inside", n)
				}
				contended.Add(1)
				inside.Add(-1)
				h.UnlockAsync()
			}
		})
	}
	for _, to := range []string{c.Addrs[1], c.Addrs[2], c.Addrs[0]} {
		before := [2]int64{alone.Load(), contended.Load()}
		c.MigrateSlot(t, redistest.Slot(name), to)
		redistest.Eventually(t, locktest.Patience, "sections behind the move", func() bool {
			return alone.Load() > before[0]+20 && contended.Load() > before[1]+20 || t.Failed()
		})
	}
	stop()
	workers.Wait()
	for _, s := range []*rlock.Session{ses, one, other} {
		locktest.Settled(t, s)
	}
	for _, key := range topoClusterKeys(t, c) {
		if isLock(key, tag) {
			t.Errorf("key %q is left", key)
		}
	}
}

// isLock reports whether a key is a lock of the test, and not what stays beside one: tokens, limits, marks.
func isLock(key, tag string) bool {
	name, ok := strings.CutPrefix(key, tag)
	return ok && slices.Contains([]string{"both", "aloneplain", "alonefenced", "alonefair", "alonerw"}, name)
}

// The master dies when a session has left its lock without waiting. The release goes on until the new master has it, and
// the session's next Lock comes behind it.
func TestUnlockAsyncInAFailover(t *testing.T) {
	t.Parallel() // it is idle most of the time
	s := redistest.NewSentinel(t)
	ctx := within(t, 2*time.Minute)
	cfg := topoFailover()
	cfg.Lease = 3 * time.Minute // the lock comes free by its release, not by the end of its lease
	ses, other := locktest.DialOption(t, s.Option(), cfg), locktest.DialOption(t, s.Option(), cfg)
	name := redistest.Name(t)
	m := rlock.New(ses, name)
	section, h, err := m.Lock(ctx)
	must(t, err)
	_, beside, err := rlock.New(ses, name+"beside").Lock(ctx)
	must(t, err)
	redistest.Eventually(t, locktest.Patience, "the replica has both locks", func() bool {
		r := topoReplica(t, s)
		return topoField(t, r, name, h.Owner()) == "1" && topoField(t, r, name+"beside", beside.Owner()) == "1"
	})
	old := s.KillMaster()
	began := time.Now()
	h.UnlockAsync()
	beside.UnlockAsync()
	if took := time.Since(began); took > cfg.ReleaseTimeout/2 { // as long as it would wait for an answer
		t.Errorf("UnlockAsync took %v without a master", took)
	}
	locktest.Ends(t, section, time.Second, rlock.ErrReleased)
	next := locktest.BeginLock(ctx, m)
	master := s.Node(s.WaitFailover(t, old))
	next.Granted(t, time.Minute)
	if topoField(t, master, name, h.Owner()) != "" {
		t.Error("both holds stand on the new master")
	}
	redistest.Eventually(t, time.Minute, "the other lock to be free", func() bool { return locktest.Free(t, master, name+"beside") })
	w := locktest.BeginLock(ctx, rlock.New(other, name))
	next.Hold.UnlockAsync()
	w.Granted(t, locktest.Patience)
	w.Hold.UnlockAsync()
	locktest.Settled(t, ses)
	locktest.Settled(t, other)
	if !locktest.Free(t, master, name) {
		t.Error("the lock is left")
	}
}

// With Config.Replicas the next Lock of a session that has not waited for its release still returns with what the
// replica has, of each kind.
func TestUnlockAsyncWithReplicas(t *testing.T) {
	t.Parallel()
	master, replicas := redistest.NewReplicas(t, 1)
	ses := locktest.DialOption(t, master.Option(), rlock.Config{Replicas: 1, ReplicaTimeout: 10 * time.Second})
	ctx, name := within(t, time.Minute), redistest.Name(t)
	for _, k := range locktest.AsyncKinds(ses, name) {
		for i := range 20 {
			take := k.Lock
			if i%2 == 1 {
				take = k.Try
			}
			section, end, err := take(ctx)
			if err != nil {
				t.Fatalf("%s, round %d: %v", k.Name, i, err)
			}
			if k.Name == "plain" {
				owners, err := replicas[0].Do(t, "HGETALL", name+"plain").AsStrMap()
				if want := strings.TrimPrefix(fmt.Sprint(section), "relock section of "); err != nil || owners[want] != "1" || len(owners) != 1 {
					t.Errorf("round %d: the replica has %v, want %s alone: %v", i, owners, want, err)
				}
			}
			end()
		}
	}
	locktest.Settled(t, ses)
	replFree(t, master, name+"plain")
}

// Sessions that poll take turns by UnlockAsync as by Unlock, and subscribe to nothing.
func TestUnlockAsyncOfSessionsThatPoll(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, time.Minute)
		cfg := rlock.Config{Polling: locktest.Every(time.Millisecond), QueueLease: 200 * time.Millisecond}
		ses, other := dial(t, s, cfg), dial(t, s, cfg)
		kinds := [][]locktest.AsyncKind{locktest.AsyncKinds(ses, ""), locktest.AsyncKinds(other, "")}
		var inside [5]atomic.Int32
		var workers sync.WaitGroup
		for w := range 4 {
			workers.Go(func() {
				for range redistest.Rounds(10) {
					for i, k := range kinds[w%2] {
						_, end, err := k.Lock(ctx)
						if err != nil {
							t.Errorf("%s: %v", k.Name, err)
							return
						}
						if n := inside[i].Add(1); n != 1 {
							t.Errorf("%s: %d are inside", k.Name, n)
						}
						inside[i].Add(-1)
						end()
					}
				}
			})
		}
		workers.Wait()
		for i, k := range kinds[0] { // free, and a TryLock is not refused by what its own session has left
			_, end, err := k.Lock(ctx)
			must(t, err)
			end()
			if _, end, err = k.Try(ctx); err != nil {
				t.Errorf("kind %d: %v", i, err)
				continue
			}
			end()
		}
		locktest.Settled(t, ses)
		locktest.Settled(t, other)
		if got := s.Channels(t); len(got) != 0 {
			t.Errorf("sessions that poll have subscribed to %q", got)
		}
	})
}
