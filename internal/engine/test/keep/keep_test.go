package keep_test

import (
	"context"
	"testing"
	"time"

	"relock/fairlock"
	"relock/internal/test/faulttest"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/locktrace"
	"relock/rlock"
	"relock/rwlock"
)

var keepKinds = map[string]func(s *rlock.Session, opts ...rlock.MutexOption) locktest.Mutex{
	"plain":      func(s *rlock.Session, opts ...rlock.MutexOption) locktest.Mutex { return rlock.New(s, "x", opts...) },
	"write side": func(s *rlock.Session, opts ...rlock.MutexOption) locktest.Mutex { return rwlock.New(s, "x", opts...) },
}

// A keepStage is a session that keeps x, as far as it is used, and another one.
type keepStage struct {
	s       *redistest.Server
	ctx     context.Context
	ses     *rlock.Session
	p       *faulttest.Proxy
	m       locktest.Mutex
	other   *rlock.Session
	theirs  locktest.Mutex
	of      func(s *rlock.Session, opts ...rlock.MutexOption) locktest.Mutex
	granted func() locktrace.Grant // where the last lock of ses came from
	losses  chan locktrace.Lost    // that ses was told of
}

// eachKeep runs fn for both kinds.
func eachKeep(t *testing.T, d time.Duration, fn func(t *testing.T, st *keepStage)) {
	t.Parallel()
	for name, of := range keepKinds {
		t.Run(name, func(t *testing.T) {
			redistest.Each(t, func(t *testing.T, s *redistest.Server) {
				grants := make(chan locktrace.Grant, 1000)
				st := &keepStage{s: s, ctx: within(t, time.Minute), of: of, losses: make(chan locktrace.Lost, 10)}
				st.ses, st.p = locktest.DialProxy(t, s, rlock.Config{Trace: &rlock.Trace{
					AcquireEnd: func(_ context.Context, e locktrace.AcquireEnd) { grants <- e.Grant },
					Lost:       func(e locktrace.Lost) { st.losses <- e },
				}})
				st.m, st.other = of(st.ses, rlock.Keep(d)), dial(t, s, rlock.Config{})
				st.theirs = of(st.other)
				st.granted = func() locktrace.Grant { return locktest.Get(t, grants, 5*time.Second, "the end of an acquisition") }
				fn(t, st)
			})
		})
	}
}

// lockOnce takes the lock and leaves it.
func (st *keepStage) lockOnce(t *testing.T, m locktest.Mutex, opts ...rlock.LockOption) {
	t.Helper()
	section, h, err := m.Lock(st.ctx, opts...)
	must(t, err)
	must(t, h.Unlock())
	locktest.Ends(t, section, time.Second, rlock.ErrReleased)
}

func (st *keepStage) stands(t *testing.T) bool {
	t.Helper()
	n, err := st.s.Do(t, "EXISTS", "x").AsInt64()
	must(t, err)
	return n == 1
}

// A session that keeps a lock takes it again without a command, whether by Lock or TryLock.
func TestAKeptLockIsTakenAgainWithoutACommand(t *testing.T) {
	eachKeep(t, 15*time.Second, func(t *testing.T, st *keepStage) {
		st.lockOnce(t, st.m)
		if g := st.granted(); g != locktrace.GrantRedis {
			t.Errorf("the first lock came from %q", g)
		}
		if !st.stands(t) {
			t.Fatal("the lock is not kept")
		}
		st.p.Reset()
		for range 20 {
			st.lockOnce(t, st.m)
			section, h, err := st.m.TryLock(st.ctx)
			must(t, err)
			_, nested, err := st.m.TryLock(section)
			must(t, err)
			must(t, nested.Unlock())
			must(t, h.Unlock())
			for range 2 {
				if g := st.granted(); g != locktrace.GrantKept {
					t.Fatalf("a lock came from %q, want what was kept", g)
				}
			}
			st.granted() // the nested one
		}
		if n := st.p.Count("EVALSHA") + st.p.Count("EVAL"); n > 2*20*3 { // the nested holds are counted by Redis
			t.Errorf("%d scripts for 40 locks, want those of 20 nested ones", n)
		}
	})
}

// Who waits elsewhere has the lock as soon as the session that keeps it hears of that, and not when the time is over.
func TestAKeptLockIsGivenToWhoWaits(t *testing.T) {
	eachKeep(t, 15*time.Second, func(t *testing.T, st *keepStage) {
		st.lockOnce(t, st.m)
		began := time.Now()
		st.lockOnce(t, st.theirs)
		if took := time.Since(began); took > 3*time.Second {
			t.Errorf("it took %v", took)
		}
		st.lockOnce(t, st.m)
	})
}

// A TryLock elsewhere is refused, and asks for the lock.
func TestATryLockAsksForAKeptLock(t *testing.T) {
	eachKeep(t, 15*time.Second, func(t *testing.T, st *keepStage) {
		st.lockOnce(t, st.m)
		_, _, err := st.theirs.TryLock(st.ctx)
		locktest.Is(t, "TryLock", err, rlock.ErrNotAcquired)
		redistest.Eventually(t, 5*time.Second, "the lock to be given back", func() bool { return !st.stands(t) })
		_, h, err := st.theirs.TryLock(st.ctx)
		must(t, err)
		must(t, h.Unlock())
	})
}

// A lock that is in use when it is asked for is not kept when the section ends.
func TestALockThatIsAskedForIsNotKept(t *testing.T) {
	eachKeep(t, 15*time.Second, func(t *testing.T, st *keepStage) {
		_, h, err := st.m.Lock(st.ctx)
		must(t, err)
		waiter := locktest.GoLock(st.theirs, st.ctx)
		redistest.Eventually(t, 5*time.Second, "the waiter to stand in the line", func() bool {
			n, err := st.s.Do(t, "EXISTS", "relock_line1:{x}").AsInt64()
			return err == nil && n == 1
		})
		must(t, h.Unlock())
		got := locktest.Get(t, waiter, 5*time.Second, "the waiter")
		must(t, got.Err)
		must(t, got.Hold.Unlock())
	})
}

// When the time is over the lock is free, and nobody has to ask.
func TestAKeptLockIsFreeWhenTheTimeIsOver(t *testing.T) {
	t.Parallel()
	for name, of := range keepKinds {
		t.Run(name, func(t *testing.T) {
			redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
				ses, ctx := dial(t, s, rlock.Config{}), within(t, time.Minute)
				m := of(ses, rlock.Keep(2*time.Second))
				_, h, err := m.Lock(ctx)
				must(t, err)
				must(t, h.Unlock())
				time.Sleep(1900 * time.Millisecond)
				if locktest.PTTL(t, s, "x") < time.Second {
					t.Error("the lock is not kept")
				}
				redistest.Eventually(t, s.Slack()+200*time.Millisecond, "the lock to be free", func() bool { return locktest.PTTL(t, s, "x") < 0 })
				if held, _, _, scheduled, _ := locktest.Books(ses); held+scheduled > 0 {
					t.Errorf("%d claims held, %d scheduled", held, scheduled)
				}
			})
		})
	}
}

// A lock that the session goes on using passes through Redis about once in the time that it may be kept: others cannot
// all ask.
func TestAKeptLockPassesThroughRedis(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ses, ctx := dial(t, s, rlock.Config{}), within(t, time.Minute)
		m := rlock.New(ses, "x", rlock.Keep(time.Second))
		owners := map[string]bool{}
		for began := time.Now(); time.Since(began) < 5*time.Second; time.Sleep(100 * time.Millisecond) {
			_, h, err := m.Lock(ctx)
			must(t, err)
			owners[h.Owner()] = true
			must(t, h.Unlock())
		}
		if n := len(owners); n < 3 || n > 7 {
			t.Errorf("%d claims in 5s, want one each second", n)
		}
	})
}

// Callers of the session that cannot use what is kept have it given back first: they are not refused by their own
// session.
func TestWhoCannotUseAKeptLockHasItGivenBack(t *testing.T) {
	eachKeep(t, 15*time.Second, func(t *testing.T, st *keepStage) {
		named := rlock.WithOwner(st.ctx, "bob")
		for name, try := range map[string]func() (context.Context, *rlock.Hold, error){
			"named":  func() (context.Context, *rlock.Hold, error) { return st.m.TryLock(named) },
			"leased": func() (context.Context, *rlock.Hold, error) { return st.m.TryLock(st.ctx, rlock.Lease(time.Minute)) },
			"atleast": func() (context.Context, *rlock.Hold, error) {
				return st.m.TryLock(st.ctx, rlock.AtLeast(time.Millisecond))
			},
		} {
			st.lockOnce(t, st.m)
			_, h, err := try()
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			must(t, h.Unlock())
			redistest.Eventually(t, 5*time.Second, name+": the lock to be free", func() bool { return !st.stands(t) })
		}
	})
}

// Readers of the session that keeps the write side get in, and those of others ask for it.
func TestReadersAskForAKeptWriteSide(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, 30*time.Second)
		m, other := rwlock.New(dial(t, s, rlock.Config{}), "x", rlock.Keep(15*time.Second)), rwlock.New(dial(t, s, rlock.Config{}), "x")
		for name, read := range map[string]func() (context.Context, *rlock.Hold, error){
			"TryRLock":        func() (context.Context, *rlock.Hold, error) { return m.TryRLock(ctx) },
			"RLock elsewhere": func() (context.Context, *rlock.Hold, error) { return other.RLock(ctx, rlock.Wait(5*time.Second)) },
		} {
			_, h, err := m.Lock(ctx)
			must(t, err)
			must(t, h.Unlock())
			_, r, err := read()
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			must(t, r.Unlock())
		}
	})
}

// Each section has a token of its own, and when those that were reserved are used up the lock passes through Redis.
func TestSectionsOnAKeptLockHaveTokens(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, 30*time.Second)
		m := rlock.New(dial(t, s, rlock.Config{}), "x", rlock.Fenced(), rlock.Keep(15*time.Second))
		last, owners := int64(0), map[string]bool{}
		for range 200 {
			_, h, err := m.Lock(ctx)
			must(t, err)
			if h.Token() <= last {
				t.Fatalf("token %d after %d", h.Token(), last)
			}
			last, owners[h.Owner()] = h.Token(), true
			must(t, h.Unlock())
		}
		if n := len(owners); n < 2 || n > 10 {
			t.Errorf("%d claims for 200 sections, want a few", n)
		}
	})
}

// A lock that others ask for again and again is not kept any more, but for a try now and then.
func TestALockThatBouncesIsKeptLessOften(t *testing.T) {
	eachKeep(t, 15*time.Second, func(t *testing.T, st *keepStage) {
		kept := 0
		for range 40 {
			st.lockOnce(t, st.m)
			if st.stands(t) {
				kept++
			}
			st.lockOnce(t, st.theirs)
			redistest.Eventually(t, 5*time.Second, "the lock to be free", func() bool { return !st.stands(t) })
		}
		if kept < 1 || kept > 8 {
			t.Errorf("it was kept %d times of 40, want about 6", kept)
		}
	})
}

// Keep has bounds, and is not for fair locks.
func TestKeepRefused(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ses, ctx := dial(t, s, rlock.Config{Lease: 10 * time.Second}), within(t, 10*time.Second)
		for name, m := range map[string]locktest.Mutex{
			"0":            rlock.New(ses, "x", rlock.Keep(0)),
			"negative":     rlock.New(ses, "x", rlock.Keep(-time.Second)),
			"too long":     rlock.New(ses, "x", rlock.Keep(5*time.Second+1)),
			"fair":         fairlock.New(ses, "x", rlock.Keep(time.Second)),
			"rw, too long": rwlock.New(ses, "x", rlock.Keep(6*time.Second)),
			"rw, fenced":   rwlock.New(ses, "x", rlock.Fenced()),
			"rw, nil":      rwlock.New(ses, "x", nil),
		} {
			_, _, err := m.Lock(ctx)
			locktest.Is(t, name, err, rlock.ErrArgument)
		}
		if st := s.Do(t, "EXISTS", "x"); st.Error() != nil {
			t.Error(st.Error())
		}
	})
}
