package rwlock_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/rwlock"
)

// The lock is deleted, flushed, or runs out under readers and writers: their sections end
// with ErrLost within a renewal interval, and so do their Unlocks (R1).
func TestLostLockEndsItsHolds(t *testing.T) {
	const foreign = "redis.call('DEL', KEYS[1]) redis.call('HSET', KEYS[1], 'mode', 'write', 'you:write', 1) return 1"
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		var all []lostHold
		for what, cmd := range map[string]func(x string) []string{
			"deleted":                         func(x string) []string { return []string{"DEL", x} },
			"expired":                         func(x string) []string { return []string{"PEXPIRE", x, "1"} },
			"another type":                    func(x string) []string { return []string{"SET", x, "y"} },
			"the write lock of somebody else": func(x string) []string { return []string{"EVAL", foreign, "1", x} },
		} {
			for _, l := range holdEachWay(t, s, what) {
				must(t, s.Do(t, cmd(l.name)...).Error())
				all = append(all, l)
			}
		}
		noticed(t, s, all)
		all = holdEachWay(t, s, "flushed")
		s.FlushAll(t)
		noticed(t, s, all)
	})
}

// A lostHold is a hold whose lock is gone.
type lostHold struct {
	name    string
	ses     *rlock.Session
	section context.Context
	hold    *rlock.Hold
}

func lostLease(s *redistest.Server) time.Duration { return s.Slowed(900 * time.Millisecond) }

// holdEachWay takes a lock on each side, with a lease that is renewed and with a long one that is
// not, each by a session of its own.
func holdEachWay(t *testing.T, s *redistest.Server, what string) (all []lostHold) {
	t.Helper()
	ctx := within(t, 2*time.Minute)
	for _, opts := range [][]rlock.LockOption{nil, {rlock.Lease(time.Minute)}} {
		for _, side := range []string{"read", "write"} {
			l := lostHold{name: fmt.Sprint(what, ", ", side, ", ", len(opts))}
			l.ses = dial(t, s, rlock.Config{Lease: lostLease(s)})
			m := rwlock.New(l.ses, l.name)
			lock := m.RLock
			if side == "write" {
				lock = m.Lock
			}
			l.section, l.hold = hold(t, ctx, lock, opts...)
			all = append(all, l)
		}
	}
	return all
}

// noticed checks that sections which were lost together end within a renewal interval.
func noticed(t *testing.T, s *redistest.Server, all []lostHold) {
	t.Helper()
	until := time.Now().Add(lostLease(s)/3 + s.Slack())
	for _, l := range all {
		ends(t, l.section, time.Until(until), rlock.ErrLost)
	}
	for _, l := range all {
		is(t, "Unlock", l.hold.Unlock(), rlock.ErrLost)
		must(t, l.ses.Close())
	}
}

// The lock is lost, and before that is noticed its owner takes a nested hold that Redis must
// count: that is ErrLost, and not a plain read hold in a section that believes it may write.
func TestReadUnderALostWriteIsLost(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		m := rwlock.New(dial(t, s, slow), "x")
		ctx := within(t, 30*time.Second)
		named := rlock.WithOwner(ctx, "me") // nested readers of a private owner are counted in memory
		for _, second := range []struct {
			what        string
			ctx         context.Context
			outer, then lockFunc
		}{
			{"read under write", ctx, m.Lock, m.RLock}, {"write under write", ctx, m.Lock, m.Lock},
			{"read under read", named, m.RLock, m.RLock}, {"upgrade of a lost read", named, m.RLock, m.Lock},
		} {
			section, h := hold(t, second.ctx, second.outer)
			must(t, s.Do(t, "DEL", "x").Error())
			_, _, err := second.then(section)
			is(t, second.what, err, rlock.ErrLost)
			ends(t, section, s.Slack(), rlock.ErrLost)
			is(t, second.what+", Unlock", h.Unlock(), rlock.ErrLost)
			if got := s.Do(t, "EXISTS", "x"); true {
				if n, _ := got.AsInt64(); n != 0 {
					t.Errorf("%s: something is held", second.what)
				}
			}
			s.FlushAll(t)
		}
	})
}

// Each reader has its own lease: a long one is not cut by a short one that goes, and a
// short one that is not unlocked keeps a writer out no longer than itself (R22, R24).
func TestReadersHaveLeasesOfTheirOwn(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		a, b, w := rwlock.New(dial(t, s, slow), "x"), rwlock.New(dial(t, s, slow), "x"), rwlock.New(dial(t, s, slow), "x")
		ctx, second := within(t, 60*time.Second), s.Slowed(time.Second)
		_, long := hold(t, ctx, a.RLock, rlock.Lease(time.Minute))
		shortSection, short := hold(t, ctx, b.RLock, rlock.Lease(second))
		_, third := hold(t, ctx, b.RLock, rlock.Lease(5*second))
		must(t, third.Unlock())
		if got := pttl(t, s, "x"); got < 55*time.Second {
			t.Errorf("the lock lives for %v; a reader has a lease of a minute", got)
		}
		must(t, long.Unlock())
		if got := pttl(t, s, "x"); got > second+rounding {
			t.Errorf("the lock lives for %v; the last reader's lease is %v", got, second)
		}
		stalls, begin := locktest.WatchStalls(t), time.Now()
		writer := in(t, goLock(ctx, w.Lock), 20*time.Second, "the writer, when the short lease is over")
		if took := time.Since(begin); took > second+s.Slack() {
			t.Errorf("the writer waited %v for a lease of %v", took, second)
		}
		if shortSection.Err() == nil && stalls.Longest() < second/100 {
			t.Error("the writer is in, and the reader's section has not ended")
		}
		is(t, "Unlock", short.Unlock(), rlock.ErrLost)
		if field(t, s, "x", writer.hold.Owner()+":write") != "1" {
			t.Error("the late reader's Unlock touched the writer")
		}
		must(t, writer.hold.Unlock())
		nothingLeft(t, s)
	})
}

// Extend moves a reader's own end, and unlocking a nested hold never lengthens a lease.
func TestExtendAndInnerUnlock(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		m := rwlock.New(dial(t, s, slow), "x")
		ctx, second := within(t, time.Minute), s.Slowed(time.Second) // nothing waits for a lease: it may be long
		for _, lock := range []lockFunc{m.RLock, m.Lock} {
			section, h := hold(t, ctx, lock, rlock.Lease(5*second))
			_, inner := hold(t, section, m.RLock, rlock.Lease(60*second))
			between := func(what string, from, to time.Duration) {
				t.Helper()
				if got := pttl(t, s, "x"); got < from || got > to+rounding {
					t.Errorf("%s: the lock lives for %v, want %v to %v", what, got, from, to)
				}
			}
			between("a longer inner hold", 55*second, 60*second)
			must(t, inner.Extend(ctx, 120*second))
			between("extended", 110*second, 120*second)
			st, err := m.State(ctx)
			must(t, err)
			must(t, inner.Unlock())
			if st.Mode == "read" {
				between("the inner one unlocked", 3*second, 5*second)
			}
			must(t, h.Extend(ctx, 20*second))
			between("the outer one extended", 19*second, 120*second)
			must(t, h.Extend(ctx, 3*second))
			between("and shortened", 2*second, 3*second)
			must(t, h.Unlock())
			nothingLeft(t, s)
		}
	})
}

// renewedLease is short enough for several to pass in a test, and long enough for a busy
// machine to renew it in time.
func renewedLease(s *redistest.Server) time.Duration { return s.Slowed(1500 * time.Millisecond) }

// staysRenewed watches a section for a lease, and until the end of the lock x has been moved away
// in Redis three times, on a made-up clock six times; try must be refused for so long.
func staysRenewed(t testing.TB, s *redistest.Server, ctx, section context.Context, x string, try lockFunc, what string) {
	t.Helper()
	moves := 3
	if redistest.MadeUpClock() {
		moves = 6
	}
	began, moved, before := time.Now(), 0, pttl(t, s, x)
	for ; moved < moves || time.Since(began) < renewedLease(s); time.Sleep(renewedLease(s) / 50) {
		refused(t, ctx, try, what)
		now := pttl(t, s, x)
		if now > before {
			moved++
		}
		before = now
	}
	if section.Err() != nil {
		t.Errorf("%s: lost: %v", what, context.Cause(section))
	}
}

// A renewed read hold outlives its lease many times over; and when its lease is gone and it
// is taken anew it is renewed again (R10).
func TestRenewalOfAReader(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		m, other := rwlock.New(dial(t, s, rlock.Config{Lease: renewedLease(s)}), "x"), rwlock.New(dial(t, s, slow), "x")
		ctx := within(t, 2*time.Minute)
		for range 2 {
			section, r := hold(t, ctx, m.RLock)
			staysRenewed(t, s, ctx, section, "x", other.TryLock, "read")
			must(t, s.Do(t, "DEL", "x").Error())
			ends(t, section, renewedLease(s)+s.Slack(), rlock.ErrLost)
			is(t, "Unlock", r.Unlock(), rlock.ErrLost)
		}
		nothingLeft(t, s)
	})
}

// So does a write hold, one on both sides, and what a downgrade leaves of it (R10).
func TestRenewalOfAWriter(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		here, there := dial(t, s, rlock.Config{Lease: renewedLease(s)}), dial(t, s, slow)
		ctx := within(t, 2*time.Minute)
		locktest.Together(t, []string{"write", "both", "downgraded"}, func(x string) {
			m, other := rwlock.New(here, x), rwlock.New(there, x)
			section, w := hold(t, ctx, m.Lock)
			if x == "write" {
				staysRenewed(t, s, ctx, section, x, other.TryRLock, x)
				must(t, w.Unlock())
				return
			}
			_, r := hold(t, section, m.RLock)
			if x == "both" {
				staysRenewed(t, s, ctx, section, x, other.TryRLock, x)
			}
			must(t, w.Unlock())
			if x == "downgraded" {
				staysRenewed(t, s, ctx, section, x, other.TryLock, x)
			}
			must(t, r.Unlock())
		})
		nothingLeft(t, s)
	})
}
