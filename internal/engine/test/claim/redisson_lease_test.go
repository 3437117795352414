package claim_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"relock/fairlock"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/locktrace"
	"relock/rlock"
	"relock/rwlock"
)

// A joinedMutex is what the kinds of lock have in common that Redisson's threads and we may hold
// together, under one owner.
type joinedMutex interface {
	Lock(context.Context, ...rlock.LockOption) (context.Context, *rlock.Hold, error)
	TryLock(context.Context, ...rlock.LockOption) (context.Context, *rlock.Hold, error)
}

var joinedKinds = map[string]func(*rlock.Session, string) joinedMutex{
	"plain":  func(s *rlock.Session, name string) joinedMutex { return rlock.New(s, name) },
	"fenced": func(s *rlock.Session, name string) joinedMutex { return rlock.New(s, name, rlock.Fenced()) },
	"fair":   func(s *rlock.Session, name string) joinedMutex { return fairlock.New(s, name) },
	"write":  func(s *rlock.Session, name string) joinedMutex { return rwlock.New(s, name) },
}

// A joined is a lock that a Java thread and we hold.
type joined struct {
	name, field string
	of          func(*rlock.Session, string) joinedMutex
	section     context.Context
	hold        *rlock.Hold
}

// javaThread is the owner of both.
const javaThread = "8743c9c0-0795-4907-87fd-6c719a6b4586:38"

// join holds locks of each kind, in each of the ways in which a hold can be longer than
// Redisson's watchdog, together with a Java thread.
func join(t *testing.T, ctx context.Context, s *redistest.Server, ses *rlock.Session) (all []joined) {
	t.Helper()
	me := rlock.WithOwner(ctx, javaThread)
	for kind, of := range joinedKinds {
		for how, opts := range map[string][]rlock.LockOption{
			"renewed": nil, "fixed": {rlock.Lease(time.Hour)}, "extended": {rlock.Lease(time.Minute)},
		} {
			j := joined{name: kind + "-" + how, field: javaThread, of: of}
			var err error
			j.section, j.hold, err = of(ses, j.name).Lock(me, opts...)
			must(t, err)
			if how == "extended" {
				must(t, j.hold.Extend(ctx, time.Hour))
			}
			if kind == "write" {
				j.field += ":write"
			}
			must(t, s.Do(t, "HINCRBY", j.name, j.field, "1").Error())
			all = append(all, j)
		}
	}
	return all
}

// javaUnlocks does what Redisson does when an owner unlocks that goes on holding: in one step, and
// nothing if the lock is gone, which without renewals it may be before a busy machine gets here.
func (j joined) javaUnlocks(t *testing.T, s *redistest.Server, watchdog time.Duration) {
	t.Helper()
	const unlock = "if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 1 then " +
		"redis.call('HINCRBY', KEYS[1], ARGV[1], -1) redis.call('PEXPIRE', KEYS[1], ARGV[2]) end return 1"
	must(t, s.Do(t, "EVAL", unlock, "1", j.name, j.field, fmt.Sprint(watchdog.Milliseconds())).Error())
}

// What Redisson leaves of a lease is renewed in time, also under holds that ask for much longer
// ones.
func TestHoldsOutliveRedissonsUnlock(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		watchdog := s.Slowed(time.Second)
		ses := dial(t, s, rlock.Config{Lease: time.Minute, RedissonWatchdog: watchdog})
		others := dial(t, s, rlock.Config{PollFloor: 100 * time.Millisecond})
		ctx := within(t, 80*time.Second)
		all := join(t, ctx, s, ses)
		for _, j := range all {
			j.javaUnlocks(t, s, watchdog)
			if left := j.hold.Remaining(); left > watchdog {
				t.Errorf("%s: %v are trusted, of which Redisson has left %v", j.name, left, watchdog)
			}
		}
		time.Sleep(3 * watchdog) // what is to be seen is that nothing happens
		for _, j := range all {
			if err := context.Cause(j.section); err != nil {
				t.Errorf("%s: the section has ended: %v", j.name, err)
			}
			_, _, err := j.of(others, j.name).TryLock(ctx)
			locktest.Is(t, j.name+": another owner's TryLock", err, rlock.ErrNotAcquired)
			must(t, j.hold.Unlock())
			_, h, err := j.of(others, j.name).Lock(ctx)
			must(t, err)
			must(t, h.Unlock())
		}
	})
}

// A session that cannot renew what Redisson has left ends its sections before another owner is in.
func TestSectionsEndBeforeRedissonsLeaseDoes(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		watchdog := s.Slowed(4 * time.Second)
		ses, proxy := locktest.DialProxy(t, s, rlock.Config{Lease: time.Minute, RedissonWatchdog: watchdog})
		others := dial(t, s, rlock.Config{PollFloor: 100 * time.Millisecond})
		ctx := within(t, 80*time.Second)
		all := join(t, ctx, s, ses)
		proxy.BlackHole(true)
		for _, j := range all {
			j.javaUnlocks(t, s, watchdog)
		}
		for _, j := range all {
			_, h, err := j.of(others, j.name).Lock(ctx)
			must(t, err)
			locktest.Is(t, j.name+": another owner is in, and the section's cause", context.Cause(j.section), rlock.ErrLost)
			must(t, h.Unlock())
		}
	})
}

// A fixed lease that has to be renewed, because Redisson has cut it off, ends when it was to end.
func TestFixedLeaseEndsInTimeAfterRedissonsUnlock(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		watchdog := s.Slowed(time.Second)
		lease := watchdog * 5 / 2
		ses, others := dial(t, s, rlock.Config{RedissonWatchdog: watchdog}), dial(t, s, rlock.Config{PollFloor: 10 * time.Millisecond})
		ctx := within(t, 80*time.Second)
		locktest.Together(t, slices.Collect(maps.Keys(joinedKinds)), func(kind string) {
			of := joinedKinds[kind]
			j := joined{name: kind, field: javaThread, of: of}
			if kind == "write" {
				j.field += ":write"
			}
			asked := time.Now()
			section, h, err := of(ses, j.name).Lock(rlock.WithOwner(ctx, javaThread), rlock.Lease(lease))
			must(t, err)
			taken := time.Now()
			must(t, s.Do(t, "HINCRBY", j.name, j.field, "1").Error())
			j.javaUnlocks(t, s, watchdog)
			<-section.Done()
			if d := time.Since(asked); d < lease*9/10 {
				t.Errorf("%s: the section has ended after %v of %v: %v", kind, d, lease, context.Cause(section))
			}
			_, other, err := of(others, j.name).Lock(ctx)
			must(t, err)
			if d := time.Since(taken); d > lease+s.Slack() {
				t.Errorf("%s: the lock has stood for %v, with a lease of %v", kind, d, lease)
			}
			must(t, other.Unlock())
			locktest.Is(t, "Unlock", h.Unlock(), rlock.ErrLost)
		})
	})
}

// A release that is not answered is tried for as long as the lock may stand, which is longer than
// what is trusted of a fixed lease.
func TestReleaseOfAFixedLeaseIsTriedUpToItsEnd(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		const lease = 200 * time.Millisecond
		ses, proxy := locktest.DialProxy(t, s, rlock.Config{Lease: lease, RedissonWatchdog: lease, ReleaseTimeout: lease})
		ctx := within(t, 80*time.Second)
		_, h, err := rlock.New(ses, "x").Lock(rlock.WithOwner(ctx, javaThread), rlock.Lease(time.Hour))
		must(t, err)
		proxy.Refuse(true)
		proxy.Cut()
		if err := h.Unlock(); err == nil {
			t.Fatal("Unlock has no error although Redis is out of reach")
		}
		time.Sleep(2*time.Second + 3*lease) // longer than what was trusted, and a second
		proxy.Refuse(false)
		redistest.Eventually(t, 10*time.Second, "the lock is free", func() bool { return locktest.Free(t, s, "x") })
	})
}

// Redisson's watchdog does not concern owners of our own making.
func TestPrivateOwnersAreTrustedForTheirLease(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		var renewals atomic.Int32
		ses := dial(t, s, rlock.Config{
			Lease: 30 * time.Second, RedissonWatchdog: 100 * time.Millisecond,
			Trace: &rlock.Trace{Renewed: func(locktrace.Renewed) { renewals.Add(1) }},
		})
		_, h, err := rlock.New(ses, "x").Lock(within(t, 20*time.Second))
		must(t, err)
		if left := h.Remaining(); left < 20*time.Second {
			t.Errorf("%v are trusted of a lease of 30 s", left)
		}
		time.Sleep(600 * time.Millisecond)
		must(t, h.Unlock())
		must(t, ses.Close())
		if n := renewals.Load(); n > 0 {
			t.Errorf("%d renewals within 600 ms", n)
		}
	})
}
