package semaphore_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/semaphore"
)

// Whatever becomes of the keys, the section ends within one renewal interval (R1).
func TestFaultLostPermitsEndTheSection(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ses := dial(t, s, rlock.Config{Lease: s.Slowed(3 * time.Second)})
		var all []lostPermits
		for what, lose := range map[string]func(l lostPermits) []string{
			"deleted":               func(l lostPermits) []string { return []string{"DEL", l.name, zset(l.name)} },
			"counter deleted":       func(l lostPermits) []string { return []string{"DEL", l.name} },
			"permits deleted":       func(l lostPermits) []string { return []string{"DEL", zset(l.name)} },
			"expired":               func(l lostPermits) []string { return []string{"PEXPIRE", l.name, "1"} },
			"another type":          func(l lostPermits) []string { return []string{"RENAME", "other", zset(l.name)} },
			"a permit taken out":    func(l lostPermits) []string { return []string{"ZREM", zset(l.name), raw(l.p)[1]} },
			"a permit that is over": func(l lostPermits) []string { return []string{"ZADD", zset(l.name), "5", raw(l.p)[0]} },
		} {
			must(t, s.Do(t, "LPUSH", "other", "1").Error())
			l := holdPermits(t, ses, what)
			cmd := lose(l)
			l.all = cmd[0] == "DEL"
			must(t, s.Do(t, cmd...).Error())
			all = append(all, l)
		}
		noticed(t, s, all...)
		s.FlushAll(t)
		l := holdPermits(t, ses, "flushed")
		l.all = true
		s.FlushAll(t)
		noticed(t, s, l)
		all = append(all, l)
		s.FlushAll(t)
		for _, l := range all { // and it works again
			must(t, l.m.Do(within(t, 20*time.Second), 3, func(section context.Context) error { return section.Err() }))
		}
	})
}

// lostPermits are permits that have been taken away, some with a lease that is renewed and one
// with a long one that is not.
type lostPermits struct {
	name           string
	m              *semaphore.Semaphore
	section, fixed context.Context
	p, q           *semaphore.Permits
	all            bool // the one with the fixed lease too
}

func holdPermits(t *testing.T, ses *rlock.Session, name string) (l lostPermits) {
	t.Helper()
	ctx := within(t, time.Minute)
	l.name, l.m = name, semaphore.New(ses, name, 3)
	var err error
	l.section, l.p, err = l.m.Acquire(ctx, 2)
	must(t, err)
	l.fixed, l.q, err = l.m.Acquire(ctx, 1, rlock.Lease(time.Minute))
	must(t, err)
	return l
}

// noticed checks that the sections, which were lost together, end within a renewal interval.
func noticed(t *testing.T, s *redistest.Server, lost ...lostPermits) {
	t.Helper()
	until := time.Now().Add(s.Slowed(time.Second) + s.Slack())
	for _, l := range lost {
		locktest.Ends(t, l.section, time.Until(until), rlock.ErrLost)
		if l.all {
			locktest.Ends(t, l.fixed, time.Until(until), rlock.ErrLost)
		}
	}
	for _, l := range lost {
		is(t, l.name+": Release", l.p.Release(), rlock.ErrLost)
		if l.all {
			is(t, l.name+": Release of a fixed lease", l.q.Release(), rlock.ErrLost)
		}
	}
}

// What is left of permits that were lost is released by Close if they have not been unlocked by then.
func TestCloseReleasesWhatIsLeftOfLostPermits(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ses := dial(t, s, rlock.Config{Lease: s.Slowed(3 * time.Second)})
		m := semaphore.New(ses, "x", 3)
		section, p, err := m.Acquire(within(t, time.Minute), 2)
		must(t, err)
		must(t, s.Do(t, "ZREM", zset("x"), raw(p)[1]).Error())
		locktest.Ends(t, section, s.Slowed(time.Second)+s.Slack(), rlock.ErrLost)
		if left := taken(t, s, "x"); left != 1 {
			t.Fatalf("%d permits stand, want 1", left)
		}
		must(t, ses.Close())
		if left := taken(t, s, "x"); left != 0 {
			t.Errorf("%d permits stand after Close", left)
		}
		is(t, "Release", p.Release(), rlock.ErrLost)
	})
}

// With the network cut the section ends by the clock, before Redis gives the permits to
// anybody else (R1).
func TestFaultCutNetworkEndsTheSectionBeforeAnotherGetsIn(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		lease, stalls := s.Slowed(2*time.Second), locktest.WatchStalls(t)
		locktest.Together(t, [][]rlock.LockOption{nil, {rlock.Lease(lease)}}, func(opts []rlock.LockOption) {
			ses, p := locktest.DialProxy(t, s, rlock.Config{Lease: lease, ReleaseTimeout: 300 * time.Millisecond})
			ctx := within(t, 60*time.Second)
			name := fmt.Sprint("x", len(opts))
			section, held, err := semaphore.New(ses, name, 3).Acquire(ctx, 2, opts...)
			must(t, err)
			next := acquire(ctx, semaphore.New(dial(t, s, rlock.Config{}), name, 3), 2)
			if opts == nil {
				redistest.Eventually(t, lease, "a renewal", func() bool {
					return locktest.Sent(p, locktest.Runs(src["renew"])) >= 1
				})
			}
			p.BlackHole(true)
			g := locktest.Get(t, next, lease+20*time.Second, "the other's permits")
			if section.Err() == nil && stalls.Longest() < lease/100 {
				t.Error("another has the permits while the section goes on")
			}
			must(t, g.err)
			locktest.Ends(t, section, s.Slack(), rlock.ErrLost)
			is(t, "Release", held.Release(), rlock.ErrLost)
			p.BlackHole(false)
			// What was on its way, and the loser's own clean-up, touch nobody else.
			select {
			case <-g.section.Done():
				t.Errorf("the other's section ended: %v", context.Cause(g.section))
			case <-time.After(700 * time.Millisecond):
			}
			if n := taken(t, s, name); n != 2 {
				t.Errorf("%d are taken", n)
			}
			must(t, g.p.Release())
			if free := value(t, s, name); free != "3" {
				t.Errorf("%s are free", free)
			}
		})
	})
}
