package topology_test

import (
	"context"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// A node of a cluster dies, without a replica to take over, and comes back empty.
func TestTopologyNodeIsKilled(t *testing.T) {
	t.Parallel()
	const lease = 2 * time.Second
	c := redistest.NewCluster(t)
	ctx := within(t, 2*time.Minute)
	a := locktest.DialOption(t, c.Option(), rlock.Config{Lease: lease})
	b := locktest.DialOption(t, c.Option(), locktest.Slow())
	polling := locktest.DialOption(t, c.Option(), rlock.Config{}) // nobody tells it that the node is back

	// The node that dies carries the holder's own channel too.
	dead := topoCarrier(t, c, a)
	alive := topoOther(c, dead)
	onDead, onAlive := locktest.NameOn(t, c, dead), locktest.NameOn(t, c, alive)
	lostSection, lostHold, err := rlock.New(a, onDead).Lock(ctx)
	must(t, err)
	section, hold, err := rlock.New(a, onAlive).Lock(ctx)
	must(t, err)
	waitDead, waitAlive := locktest.BeginLock(ctx, rlock.New(polling, onDead)), locktest.BeginLock(ctx, rlock.New(b, onAlive))
	topoListening(t, c, locktest.Channel(onDead), dead)
	topoListening(t, c, locktest.Channel(onAlive), alive)

	c.KillNode(dead)
	// No later than a lease after the last renewal was sent, and that was before.
	// The rest is for a machine that stalls.
	took := topoEnds(t, lostSection, lease+2*time.Second, rlock.ErrLost)
	t.Logf("the holder on the dead node knows after %v", took)
	topoIs(t, "Unlock on the dead node", lostHold.Unlock(), rlock.ErrLost)

	topoGivesUp(t, ctx, rlock.New(b, locktest.NameOn(t, c, dead)))

	// The others go on, by message, as if nothing had happened.
	topoStays(t, 2*lease, section)
	must(t, hold.Unlock())
	t.Logf("woken after %v", waitAlive.Granted(t, locktest.Patience))
	must(t, waitAlive.Hold.Unlock())

	t.Run("ForceUnlockStillTells", func(t *testing.T) {
		for _, ctx := range []context.Context{ctx, rlock.WithOwner(ctx, redistest.Name(t))} {
			if topoCarrier(t, c, b) == dead {
				t.Fatal("the dead node carries the session's channel")
			}
			topoForced(t, ctx, a, b, onAlive)
		}
	})
	t.Run("NewSessions", func(t *testing.T) {
		topoNewSessions(t, c, a, onAlive)
	})

	// Its keys are gone with it; its waiter is served, though it was told nothing.
	waitDead.Waits(t)
	c.Node(dead).Restart(t)
	t.Logf("the waiter on the dead node has the lock %v after its return", waitDead.Granted(t, locktest.Patience))
	must(t, waitDead.Hold.Unlock())
	topoPasses(t, c, dead, onDead, a, b)
}

// topoGivesUp: on a dead node a Lock ends when it is told to, and says that it has not acquired the lock.
func topoGivesUp(t *testing.T, ctx context.Context, m *rlock.Mutex) {
	t.Helper()
	begin := time.Now()
	_, _, err := m.Lock(ctx, rlock.Wait(500*time.Millisecond))
	topoIs(t, "Lock on the dead node", err, rlock.ErrNotAcquired)
	if took := time.Since(begin); took > locktest.Patience {
		t.Errorf("Lock on the dead node gave up after %v", took)
	}
	t.Logf("Lock on the dead node: %v", err)
}

// topoPasses: a lock on this node goes from one session to another by message.
func topoPasses(t *testing.T, c *redistest.Cluster, node, name string, from, to *rlock.Session) {
	t.Helper()
	ctx := within(t, time.Minute)
	_, h, err := rlock.New(from, name).Lock(ctx)
	must(t, err)
	w := locktest.BeginLock(ctx, rlock.New(to, name))
	topoListening(t, c, locktest.Channel(name), node)
	must(t, h.Unlock())
	w.Granted(t, locktest.Patience)
	must(t, w.Hold.Unlock())
}

// topoNewSessions: with a node dead new sessions open, and lock on the others.
func topoNewSessions(t *testing.T, c *redistest.Cluster, forcing *rlock.Session, alive string) {
	t.Helper()
	for range 8 { // whatever node the client happens to ask first
		s, err := rlock.Dial(within(t, locktest.Patience), c.Option(), locktest.Slow())
		if err != nil {
			t.Errorf("Dial with one of three nodes dead: %v", err)
			continue
		}
		t.Cleanup(func() { must(t, s.Close()) })
		topoForced(t, within(t, locktest.Patience), forcing, s, alive)
		must(t, s.Close())
	}
}

// topoForced has a session take the lock of another one away, which is told of it at once.
func topoForced(t *testing.T, ctx context.Context, forcing, holding *rlock.Session, name string) {
	t.Helper()
	section, h, err := rlock.New(holding, name).Lock(ctx)
	must(t, err)
	begin := time.Now()
	ok, err := rlock.New(forcing, name).ForceUnlock(within(t, locktest.Patience))
	if !ok || err != nil {
		t.Errorf("ForceUnlock: %v, %v", ok, err)
	}
	if took := time.Since(begin); took > locktest.Patience/2 {
		t.Errorf("ForceUnlock took %v", took)
	}
	topoEnds(t, section, locktest.Patience, rlock.ErrLost)
	topoIs(t, "Unlock", h.Unlock(), rlock.ErrLost)
}

// A node that is stopped answers nothing, and its connections stay open. What is held
// on the other nodes is renewed, and can be released and taken.
func TestTopologyNodeIsStopped(t *testing.T) {
	t.Parallel()
	const lease = 2 * time.Second
	c := redistest.NewCluster(t)
	ctx := within(t, 2*time.Minute)
	a := locktest.DialOption(t, c.Option(), rlock.Config{Lease: lease})
	b := locktest.DialOption(t, c.Option(), locktest.Slow())
	stopped := c.Addrs[2]
	alive := topoOther(c, stopped)
	onStopped, onAlive := locktest.NameOn(t, c, stopped), locktest.NameOn(t, c, alive)
	lostSection, lostHold, err := rlock.New(a, onStopped).Lock(ctx)
	must(t, err)
	section, hold, err := rlock.New(a, onAlive).Lock(ctx)
	must(t, err)
	w := locktest.BeginLock(ctx, rlock.New(b, onAlive))
	topoListening(t, c, locktest.Channel(onAlive), alive)

	c.Node(stopped).Pause()
	defer c.Node(stopped).Resume()
	t.Logf("the holder on the stopped node knows after %v", topoEnds(t, lostSection, lease+2*time.Second, rlock.ErrLost))
	topoIs(t, "Unlock on the stopped node", lostHold.Unlock(), rlock.ErrLost)
	topoStays(t, 2*lease, section)
	must(t, hold.Unlock())
	t.Logf("woken after %v", w.Granted(t, locktest.Patience))
	must(t, w.Hold.Unlock())
	_, h, err := rlock.New(a, onAlive).Lock(within(t, locktest.Patience))
	must(t, err)
	must(t, h.Unlock())

	c.Node(stopped).Resume()
	_, h, err = rlock.New(b, onStopped).Lock(within(t, locktest.Patience))
	must(t, err)
	must(t, h.Unlock())
}
