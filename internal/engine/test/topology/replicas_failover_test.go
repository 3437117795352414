package topology_test

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// replRoute has clients connect to the server that it names.
type replRoute struct {
	atomic.Pointer[redistest.Server]
}

func (r *replRoute) option() rueidis.ClientOption {
	opt := r.Load().Option()
	opt.DialCtxFn = func(ctx context.Context, _ string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
		return d.DialContext(ctx, "tcp", r.Load().Addr)
	}
	return opt
}

// failover kills the master and has clients connect to the replica.
func (r *replRoute) failover(t *testing.T, replica *redistest.Server) {
	t.Helper()
	r.Load().Kill()
	replica.Promote(t)
	r.Store(replica)
}

// A failover to a replica that has not got the lock yet lets a second owner in, and the first one
// finds out afterwards: what Config.Replicas is for.
func TestFailoverLosesWhatNoReplicaHas(t *testing.T) {
	t.Parallel()
	master, replicas := redistest.NewReplicas(t, 1)
	var route replRoute
	route.Store(master)
	cfg := rlock.Config{Lease: topoLease}
	ses := locktest.DialOption(t, route.option(), cfg)
	name := redistest.Name(t)
	ctx := within(t, time.Minute)
	replicas[0].Promote(t) // it is cut off
	section, _, err := rlock.New(ses, name).Lock(ctx)
	must(t, err)
	route.failover(t, replicas[0])
	other := locktest.DialOption(t, route.option(), cfg)
	_, h, err := rlock.New(other, name).TryLock(ctx)
	must(t, err)
	topoEnds(t, section, 2*topoLease, rlock.ErrLost)
	must(t, h.Unlock())
}

// A failover to a replica that has acknowledged the lock leaves it with its owner: no other comes
// in, and the section goes on for longer than the lease that the replica had been told of.
func TestFailoverKeepsWhatTheReplicaHasAcknowledged(t *testing.T) {
	t.Parallel()
	master, replicas := redistest.NewReplicas(t, 1)
	var route replRoute
	route.Store(master)
	cfg := rlock.Config{Lease: topoLease, Replicas: 1, ReplicaTimeout: replTimeout}
	ses := locktest.DialOption(t, route.option(), cfg)
	name := redistest.Name(t)
	ctx := within(t, time.Minute)
	replicas[0].Promote(t) // it is cut off
	w := locktest.BeginLock(ctx, rlock.New(ses, name))
	select {
	case <-w.Done:
		t.Fatalf("Lock returned before the replica has the lock: %v", w.Err)
	case <-time.After(2 * replTimeout):
	}
	replicas[0].Follow(t, master)
	w.Granted(t, locktest.Patience)
	route.failover(t, replicas[0])
	other := locktest.DialOption(t, route.option(), rlock.Config{})
	_, _, err := rlock.New(other, name).TryLock(ctx)
	topoIs(t, "another owner after the failover", err, rlock.ErrNotAcquired)
	topoStays(t, topoLease+time.Second, w.Ctx)
	must(t, w.Hold.Unlock())
}

// The acknowledgement of a server that has not got the lock does not count: the grant was another
// one's, that a failover has replaced meanwhile.
func TestReplicasOfAnotherServerDoNotCount(t *testing.T) {
	t.Parallel()
	master, _ := redistest.NewReplicas(t, 1)
	promoted, _ := redistest.NewReplicas(t, 1)
	var route replRoute
	route.Store(master)
	ses := locktest.DialOption(t, route.option(), rlock.Config{Replicas: 1, ReplicaTimeout: replTimeout})
	list, err := master.Do(t, "CLIENT", "LIST").ToString()
	must(t, err)
	route.Store(promoted)
	for line := range strings.Lines(list) {
		if strings.Contains(line, " cmd=wait ") { // the connection that has looked for replicas
			_, rest, _ := strings.Cut(line, "id=") // the first line has "txt:" in front, whichever client it is of
			id, _, _ := strings.Cut(rest, " ")
			topoDo(t, master, "CLIENT", "KILL", "ID", id)
		}
	}
	name := redistest.Name(t)
	for what, lock := range replLocks(ses, name) {
		_, err := lock(within(t, time.Minute), rlock.Wait(0))
		if !errors.Is(err, rlock.ErrUnavailable) || !replTells(err, "gone by then") {
			t.Errorf("%s: %v", what, err)
		}
	}
	replFree(t, master, name)
}

// After a failover by Sentinel the replicas of the new master count, as soon as it has some.
func TestReplicasAfterASentinelFailover(t *testing.T) {
	t.Parallel()
	s := redistest.NewSentinel(t)
	ses := locktest.DialOption(t, s.Option(), rlock.Config{Replicas: 1, ReplicaTimeout: replTimeout})
	ctx := within(t, 2*time.Minute)
	m := rlock.New(ses, redistest.Name(t))
	_, h, err := m.Lock(ctx)
	must(t, err)
	must(t, h.Unlock())
	old := s.KillMaster()
	s.WaitFailover(t, old)
	redistest.Eventually(t, locktest.Patience, "the session has found the new master, which has no replica", func() bool {
		_, h, err := m.TryLock(ctx)
		if err == nil {
			t.Fatalf("acquired without a replica: %v", h.Unlock())
		}
		return replTells(err, "0 of 1 replicas")
	})
	w := locktest.BeginLock(ctx, m)
	s.Node(old).Restart(t)
	w.Granted(t, time.Minute)
	must(t, w.Hold.Unlock())
}

// In a Cluster the replicas of the node count that has the lock's slot.
func TestReplicasInACluster(t *testing.T) {
	t.Parallel()
	c := redistest.NewCluster(t)
	replica := c.AddReplica(t, c.Addrs[0])
	ses := locktest.DialOption(t, c.Option(), rlock.Config{Replicas: 1, ReplicaTimeout: replTimeout})
	ctx := within(t, time.Minute)
	name := locktest.NameOn(t, c, c.Addrs[0])
	_, h, err := rlock.New(ses, name).Lock(ctx)
	must(t, err)
	must(t, h.Unlock())
	replica.Pause()
	for _, addr := range c.Addrs[:2] {
		_, _, err = rlock.New(ses, locktest.NameOn(t, c, addr)).TryLock(ctx)
		topoIs(t, "without a replica", err, rlock.ErrUnavailable)
		if !replTells(err, "0 of 1 replicas") {
			t.Error(err)
		}
	}
	replica.Resume()
	_, h, err = rlock.New(ses, name).Lock(ctx)
	must(t, err)
	must(t, h.Unlock())
	redistest.Eventually(t, locktest.Patience, "nothing is left", func() bool { return len(topoClusterKeys(t, c)) == 0 })

	// A slot that moves takes the lock along, and the next node's replicas count.
	c.MigrateSlot(t, redistest.Slot(name), c.Addrs[1])
	_, _, err = rlock.New(ses, name).TryLock(ctx)
	topoIs(t, "on a node without replicas", err, rlock.ErrUnavailable)
	c.MigrateSlot(t, redistest.Slot(name), c.Addrs[0])
	_, h, err = rlock.New(ses, name).Lock(ctx)
	must(t, err)
	must(t, h.Unlock())
}
