package multilock_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"relock/fairlock"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/locktrace"
	"relock/multilock"
	"relock/rlock"
	"relock/rwlock"
	"relock/semaphore"
)

// However the locks are named, they are taken in the order of their keys, prefix included, and
// each once; a writer before a reader.
func TestOrder(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, 20*time.Second)
		var log asked
		cfg, prefixed := slow(), slow()
		cfg.Trace, prefixed.Trace = log.trace(), log.trace()
		prefixed.Prefix = "b"
		ses, other := dial(t, s, cfg), dial(t, s, prefixed)
		rw, sem := rwlock.New(ses, "c"), semaphore.New(ses, "d", 3)
		all := []multilock.Part{
			rlock.New(ses, "a"), rlock.New(ses, "a"), rlock.New(other, "b"), multilock.Read(rw), rw,
			multilock.Permits(sem, 1), multilock.Permits(sem, 2), rlock.New(ses, "e"),
		}
		for range 20 {
			rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
			section, h, err := multilock.New(all...).TryLock(ctx)
			must(t, err)
			if got := strings.Join(log.take(), " "); got != "a b c c d e" {
				t.Fatalf("taken in the order %s", got)
			}
			if n, err := sem.Available(ctx); n != 0 || err != nil {
				t.Errorf("%d permits are left, %v; named twice, they add up", n, err)
			}
			st, err := rw.State(section)
			must(t, err)
			if st.Mode != "write" {
				t.Errorf("the read-write lock is held for %q", st.Mode)
			}
			must(t, h.Unlock())
		}
	})
}

// Every handle tells its name, without the prefix, and its session; a zero one tells nothing.
func TestNameAndSession(t *testing.T) {
	cfg := slow()
	cfg.Prefix = "p:"
	ses := dial(t, redistest.Mini(t), cfg)
	type handle interface {
		Name() string
		Session() *rlock.Session
	}
	for _, h := range []handle{rlock.New(ses, "x"), fairlock.New(ses, "x"), rwlock.New(ses, "x"), semaphore.New(ses, "x", 1)} {
		if h.Name() != "x" || h.Session() != ses {
			t.Errorf("%T: %q, %p", h, h.Name(), h.Session())
		}
	}
	for _, h := range []handle{(*rlock.Mutex)(nil), new(rlock.Mutex), new(fairlock.Mutex), (*rwlock.RWMutex)(nil),
		new(rwlock.RWMutex), (*semaphore.Semaphore)(nil), new(semaphore.Semaphore)} {
		if h.Name() != "" || h.Session() != nil {
			t.Errorf("%T: %q, %p", h, h.Name(), h.Session())
		}
	}
}

// One name in several Redises is taken in the same order by every process: that of the ids of
// the Redises. A lock that two sessions of one Redis name is refused.
func TestOrderAcrossRedises(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, 20*time.Second)
		servers := []*redistest.Server{s, redistest.Mini(t), redistest.Mini(t)}
		var orders []string
		for range 3 { // processes
			var log asked
			var locks []multilock.Part
			for i, server := range servers {
				cfg := slow()
				cfg.Trace = &rlock.Trace{Attempt: func(locktrace.Attempt) { log.trace().Attempt(locktrace.Attempt{Name: fmt.Sprint(i)}) }}
				locks = append(locks, rlock.New(dial(t, server, cfg), "x"))
			}
			for range 3 {
				rand.Shuffle(len(locks), func(i, j int) { locks[i], locks[j] = locks[j], locks[i] })
				_, h, err := multilock.New(locks...).Lock(ctx)
				must(t, err)
				must(t, h.Unlock())
				orders = append(orders, strings.Join(log.take(), ""))
			}
		}
		if slices.Sort(orders); orders[0] != orders[len(orders)-1] {
			t.Errorf("taken in different orders: %v", orders)
		}

		one, two := dial(t, s, slow()), dial(t, s, slow())
		for what, parts := range map[string][]multilock.Part{
			"a lock":    {rlock.New(one, "x"), rlock.New(two, "x")},
			"its sides": {rwlock.New(one, "x"), multilock.Read(rwlock.New(two, "x"))},
			"its kinds": {rlock.New(one, "x"), fairlock.New(two, "x")},
		} {
			_, _, err := multilock.New(parts...).TryLock(ctx)
			is(t, what+" by two sessions of one Redis", err, rlock.ErrArgument)
		}
		free(t, ctx, rlock.New(one, "x"))
		// Different locks of one Redis may come from different sessions, without a question.
		s.FlushAll(t)
		_, h, err := multilock.New(rlock.New(one, "x"), rlock.New(two, "y")).Lock(ctx)
		must(t, err)
		if got := s.Keys(t); !slices.Equal(got, []string{"x", "y"}) {
			t.Errorf("keys: %q", got)
		}
		must(t, h.Unlock())
		must(t, s.Do(t, "HSET", "relock_deployment", "a", "1").Error())
		if _, _, err := multilock.New(rlock.New(one, "x"), rlock.New(two, "x")).Lock(ctx); err == nil || !strings.Contains(err.Error(), "WRONGTYPE") {
			t.Errorf("the id is of another type: %v", err)
		}
	})
}

// Callers that lock in another order, nested, by hand, do not end in a deadlock: the
// multi-lock gives way, and is served afterwards.
func TestGivesWay(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, time.Minute)
		trace, waiting := locktest.Waiting()
		cfg := slow()
		cfg.Trace = trace
		ses, other := dial(t, s, cfg), dial(t, s, cfg)
		byHand, _, err := rlock.New(other, "b").Lock(ctx)
		must(t, err)
		multi := start(ctx, multilock.New(rlock.New(ses, "a"), rlock.New(ses, "b")))
		locktest.Get(t, waiting, 10*time.Second, "the multi-lock to hold a and wait for b")
		began := time.Now()
		_, h, err := rlock.New(other, "a").Lock(byHand)
		must(t, err)
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("it gave way after %v", took)
		}
		select {
		case got := <-multi:
			t.Fatalf("the multi-lock has returned: %v", got.err)
		default:
		}
		must(t, other.Close()) // releases both
		got := locktest.Get(t, multi, 30*time.Second, "the multi-lock's turn")
		must(t, got.err)
		must(t, got.h.Unlock())
		_ = h.Unlock()
		must(t, ses.Close())
	})
}

// So it is within one session: what would be a deadlock there is none, since the multi-lock gives
// way.
func TestGivesWayWithinASession(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, time.Minute)
		trace, waiting := locktest.Waiting()
		cfg := slow()
		cfg.Trace = trace
		ses := dial(t, s, cfg)
		byHand, b, err := rlock.New(ses, "b").Lock(ctx)
		must(t, err)
		multi := start(ctx, multilock.New(rlock.New(ses, "a"), rlock.New(ses, "b")))
		locktest.Get(t, waiting, 10*time.Second, "the multi-lock to hold a and wait for b")
		_, a, err := rlock.New(ses, "a").Lock(byHand)
		must(t, err)
		must(t, a.Unlock())
		must(t, b.Unlock())
		got := locktest.Get(t, multi, 30*time.Second, "the multi-lock's turn")
		must(t, got.err)
		must(t, got.h.Unlock())
		must(t, ses.Close())
	})
}

// A multi-lock inside of another section cannot give that up: what leads through it is a deadlock,
// and has one victim. (TestGivesWay has none.)
func TestDeadlockOutside(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, time.Minute)
		ses, other := dial(t, s, slow()), dial(t, s, slow())
		inX, x, err := rlock.New(ses, "x").Lock(ctx)
		must(t, err)
		inB, b, err := rlock.New(other, "b").Lock(ctx)
		must(t, err)
		multi := start(inX, multilock.New(rlock.New(ses, "a"), rlock.New(ses, "b")))
		single := make(chan error, 1)
		go func() {
			_, h, err := rlock.New(other, "x").Lock(inB)
			if err == nil {
				err = h.Unlock()
			}
			single <- err
		}()
		select {
		case got := <-multi:
			is(t, "the multi-lock", got.err, rlock.ErrDeadlock)
			must(t, x.Unlock())
			must(t, locktest.Get(t, single, 10*time.Second, "the other's lock"))
			must(t, b.Unlock())
		case err := <-single:
			is(t, "the other's lock", err, rlock.ErrDeadlock)
			must(t, b.Unlock())
			got := locktest.Get(t, multi, 10*time.Second, "the multi-lock")
			must(t, got.err)
			must(t, got.h.Unlock())
			must(t, x.Unlock())
		case <-time.After(10 * time.Second):
			t.Fatal("no victim")
		}
	})
}

// A lock that is lost while the caller waits for another one is taken again.
func TestLostWhileWaiting(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, time.Minute)
		trace, waiting := locktest.Waiting()
		cfg := slow()
		cfg.Trace = trace
		ses, other := dial(t, s, cfg), dial(t, s, slow())
		_, busy, err := rlock.New(other, "b").Lock(ctx)
		must(t, err)
		multi := start(ctx, multilock.New(rlock.New(ses, "a"), rlock.New(ses, "b")))
		locktest.Get(t, waiting, 10*time.Second, "the multi-lock to hold a and wait for b")
		if ok, err := rlock.New(other, "a").ForceUnlock(ctx); !ok || err != nil {
			t.Fatalf("ForceUnlock: %v, %v", ok, err)
		}
		locktest.Get(t, waiting, 10*time.Second, "the multi-lock to wait for b again")
		must(t, busy.Unlock())
		got := locktest.Get(t, multi, 10*time.Second, "both locks")
		must(t, got.err)
		held(t, ctx, rlock.New(other, "a"), rlock.New(other, "b"))
		must(t, got.h.Unlock())
		must(t, ses.Close())
		must(t, other.Close())
	})
}

// Without contention each lock costs a script to take and one to release.
func TestCost(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, 20*time.Second)
		ses, p := locktest.DialProxy(t, s, slow())
		m := multilock.New(rlock.New(ses, "a"), rlock.New(ses, "b"), rlock.New(ses, "c"))
		p.Reset()
		_, h, err := m.Lock(ctx)
		must(t, err)
		must(t, h.Unlock())
		if log := p.Log(); len(log) != 6 || p.Count("EVALSHA") != 6 {
			t.Errorf("sent %q", log)
		}
	})
}

// The id of a Redis is made once and stays (its script is safe to run twice).
func TestScripts(t *testing.T) {
	src := map[string]string{"deployment": multilock.DeploymentSource}
	cases := []locktest.ScriptCase{
		locktest.Case("there is none", "deployment", nil, locktest.Keys("k"), locktest.Args("new"), "new", "new", "k=new"),
		locktest.Case("there is one", "deployment", locktest.Setup("SET k old"), locktest.Keys("k"), locktest.Args("new"), "old", "old", "k=old"),
		locktest.Case("another type", "deployment", locktest.Setup("HSET k a 1"), locktest.Keys("k"), locktest.Args("new"), "WRONGTYPE", "WRONGTYPE", "k{a:1}"),
	}
	locktest.RunScripts(t, src, cases)
	locktest.RefuseWrites(t, src, cases)
	locktest.CheckHeaders(t, src)
}
