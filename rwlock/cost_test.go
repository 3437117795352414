package rwlock_test

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"sync"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/rwlock"
)

// An uncontended cycle of either side is two scripts and nothing else. A nested one is two
// more, but nested readers of a private owner are counted in memory.
func TestUncontendedCostsTwoScripts(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ses, p := locktest.DialProxy(t, s, slow)
		m := rwlock.New(ses, "x")
		ctx := within(t, 20*time.Second)
		for i, lock := range []lockFunc{m.RLock, m.Lock, m.TryRLock, m.TryLock} {
			p.Reset()
			_, h := hold(t, ctx, lock)
			must(t, h.Unlock())
			if log := p.Log(); len(log) != 2 || p.Count("EVALSHA") != 2 {
				t.Errorf("one cycle sent %q", log)
			}
			p.Reset()
			section, h := hold(t, ctx, lock)
			_, inner := hold(t, section, lock)
			must(t, inner.Unlock())
			must(t, h.Unlock())
			want := 2 + 2*(i%2)
			if log := p.Log(); len(log) != want || p.Count("EVALSHA") != want {
				t.Errorf("a nested cycle sent %q, want %d scripts", log, want)
			}
		}
	})
}

// The scripts of a private reader who is alone are sent with what they need, and no more: each key
// and argument costs Redis time. A nested hold and a named owner have ids.
func TestAPrivateReaderSendsNoIDs(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ses, p := locktest.DialProxy(t, s, slow)
		m, ctx := rwlock.New(ses, "x"), within(t, 20*time.Second)
		for _, c := range []struct {
			who string
			ctx context.Context
			all []int // how many keys and arguments each command has
		}{
			{"a private reader", ctx, []int{4 + 11, 4 + 5}},
			{"a named one", rlock.WithOwner(ctx, "me"), []int{5 + 11, 5 + 11}},
		} {
			p.Reset()
			_, h := hold(t, c.ctx, m.RLock)
			must(t, h.Unlock())
			sent := p.Sent()
			for i, cmd := range sent {
				if len(sent) != 2 || len(cmd) != 3+c.all[i] {
					t.Errorf("%s sent %q, want %d keys and arguments", c.who, sent, c.all)
				}
			}
		}
		nothingLeft(t, s)
	})
}

// inside returns what the server executes while fn runs, besides what the helper itself
// sends, and the time that the scripts took.
func inside(t *testing.T, s *redistest.Server, fn func()) (commands map[string]int, scripts time.Duration) {
	t.Helper()
	s.ResetStats(t)
	fn()
	commands = s.Commands(t)
	for _, own := range []string{"info", "config|resetstat", "ping", "hello", "client|setinfo", "client|setname"} {
		delete(commands, own)
	}
	text, err := s.Do(t, "INFO", "commandstats").ToString()
	must(t, err)
	if m := regexp.MustCompile(`cmdstat_evalsha:calls=\d+,usec=(\d+)`).FindStringSubmatch(text); m != nil {
		usec, _ := strconv.Atoi(m[1])
		scripts = time.Duration(usec) * time.Microsecond
	}
	return commands, scripts
}

// A read lock and its unlock cost the same inside Redis however many readers there are.
func TestReadCostDoesNotDependOnReaders(t *testing.T) {
	redistest.SkipShort(t)
	s := redistest.Real(t)
	cfg := rlock.Config{Lease: 10 * time.Minute, RedissonWatchdog: 10 * time.Minute, HandOverLimit: -1} // no renewal in between; each reader is one in Redis
	ctx := within(t, 5*time.Minute)
	// The readers are of several sessions: at each step of a lock all its claims in the session are
	// looked through by the assertions of the tests.
	var all []*rwlock.RWMutex
	for range 20 {
		all = append(all, rwlock.New(dial(t, s, cfg), "x"))
	}
	m := all[0]
	var readers []*rlock.Hold
	var lockAt, unlockAt map[string]int
	for _, n := range []int{10, 5000} {
		for len(readers) < n {
			_, h := hold(t, ctx, all[len(readers)%len(all)].RLock)
			readers = append(readers, h)
		}
		const rounds = 100
		holds := make([]*rlock.Hold, rounds)
		lock, lockTime := inside(t, s, func() {
			for i := range holds {
				_, holds[i] = hold(t, ctx, m.RLock)
			}
		})
		unlock, unlockTime := inside(t, s, func() {
			for _, h := range holds {
				must(t, h.Unlock())
			}
		})
		t.Logf("%d readers: RLock %v inside Redis, Unlock %v", n, lockTime/rounds, unlockTime/rounds)
		if n == 10 {
			lockAt, unlockAt = lock, unlock
			t.Logf("%d RLocks: %v", rounds, lock)
			t.Logf("%d Unlocks: %v", rounds, unlock)
			continue
		}
		if !alike(lock, lockAt, rounds/10) || !alike(unlock, unlockAt, rounds/10) {
			t.Errorf("at %d readers %d cycles executed %v and %v, at 10 they executed %v and %v", n, rounds, lock, unlock, lockAt, unlockAt)
		}
	}
	for _, h := range readers {
		must(t, h.Unlock())
	}
	nothingLeft(t, s)
}

// alike compares counts of commands. Some commands are executed or not according to how a
// TTL was rounded to milliseconds; slack is how often that may be.
func alike(a, b map[string]int, slack int) bool {
	for _, m := range []map[string]int{a, b} {
		for cmd := range m {
			if d := a[cmd] - b[cmd]; d > slack || -d > slack {
				return false
			}
		}
	}
	return true
}

// However many goroutines of a session wait, Redis sees one waiter, and an acquisition
// costs two scripts: one to get in and one to leave.
func TestWaitersOfASessionAreOneContender(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		for _, n := range []int{10, 1000} {
			if s.IsMini() && n > 10 {
				continue // scripts are slow there
			}
			for _, kind := range []string{"writers", "readers", "both"} {
				t.Run(fmt.Sprint(n, kind), func(t *testing.T) {
					holder := rwlock.New(dial(t, s, slow), "x")
					tr, waiting := locktest.Waiting()
					ses, p := locktest.DialProxy(t, s, rlock.Config{PollFloor: time.Hour, Trace: tr})
					m := rwlock.New(ses, "x")
					ctx := within(t, 5*time.Minute)
					_, h := hold(t, ctx, holder.Lock)
					p.Reset()
					var wg sync.WaitGroup
					for i := range n {
						lock := m.Lock
						if kind == "readers" || kind == "both" && i%2 == 0 {
							lock = m.RLock
						}
						wg.Go(func() {
							_, h, err := lock(ctx)
							if err == nil {
								err = h.Unlock()
							}
							if err != nil {
								t.Error(err)
							}
						})
					}
					for range n {
						locktest.Get(t, waiting, 20*time.Second, "everybody to wait")
					}
					redistest.Eventually(t, 20*time.Second, "the front to have asked twice", func() bool { return p.Count("EVALSHA") == 2 })
					if got := p.Count(); got != 3 {
						t.Errorf("%d waiters sent %d commands, want try, subscribe, try: %q", n, got, p.Log())
					}
					p.Reset()
					must(t, h.Unlock())
					wg.Wait()
					got := p.Count("EVALSHA")
					t.Logf("%d %s: %.2f scripts each", n, kind, float64(got)/float64(n))
					// A writer behind readers is refused once by each of them that leaves later.
					if limit := 2 * n; kind != "both" && got > limit+2 {
						t.Errorf("%d acquisitions sent %d scripts, want %d", n, got, limit)
					}
					if got > 4*n {
						t.Errorf("%d acquisitions sent %d scripts", n, got)
					}
				})
			}
		}
	})
}

// One message causes at most one attempt of each session (R15), and an idle waiter costs
// less than one command a second.
func TestWaitersAreQuiet(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		holder := rwlock.New(dial(t, s, slow), "x")
		ses, p := locktest.DialProxy(t, s, slow)
		idle, q := locktest.DialProxy(t, s, rlock.Config{PollFloor: 200 * time.Millisecond})
		ctx := within(t, 5*time.Minute)
		_, h := hold(t, ctx, holder.RLock)
		waitCtx, cancel := context.WithCancel(ctx)
		defer cancel()
		var waiting []<-chan locked
		for range 8 {
			waiting = append(waiting, goLock(waitCtx, rwlock.New(ses, "x").Lock))
		}
		redistest.Eventually(t, 5*time.Second, "the front to have asked twice", func() bool { return p.Count("EVALSHA") == 2 })
		for round := 1; round <= 5; round++ {
			p.Reset()
			must(t, s.Do(t, "PUBLISH", "redisson_rwlock:{x}", "0").Error())
			redistest.Eventually(t, 5*time.Second, "the session to look", func() bool { return p.Count("EVALSHA") >= 1 })
		}
		if got := p.Count(); got != 1 {
			t.Errorf("one message made the session send %d commands: %q", got, p.Log())
		}
		q.Reset()
		_, _, err := rwlock.New(idle, "x").Lock(ctx, rlock.Wait(2*time.Second))
		is(t, "Lock", err, rlock.ErrNotAcquired)
		// Ten floors, each up to a tenth shorter, after try, subscribe, try, and the undo.
		if got := q.Count(); got > 3+12+2 {
			t.Errorf("waiting for ten poll floors sent %d commands: %q", got, q.Log())
		}
		cancel()
		for _, c := range waiting {
			is(t, "Lock", (<-c).err, rlock.ErrNotAcquired)
		}
		must(t, h.Unlock())
		nothingLeft(t, s)
	})
}
