package rlock_test

import (
	"context"
	"testing"
	"time"

	"relock/internal/test/redistest"
	"relock/rlock"
)

// A node of a cluster dies, without a replica to take over, and comes back empty.
func TestTopologyNodeIsKilled(t *testing.T) {
	t.Parallel()
	const lease = 2 * time.Second
	c := redistest.NewCluster(t)
	ctx := within(t, 2*time.Minute)
	a := topoDial(t, c.Option(), rlock.Config{Lease: lease})
	b := topoDial(t, c.Option(), topoSlow())
	polling := topoDial(t, c.Option(), rlock.Config{}) // nobody tells it that the node is back

	// The node that dies carries the holder's own channel too.
	dead := topoCarrier(t, c, a)
	alive := topoOther(c, dead)
	onDead, onAlive := topoNameOn(t, c, dead), topoNameOn(t, c, alive)
	lostSection, lostHold, err := rlock.New(a, onDead).Lock(ctx)
	must(t, err)
	section, hold, err := rlock.New(a, onAlive).Lock(ctx)
	must(t, err)
	waitDead, waitAlive := topoLock(ctx, rlock.New(polling, onDead)), topoLock(ctx, rlock.New(b, onAlive))
	topoListening(t, c, topoChannel(onDead), dead)
	topoListening(t, c, topoChannel(onAlive), alive)

	c.KillNode(dead)
	// No later than a lease after the last renewal was sent, and that was before.
	// The rest is for a machine that stalls.
	took := topoEnds(t, lostSection, lease+2*time.Second, rlock.ErrLost)
	t.Logf("the holder on the dead node knows after %v", took)
	topoIs(t, "Unlock on the dead node", lostHold.Unlock(), rlock.ErrLost)

	begin := time.Now()
	_, _, err = rlock.New(b, topoNameOn(t, c, dead)).Lock(ctx, rlock.Wait(500*time.Millisecond))
	topoIs(t, "Lock on the dead node", err, rlock.ErrNotAcquired)
	if took := time.Since(begin); took > topoPatience {
		t.Errorf("Lock on the dead node gave up after %v", took)
	}
	t.Logf("Lock on the dead node: %v", err)

	// The others go on, by message, as if nothing had happened.
	topoStays(t, 2*lease, section)
	must(t, hold.Unlock())
	t.Logf("woken after %v", waitAlive.granted(t, topoPatience))
	must(t, waitAlive.hold.Unlock())

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
	waitDead.waits(t)
	c.Node(dead).Restart(t)
	t.Logf("the waiter on the dead node has the lock %v after its return", waitDead.granted(t, topoPatience))
	must(t, waitDead.hold.Unlock())
	topoPasses(t, c, dead, onDead, a, b)
}

// topoPasses: a lock on this node goes from one session to another by message.
func topoPasses(t *testing.T, c *redistest.Cluster, node, name string, from, to *rlock.Session) {
	t.Helper()
	ctx := within(t, time.Minute)
	_, h, err := rlock.New(from, name).Lock(ctx)
	must(t, err)
	w := topoLock(ctx, rlock.New(to, name))
	topoListening(t, c, topoChannel(name), node)
	must(t, h.Unlock())
	w.granted(t, topoPatience)
	must(t, w.hold.Unlock())
}

// topoNewSessions: with a node dead new sessions open, and lock on the others.
func topoNewSessions(t *testing.T, c *redistest.Cluster, forcing *rlock.Session, alive string) {
	t.Helper()
	for range 8 { // whatever node the client happens to ask first
		s, err := rlock.Dial(within(t, topoPatience), c.Option(), topoSlow())
		if err != nil {
			t.Errorf("Dial with one of three nodes dead: %v", err)
			continue
		}
		t.Cleanup(func() { must(t, s.Close()) })
		topoForced(t, within(t, topoPatience), forcing, s, alive)
		must(t, s.Close())
	}
}

// topoForced has a session take the lock of another one away, which is told of it at once.
func topoForced(t *testing.T, ctx context.Context, forcing, holding *rlock.Session, name string) {
	t.Helper()
	section, h, err := rlock.New(holding, name).Lock(ctx)
	must(t, err)
	begin := time.Now()
	ok, err := rlock.New(forcing, name).ForceUnlock(within(t, topoPatience))
	if !ok || err != nil {
		t.Errorf("ForceUnlock: %v, %v", ok, err)
	}
	if took := time.Since(begin); took > topoPatience/2 {
		t.Errorf("ForceUnlock took %v", took)
	}
	topoEnds(t, section, topoPatience, rlock.ErrLost)
	topoIs(t, "Unlock", h.Unlock(), rlock.ErrLost)
}

// A node that is stopped answers nothing, and its connections stay open. What is held
// on the other nodes is renewed, and can be released and taken.
func TestTopologyNodeIsStopped(t *testing.T) {
	t.Parallel()
	const lease = 2 * time.Second
	c := redistest.NewCluster(t)
	ctx := within(t, 2*time.Minute)
	a := topoDial(t, c.Option(), rlock.Config{Lease: lease})
	b := topoDial(t, c.Option(), topoSlow())
	stopped := c.Addrs[2]
	alive := topoOther(c, stopped)
	onStopped, onAlive := topoNameOn(t, c, stopped), topoNameOn(t, c, alive)
	lostSection, lostHold, err := rlock.New(a, onStopped).Lock(ctx)
	must(t, err)
	section, hold, err := rlock.New(a, onAlive).Lock(ctx)
	must(t, err)
	w := topoLock(ctx, rlock.New(b, onAlive))
	topoListening(t, c, topoChannel(onAlive), alive)

	c.Node(stopped).Pause()
	defer c.Node(stopped).Resume()
	t.Logf("the holder on the stopped node knows after %v", topoEnds(t, lostSection, lease+2*time.Second, rlock.ErrLost))
	topoIs(t, "Unlock on the stopped node", lostHold.Unlock(), rlock.ErrLost)
	topoStays(t, 2*lease, section)
	must(t, hold.Unlock())
	t.Logf("woken after %v", w.granted(t, topoPatience))
	must(t, w.hold.Unlock())
	_, h, err := rlock.New(a, onAlive).Lock(within(t, topoPatience))
	must(t, err)
	must(t, h.Unlock())

	c.Node(stopped).Resume()
	_, h, err = rlock.New(b, onStopped).Lock(within(t, topoPatience))
	must(t, err)
	must(t, h.Unlock())
}
