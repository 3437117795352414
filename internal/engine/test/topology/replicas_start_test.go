package topology_test

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"relock/internal/test/faulttest"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/locktrace"
	"relock/rlock"
)

// An acquisition costs two scripts more and one WAIT.
func TestReplicasCost(t *testing.T) {
	t.Parallel()
	master, _ := redistest.NewReplicas(t, 1)
	ses, p := locktest.DialProxy(t, master, rlock.Config{Replicas: 1})
	m := rlock.New(ses, redistest.Name(t))
	ctx := within(t, time.Minute)
	const pairs = 20
	for range pairs {
		_, h, err := m.Lock(ctx)
		must(t, err)
		must(t, h.Unlock())
	}
	if scripts, waits := p.Count("EVALSHA"), p.Count("WAIT"); scripts != 4*pairs || waits != pairs {
		t.Errorf("%d pairs sent %d scripts and %d WAIT", pairs, scripts, waits)
	}
}

// The connections that acknowledgements need come and go, and put no claim in doubt: that would
// cost a renewal at once.
func TestReplicasPutNothingInDoubt(t *testing.T) {
	t.Parallel()
	master, _ := redistest.NewReplicas(t, 1)
	renewed := make(chan struct{}, 100)
	ses, p := locktest.DialProxy(t, master, rlock.Config{Replicas: 1, Trace: &rlock.Trace{
		Renewed: func(locktrace.Renewed) { renewed <- struct{}{} },
	}})
	name := redistest.Name(t)
	ctx := within(t, time.Minute)
	seen, release := p.HoldRequest(faulttest.Is("WAIT"))
	first := locktest.BeginLock(ctx, rlock.New(ses, name))
	locktest.Get(t, seen, locktest.Patience, "a WAIT")
	_, h, err := rlock.New(ses, name+"-2").Lock(ctx) // over a connection more
	must(t, err)
	release()
	first.Granted(t, locktest.Patience)
	select {
	case <-renewed:
		t.Error("a claim was renewed, as one in doubt")
	case <-time.After(300 * time.Millisecond):
	}
	must(t, errors.Join(first.Hold.Unlock(), h.Unlock()))
}

// However many acquisitions wait for replicas, they do so over a bounded number of connections.
func TestReplicasCostFewConnections(t *testing.T) {
	t.Parallel()
	master, replicas := redistest.NewReplicas(t, 1)
	ses := locktest.DialOption(t, master.Option(), rlock.Config{Replicas: 1, ReplicaTimeout: replTimeout})
	ctx, name := within(t, time.Minute), redistest.Name(t)
	replicas[0].Pause()
	var all sync.WaitGroup
	for i := range 100 {
		all.Go(func() {
			if _, _, err := rlock.New(ses, name+strconv.Itoa(i)).TryLock(ctx); !errors.Is(err, rlock.ErrUnavailable) {
				t.Error(err)
			}
		})
	}
	all.Wait()
	list, err := master.Do(t, "CLIENT", "LIST", "TYPE", "NORMAL").ToString()
	must(t, err)
	if n := strings.Count(list, "\n"); n > 40 {
		t.Errorf("%d connections", n)
	}
	replFree(t, master, name)
}

// A hand-over in memory waits for no replica: its claim was acknowledged.
func TestHandOverWaitsForNoReplica(t *testing.T) {
	t.Parallel()
	master, _ := redistest.NewReplicas(t, 1)
	ses, p := locktest.DialProxy(t, master, rlock.Config{Replicas: 1})
	m := rlock.New(ses, redistest.Name(t))
	ctx := within(t, time.Minute)
	const rounds, callers = 50, 4
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for range rounds {
				_, h, err := m.Lock(ctx)
				if err != nil {
					t.Error(err)
					return
				}
				if err := h.Unlock(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if waits := p.Count("WAIT"); waits > rounds*callers/2 {
		t.Errorf("%d acquisitions have sent %d WAIT", rounds*callers, waits)
	}
}

// A session begins without the replicas that it is to wait for, and says so; a server that cannot
// wait for any is an error that tells what to do.
func TestReplicasAtStart(t *testing.T) {
	t.Parallel()
	old := redistest.Real(t, "--rename-command", "WAIT", "")
	locktest.CannotWork(t, "a server without WAIT", old.Option(), rlock.Config{Replicas: 1}, "does not know WAIT")
	s := redistest.Real(t)
	must(t, s.Do(t, "ACL", "SETUSER", "somebody", "on", ">secret", "~*", "&*", "+@all", "-wait").Error())
	opt := s.Option()
	opt.Username, opt.Password = "somebody", "secret"
	locktest.CannotWork(t, "no WAIT", opt, rlock.Config{Replicas: 1}, "+wait")

	servers := map[string]*redistest.Server{"miniredis": redistest.Mini(t)}
	if !testing.Short() {
		servers["redis"] = s
	}
	for what, s := range servers {
		var log locktest.Journal
		ses := locktest.DialOption(t, s.Option(), rlock.Config{Replicas: 1, ReplicaTimeout: replTimeout, Logger: log.Logger()})
		redistest.Eventually(t, locktest.Patience, "the log", func() bool { return log.Count("fewer replicas are connected") == 1 })
		name := redistest.Name(t)
		for kind, lock := range replLocks(ses, name) {
			_, err := lock(within(t, time.Minute), rlock.Wait(0))
			if !errors.Is(err, rlock.ErrUnavailable) || !replTells(err, "0 of 1 replicas") {
				t.Errorf("%s on %s: %v", kind, what, err)
			}
		}
		replFree(t, s, name)
	}
}

// Where no replica is connected, Dial warns, and each Lock that has waited says why in its error: also one that
// stood behind another of its session, and asked nothing itself.
func TestReplicasThatAreMissingAreNamed(t *testing.T) {
	var log locktest.Journal
	former := slog.Default()
	slog.SetDefault(log.Logger())
	defer slog.SetDefault(former)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		name := redistest.Name(t)
		before := log.Count("fewer replicas are connected")
		ses := locktest.DialOption(t, s.Option(), rlock.Config{Replicas: 1, ReplicaTimeout: replTimeout})
		if log.Count("fewer replicas are connected") != before+1 {
			t.Error("Dial does not warn where there is no Logger")
		}
		first := make(chan error)
		ctx, end := context.WithCancel(t.Context())
		go func() {
			_, _, err := rlock.New(ses, name).Lock(ctx)
			first <- err
		}()
		redistest.Eventually(t, locktest.Patience, "the first attempt", func() bool { return log.Count("locks wait for it") > 0 })
		_, _, err := rlock.New(ses, name).Lock(t.Context(), rlock.Wait(10*time.Millisecond))
		if !errors.Is(err, rlock.ErrNotAcquired) || !replTells(err, "0 of 1 replicas") || !strings.Contains(err.Error(), "Config.Replicas") {
			t.Errorf("behind another: %v", err)
		}
		end()
		err = <-first
		if !errors.Is(err, rlock.ErrNotAcquired) || !errors.Is(err, rlock.ErrUnavailable) || !strings.Contains(err.Error(), "Config.Replicas") {
			t.Errorf("the first: %v", err)
		}
		replFree(t, s, name)
		log.Clear()
	})
}

// What the documented ACL allows is enough, with +wait.
func TestReplicasWithTheDocumentedACL(t *testing.T) {
	t.Parallel()
	master, _ := redistest.NewReplicas(t, 1)
	topoDo(t, master, append(redistest.DocumentedACL(t), "+wait")...)
	opt := master.Option()
	opt.Username, opt.Password = "locks", "secret"
	ses := locktest.DialOption(t, opt, rlock.Config{Prefix: "app:", Replicas: 1})
	for what, lock := range replLocks(ses, strconv.Itoa(1)) {
		h, err := lock(within(t, time.Minute))
		if err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		must(t, h.Unlock())
	}
}
