package topology_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"relock/fairlock"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// Every kind of acquisition returns when all replicas have it.
func TestReplicasAcknowledge(t *testing.T) {
	t.Parallel()
	master, replicas := redistest.NewReplicas(t, 2)
	ses := locktest.DialOption(t, master.Option(), rlock.Config{Replicas: 2, ReplicaTimeout: replTimeout})
	ctx := within(t, 2*time.Minute)
	for what, lock := range replLocks(ses, redistest.Name(t)) {
		h, err := lock(ctx)
		if err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		at, _ := master.Do(t, "DBSIZE").AsInt64()
		for _, r := range replicas {
			if n, err := r.Do(t, "DBSIZE").AsInt64(); n != at || err != nil {
				t.Errorf("%s: a replica has %d keys of %d, %v", what, n, at, err)
			}
		}
		must(t, h.Unlock())
	}
}

// With one of two replicas stopped no kind of acquisition returns: TryLock says so at once, a Lock when
// its wait is over, and nothing is left standing. When the replica goes on a Lock gets in.
func TestReplicasThatDoNotAcknowledge(t *testing.T) {
	t.Parallel()
	master, replicas := redistest.NewReplicas(t, 2)
	ses := locktest.DialOption(t, master.Option(), rlock.Config{Replicas: 2, ReplicaTimeout: replTimeout})
	ctx := within(t, 2*time.Minute)
	replicas[1].Pause()
	name := redistest.Name(t)
	all := replLocks(ses, name)
	exact := 0 // how often the other one has acknowledged it in time, which a busy machine may not manage
	for what, lock := range all {
		for _, wait := range []time.Duration{0, 3 * replTimeout} {
			began := time.Now()
			_, err := lock(ctx, rlock.Wait(wait))
			if !errors.Is(err, rlock.ErrUnavailable) || errors.Is(err, rlock.ErrNotAcquired) != (wait > 0) ||
				!replTells(err, " of 2 replicas") || replTells(err, "2 of 2") {
				t.Errorf("%s, Wait(%v): %v", what, wait, err)
			}
			if replTells(err, "1 of 2 replicas") {
				exact++
			}
			if took := time.Since(began); took > wait+replTimeout+2*time.Second {
				t.Errorf("%s, Wait(%v): the error came after %v", what, wait, took)
			}
		}
	}
	if exact == 0 {
		t.Error("the replica that goes on has acknowledged nothing")
	}
	replFree(t, master, name)

	type entered struct {
		what string
		hold replHold
		err  error
	}
	in := make(chan entered, len(all))
	for what, lock := range all {
		go func() {
			h, err := lock(ctx)
			in <- entered{what, h, err}
		}()
	}
	select {
	case e := <-in:
		t.Fatalf("%s got in with one replica: %v", e.what, e.err)
	case <-time.After(2 * replTimeout):
	}
	replicas[1].Resume()
	for range all {
		e := locktest.Get(t, in, locktest.Patience, "the Locks that wait for the replica")
		if e.err != nil {
			t.Fatalf("%s: %v", e.what, e.err)
		}
		must(t, e.hold.Unlock())
	}
	replFree(t, master, name)
}

// The end of a context while the replicas are waited for ends the Lock at once, and what is left
// is taken back.
func TestReplicasAndTheEndOfTheContext(t *testing.T) {
	t.Parallel()
	master, replicas := redistest.NewReplicas(t, 1)
	ses := locktest.DialOption(t, master.Option(), rlock.Config{Replicas: 1, ReplicaTimeout: 10 * time.Second})
	replicas[0].Pause()
	name := redistest.Name(t)
	ctx, cancel := context.WithCancel(within(t, time.Minute))
	w := locktest.BeginLock(ctx, rlock.New(ses, name))
	redistest.Eventually(t, locktest.Patience, "Redis has granted it", func() bool {
		n, err := master.Do(t, "EXISTS", name).AsInt64()
		return n == 1 && err == nil
	})
	w.Waits(t)
	cancel()
	<-w.Done
	topoIs(t, "a Lock whose context ends", w.Err, rlock.ErrNotAcquired, context.Canceled)
	replFree(t, master, name)

	// A deadline leaves time to say what is missing: a tenth, and what an idle Redis is late by. A tenth of
	// less than a second is soon over where three processes share busy processors.
	short, cancel := context.WithTimeout(context.Background(), 4*time.Second)
	defer cancel()
	_, _, err := rlock.New(ses, name).Lock(short)
	topoIs(t, "a Lock whose deadline passes", err, rlock.ErrNotAcquired, rlock.ErrUnavailable, context.DeadlineExceeded)
	if !replTells(err, "0 of 1 replicas") {
		t.Errorf("the error is %v", err)
	}
	replFree(t, master, name)
}

// A nested Lock and one more hold of a named owner are acknowledged too, and one that is not
// leaves the section as it was.
func TestReplicasOfNestedHolds(t *testing.T) {
	t.Parallel()
	master, replicas := redistest.NewReplicas(t, 1)
	ses := locktest.DialOption(t, master.Option(), rlock.Config{Replicas: 1, ReplicaTimeout: replTimeout})
	name := redistest.Name(t)
	m := rlock.New(ses, name)
	ctx := within(t, time.Minute)
	section, h, err := m.Lock(ctx)
	must(t, err)
	replicas[0].Pause()
	_, _, err = m.TryLock(section)
	topoIs(t, "a nested TryLock", err, rlock.ErrUnavailable)
	w := locktest.BeginLock(section, m)
	redistest.Eventually(t, locktest.Patience, "Redis has counted both holds", func() bool {
		return topoField(t, master, name, h.Owner()) == "2"
	})
	w.Waits(t)
	if section.Err() != nil {
		t.Errorf("the outer section has ended: %v", context.Cause(section))
	}
	replicas[0].Resume()
	w.Granted(t, locktest.Patience)
	if n := topoField(t, replicas[0], name, h.Owner()); n != "2" {
		t.Errorf("the replica counts %s holds", n)
	}
	must(t, w.Hold.Unlock())
	must(t, h.Unlock())
	replFree(t, master, name)
}

// A grant of a fairlock comes by message, from another session's release. The waiter asks the
// replicas before it is in.
func TestReplicasOfAFairGrant(t *testing.T) {
	t.Parallel()
	master, replicas := redistest.NewReplicas(t, 1)
	one := locktest.DialOption(t, master.Option(), rlock.Config{})
	other := locktest.DialOption(t, master.Option(), rlock.Config{Replicas: 1, ReplicaTimeout: replTimeout})
	name := redistest.Name(t)
	ctx := within(t, time.Minute)
	_, h, err := fairlock.New(one, name).Lock(ctx)
	must(t, err)
	in := make(chan *rlock.Hold)
	go func() {
		_, h, err := fairlock.New(other, name).Lock(ctx)
		if err != nil {
			t.Error(err)
		}
		in <- h
	}()
	redistest.Eventually(t, locktest.Patience, "the other session queues", func() bool {
		n, err := master.Do(t, "EXISTS", "relock_line1:{"+name+"}").AsInt64()
		return n == 1 && err == nil
	})
	replicas[0].Pause()
	must(t, h.Unlock())
	select {
	case <-in:
		t.Fatal("the waiter is in, and the replica knows nothing of it")
	case <-time.After(2 * replTimeout):
	}
	replicas[0].Resume()
	h = locktest.Get(t, in, locktest.Patience, "the grant")
	if n := topoField(t, replicas[0], name, h.Owner()); n != "1" {
		t.Errorf("the replica has %q holds of the owner", n)
	}
	must(t, h.Unlock())
}
