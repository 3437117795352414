package topology_test

import (
	"context"
	"net"
	"slices"
	"testing"
	"time"

	"relock/internal/test/faulttest"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// topoLease is the lease in the failover tests: renewed every 2 s, so that a hold has
// between 3.7 and 5.7 s of trust when the master dies, and a failover takes 2.
const topoLease = 6 * time.Second

// topoFailover is the Config of those who wait through a failover. Only what the
// session notices makes them look again in time, or an error that they retry after. A failover that
// the sentinels could not agree on at once takes several seconds.
func topoFailover() rlock.Config {
	return rlock.Config{Lease: topoLease, PollFloor: time.Minute, ReleaseTimeout: time.Minute}
}

// topoListeningAt waits until somebody is subscribed to the channel on the server.
func topoListeningAt(t testing.TB, s *redistest.Server, channel string) {
	t.Helper()
	redistest.Eventually(t, locktest.Patience, channel+" is subscribed on "+s.Addr, func() bool {
		list, err := s.Do(t, "PUBSUB", "CHANNELS").AsStrSlice()
		return err == nil && slices.Contains(list, channel)
	})
}

// topoWakes lets b wait for a lock of a, and shows that a message wakes it.
func topoWakes(t *testing.T, a, b *rlock.Session, master *redistest.Server) {
	t.Helper()
	ctx := within(t, time.Minute)
	name := redistest.Name(t)
	_, h, err := rlock.New(a, name).Lock(ctx, rlock.Lease(time.Minute))
	must(t, err)
	w := locktest.BeginLock(ctx, rlock.New(b, name), rlock.Lease(time.Minute))
	topoListeningAt(t, master, locktest.Channel(name))
	w.Waits(t)
	must(t, h.Unlock())
	t.Logf("woken by a message after %v", w.Granted(t, locktest.Patience))
	must(t, w.Hold.Unlock())
	redistest.Eventually(t, locktest.Patience, "the channel is left", func() bool {
		return !slices.Contains(master.Channels(t), locktest.Channel(name))
	})
	if slices.Contains(master.Keys(t), name) {
		t.Error("the key is left")
	}
}

// topoReplica returns the master's replica.
func topoReplica(t testing.TB, s *redistest.Sentinel) *redistest.Server {
	t.Helper()
	// The reply is: "master", offset, [[host, port, offset]].
	role, err := s.Node(s.MasterAddr(t)).Do(t, "ROLE").ToArray()
	must(t, err)
	replicas, err := role[2].ToArray()
	must(t, err)
	if len(replicas) != 1 {
		t.Fatalf("the master has %d replicas", len(replicas))
	}
	at, err := replicas[0].AsStrSlice()
	must(t, err)
	return s.Node(net.JoinHostPort(at[0], at[1]))
}

// The replica has the lock when the master is killed. The holder then either goes on,
// truthfully, or is told; and the waiter gets the lock afterwards.
func TestTopologyFailoverInSync(t *testing.T) {
	t.Parallel() // it is idle most of the time
	s := redistest.NewSentinel(t)
	a, b := locktest.DialOption(t, s.Option(), topoFailover()), locktest.DialOption(t, s.Option(), topoFailover())
	ctx := within(t, 2*time.Minute)
	topoWakes(t, a, b, s.Node(s.MasterAddr(t)))

	name := redistest.Name(t)
	section, h, err := rlock.New(a, name).Lock(ctx)
	must(t, err)
	w := locktest.BeginLock(ctx, rlock.New(b, name))
	topoListeningAt(t, s.Node(s.MasterAddr(t)), locktest.Channel(name))
	redistest.Eventually(t, locktest.Patience, "the replica has the lock", func() bool {
		return topoField(t, topoReplica(t, s), name, h.Owner()) == "1"
	})

	begin := time.Now()
	master := s.Node(s.WaitFailover(t, s.KillMaster()))
	took := time.Since(begin)
	t.Logf("failover after %v, the hold has %v left", took, h.Remaining())
	// For one more lease, in which a hold that lives on is renewed on the new
	// master: either the key stands there for the holder, or the holder knows.
	over := time.After(topoLease)
	redistest.Eventually(t, 2*topoLease, "a lease passes", func() bool {
		if topoField(t, master, name, h.Owner()) != "1" && section.Err() == nil {
			t.Fatal("the session trusts in a lock that the new master does not have")
		}
		select {
		case <-section.Done():
		case <-over:
		default:
			return false
		}
		return true
	})
	if took < topoLease/2 && section.Err() != nil {
		t.Errorf("lost (%v) although the failover took less than half a lease", context.Cause(section))
	}
	if section.Err() == nil {
		w.Waits(t)
		held := topoField(t, master, name, h.Owner())
		if err := h.Unlock(); err == nil && held != "1" {
			t.Errorf("Unlock succeeded, and the new master had %q", held)
		} else {
			must(t, err)
		}
	} else {
		topoIs(t, "cause", context.Cause(section), rlock.ErrLost)
		topoIs(t, "Unlock", h.Unlock(), rlock.ErrLost, rlock.ErrNotHeld)
	}
	t.Logf("the waiter has it after %v", w.Granted(t, locktest.Patience))
	must(t, w.Hold.Unlock())
	topoWakes(t, a, b, master)
	topoWakes(t, b, a, master)
}

// topoKilledBehind kills the master when the replica has a lock, and has lost all of it again, as if it
// had been too far behind; renewals that still reach it bring nothing back. (Cutting it off instead makes
// it a bad candidate in the eyes of the sentinels.)
func topoKilledBehind(t *testing.T, s *redistest.Sentinel, replica *redistest.Server, ses *rlock.Session, name, owner string) (old string, at time.Time) {
	t.Helper()
	redistest.Eventually(t, locktest.Patience, "the replica has the locks", func() bool {
		return topoField(t, replica, name, owner) == "1"
	})
	topoDo(t, replica, "CONFIG", "SET", "replica-read-only", "no")
	topoDo(t, replica, "FLUSHALL")
	old, at = s.KillMaster(), time.Now()
	// The client must have noticed: to what it still sent on the old connection the
	// answer would be lost, and then nobody knows.
	if _, _, err := rlock.New(ses, name+"-probe").TryLock(t.Context()); err == nil {
		t.Fatal("there is a master")
	}
	return old, at
}

// The replica is promoted without the locks. The holders are told, whatever they do; nobody's Unlock succeeds.
func TestTopologyFailoverLosesTheLock(t *testing.T) {
	t.Parallel() // it is idle most of the time
	s := redistest.NewSentinel(t)
	a, b := locktest.DialOption(t, s.Option(), topoFailover()), locktest.DialOption(t, s.Option(), topoFailover())
	ctx := within(t, 2*time.Minute)
	replica := topoReplica(t, s)
	base := redistest.Name(t)
	lock := func(kind string, ctx context.Context, opts ...rlock.LockOption) (context.Context, *rlock.Hold) {
		t.Helper()
		section, h, err := rlock.New(a, base+kind).Lock(ctx, opts...)
		must(t, err)
		return section, h
	}
	renewed, h1 := lock("renewed", ctx)
	fixed, h2 := lock("fixed", ctx, rlock.Lease(5*topoLease))
	named, h3 := lock("named", rlock.WithOwner(ctx, base))
	_, h4 := lock("unlocked", ctx)
	nested, h5 := lock("nested", ctx)
	w := locktest.BeginLock(ctx, rlock.New(b, base+"renewed"))
	topoListeningAt(t, s.Node(s.MasterAddr(t)), locktest.Channel(base+"renewed"))

	old, begin := topoKilledBehind(t, s, replica, a, base+"nested", h5.Owner())
	unlocked := make(chan error, 1)
	go func() { unlocked <- h4.Unlock() }()
	nesting := locktest.BeginLock(nested, rlock.New(a, base+"nested"))

	master := s.Node(s.WaitFailover(t, old))
	if master != replica {
		t.Fatal("the replica was not promoted")
	}
	t.Logf("failover after %v", time.Since(begin))
	for _, section := range []context.Context{renewed, fixed, named, nested} {
		topoEnds(t, section, locktest.Patience, rlock.ErrLost)
	}
	t.Logf("all holders know after %v", time.Since(begin))
	for _, h := range []*rlock.Hold{h1, h2, h3, h5} {
		topoIs(t, "Unlock", h.Unlock(), rlock.ErrLost, rlock.ErrNotHeld)
	}
	topoIs(t, "Unlock during the failover", <-unlocked, rlock.ErrLost, rlock.ErrNotHeld)
	<-nesting.Done
	topoIs(t, "nested Lock during the failover", nesting.Err, rlock.ErrLost)

	t.Logf("the waiter has the lock after %v more", w.Granted(t, locktest.Patience))
	topoStays(t, topoLease/2, w.Ctx) // and is renewed
	if got := topoField(t, master, base+"renewed", w.Hold.Owner()); got != "1" {
		t.Errorf("on the new master the successor's count is %q", got)
	}
	must(t, w.Hold.Unlock())
	topoWakes(t, a, b, master)
	topoWakes(t, b, a, master)
	redistest.Eventually(t, locktest.Patience, "nothing is left on the new master", func() bool {
		return !slices.ContainsFunc(master.Keys(t), func(key string) bool {
			return key == base+"unlocked" || key == base+"nested" || key == base+"renewed"
		})
	})
}

// The old master is not dead but stopped, and its connections stay open. An
// Unlock after another owner has got the lock from the new master does not succeed.
func TestTopologyMasterIsStopped(t *testing.T) {
	t.Parallel() // it is idle most of the time
	s := redistest.NewSentinel(t)
	a, b := locktest.DialOption(t, s.Option(), locktest.Slow()), locktest.DialOption(t, s.Option(), topoFailover())
	ctx := within(t, 2*time.Minute)
	topoDo(t, topoReplica(t, s), "REPLICAOF", "127.0.0.1", "1")
	name := redistest.Name(t)
	section, h, err := rlock.New(a, name).Lock(ctx)
	must(t, err)
	_, h2, err := rlock.New(b, name+"-2").Lock(ctx)
	must(t, err)
	w := locktest.BeginLock(ctx, rlock.New(b, name))
	old := s.MasterAddr(t)
	topoListeningAt(t, s.Node(old), locktest.Channel(name))

	s.Node(old).Pause()
	defer s.Node(old).Resume()
	// What is on its way to the stopped master is answered by nobody; the client
	// gives it up when it turns to the new one. That is no reason to fail.
	unlocked := make(chan error, 1)
	go func() { unlocked <- h2.Unlock() }()
	late := locktest.BeginLock(ctx, rlock.New(b, name+"-late"))

	begin := time.Now()
	master := s.Node(s.WaitFailover(t, old))
	t.Logf("failover after %v", time.Since(begin))
	t.Logf("the waiter has the lock after %v more", w.Granted(t, locktest.Patience))
	if err := <-unlocked; err != nil {
		topoIs(t, "Unlock sent to the stopped master", err, rlock.ErrLost, rlock.ErrNotHeld)
	}
	<-late.Done
	if late.Err != nil {
		t.Errorf("Lock sent to the stopped master: %v", late.Err)
	} else {
		must(t, late.Hold.Unlock())
	}
	topoIs(t, "Unlock", h.Unlock(), rlock.ErrLost, rlock.ErrNotHeld)
	topoEnds(t, section, locktest.Patience, rlock.ErrLost)
	s.Node(old).Resume()
	must(t, w.Ctx.Err())
	if got := topoField(t, master, name, w.Hold.Owner()); got != "1" {
		t.Errorf("on the new master the successor's count is %q", got)
	}
	must(t, w.Hold.Unlock())
	topoWakes(t, a, b, master)
}

// The holder hears nothing of the failover, and sends its release to the old master,
// which is stopped. By then another has the lock from the new one: whatever becomes of
// that release, it was not this Unlock that freed the lock.
func TestTopologyUnlockAfterSuccessor(t *testing.T) {
	t.Parallel() // it is idle most of the time
	s := redistest.NewSentinel(t)
	news := faulttest.New(t, s.SentinelAddrs[0]) // how a hears of a failover
	o := s.Option()
	o.InitAddress = []string{news.Addr()}
	// The connections of a outlive the failover, however long the sentinels take to agree: with one that
	// broke before the news came, an Unlock cannot know what its release found, and may return nil.
	o.ConnWriteTimeout = time.Minute
	a, b := locktest.DialOption(t, o, locktest.Slow()), locktest.DialOption(t, s.Option(), topoFailover())
	ctx := within(t, 2*time.Minute)
	topoDo(t, topoReplica(t, s), "REPLICAOF", "127.0.0.1", "1")
	name := redistest.Name(t)
	_, h, err := rlock.New(a, name).Lock(ctx)
	must(t, err)
	old := s.MasterAddr(t)
	news.BlackHole(true)
	s.Node(old).Pause()
	defer s.Node(old).Resume()
	master := s.Node(s.WaitFailover(t, old))
	_, successor, err := rlock.New(b, name).Lock(ctx)
	must(t, err)

	unlocked := make(chan error, 1)
	go func() { unlocked <- h.Unlock() }()
	select {
	case err := <-unlocked:
		t.Fatalf("Unlock did not wait for the stopped master: %v", err)
	case <-time.After(300 * time.Millisecond): // it is on its way
	}
	news.BlackHole(false)
	topoIs(t, "Unlock", <-unlocked, rlock.ErrLost, rlock.ErrNotHeld)
	if got := topoField(t, master, name, successor.Owner()); got != "1" {
		t.Errorf("the successor's count is %q", got)
	}
	must(t, successor.Unlock())
}
