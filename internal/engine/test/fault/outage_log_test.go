package fault_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"relock/fairlock"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/locktrace"
	"relock/rlock"
)

const (
	renewalsFail  = "renewals fail, and are tried again"
	renewalsStill = "renewals still fail"
	renewalsOver  = "no renewal fails any more"
)

// An unrenewed is a session whose Redis can be taken away, with locks that it holds.
type unrenewed struct {
	*locktest.Journal
	holds  []*rlock.Hold
	failed atomic.Int64 // renewals that the hooks saw fail
	away   func(on bool)
	refuse func(command, errReply string)
}

const unrenewedLocks = 11

func newUnrenewed(t *testing.T, s *redistest.Server, ctx context.Context, lease time.Duration) *unrenewed {
	t.Helper()
	u := &unrenewed{Journal: new(locktest.Journal)}
	trace := &rlock.Trace{Renewed: func(e locktrace.Renewed) {
		if e.Err != nil {
			u.failed.Add(1)
		}
	}}
	ses, p := locktest.DialProxy(t, s, rlock.Config{Lease: lease, Logger: u.Logger(), Trace: trace})
	u.away, u.refuse = p.Refuse, p.RefuseCommand
	for i := range unrenewedLocks {
		_, h, err := rlock.New(ses, fmt.Sprintf("%s-%d", redistest.Name(t), i)).Lock(ctx)
		must(t, err)
		u.holds = append(u.holds, h)
	}
	return u
}

// has asserts that so many lines hold a text.
func (u *unrenewed) has(t *testing.T, text string, want int) {
	t.Helper()
	if n := u.Count(text); n != want {
		t.Errorf("%q was logged %d times, want %d: %q", text, n, want, u.Lines)
	}
}

// Locks that are not renewed are tried again many times a second. The log has a line for the
// beginning, a reminder now and then, and a line for the end.
func TestRenewalsThatFailAreLoggedAtABoundedRate(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		if !s.IsMini() {
			t.Skip("by a real clock it depends on the machine whether the locks are renewed in time")
		}
		u := newUnrenewed(t, s, context.Background(), 30*time.Second)
		u.away(true)
		redistest.Eventually(t, 60*time.Second, "a reminder", func() bool { return u.Count(renewalsStill) > 0 })
		u.away(false)
		redistest.Eventually(t, 60*time.Second, "the end is logged", func() bool { return u.Count(renewalsOver) > 0 })
		u.has(t, renewalsFail, 1)
		u.has(t, renewalsStill, 1)
		u.has(t, renewalsOver, 1)
		u.has(t, "lock lost", 0)
		if line := u.Last(renewalsStill); !strings.Contains(line, fmt.Sprintf(" locks=%d ", unrenewedLocks)) || !strings.Contains(line, "error=") {
			t.Errorf("%d locks were not renewed; logged %q", unrenewedLocks, line)
		}
		if line := u.Last(renewalsOver); !strings.Contains(line, "lost=0") {
			t.Errorf("no lock was lost; logged %q", line)
		}
		if n := u.failed.Load(); n < 2*unrenewedLocks {
			t.Errorf("the hooks saw %d renewals fail; each lock was tried several times", n)
		}
		for _, h := range u.holds {
			must(t, h.Unlock())
		}
	})
}

// Of locks that are lost each has a line, and the end says how many there were.
func TestLostLocksAreLoggedSingly(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		u := newUnrenewed(t, s, context.Background(), 3*time.Second)
		u.away(true)
		redistest.Eventually(t, 30*time.Second, "all are lost", func() bool { return u.Count("lock lost") == unrenewedLocks })
		u.has(t, renewalsFail, 1)
		redistest.Eventually(t, 10*time.Second, "the end is logged", func() bool { return u.Count(renewalsOver) == 1 })
		if line := u.Last(renewalsOver); !strings.Contains(line, fmt.Sprintf("lost=%d", unrenewedLocks)) {
			t.Errorf("%d locks were lost; logged %q", unrenewedLocks, line)
		}
	})
}

// Locks that are unlocked while Redis is away are not among those that renewals fail for.
func TestUnlockedLocksDoNotCountAsUnrenewed(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		u := newUnrenewed(t, s, context.Background(), 3*time.Second)
		u.away(true)
		redistest.Eventually(t, 30*time.Second, "a failure", func() bool { return u.Count(renewalsFail) > 0 })
		released := make(chan error, unrenewedLocks)
		for _, h := range u.holds {
			go func() { released <- h.Unlock() }()
		}
		redistest.Eventually(t, 10*time.Second, "the end is logged", func() bool { return u.Count(renewalsOver) == 1 })
		u.away(false)
		for range u.holds {
			<-released
		}
		if redistest.MadeUpClock() { // else the machine may be too busy to unlock in time
			u.has(t, "lock lost", 0)
			u.has(t, renewalsOver+`" after=`, 1)
			if line := u.Last(renewalsOver); !strings.Contains(line, "lost=0") {
				t.Errorf("no lock was lost; logged %q", line)
			}
		}
	})
}

// Nor are those whose context has ended: they are not renewed any more, and stand for a while. (While
// they are in doubt, as after a broken connection, they would still be asked about.)
func TestLocksThatWantNoRenewalDoNotCountAsUnrenewed(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		u := newUnrenewed(t, s, ctx, 6*time.Second)
		u.refuse("EVALSHA", "NOPERM this user has no permissions")
		redistest.Eventually(t, 30*time.Second, "a failure", func() bool { return u.Count(renewalsFail) > 0 })
		cancel()
		redistest.Eventually(t, 30*time.Second, "the end is logged", func() bool { return u.Count(renewalsOver) == 1 })
		if redistest.MadeUpClock() {
			u.has(t, "lock lost", 0)
		}
		redistest.Eventually(t, 30*time.Second, "all are lost", func() bool { return u.Count("lock lost") == unrenewedLocks })
	})
}

// A script that may not look at a lock has not renewed it, though Redis has answered it.
func TestRenewalsThatAreDeniedAreLogged(t *testing.T) {
	t.Parallel()
	s := redistest.Real(t)
	opt, allow := faultUser(t, s, "logrenewal")
	j := new(locktest.Journal)
	ses, err := rlock.Dial(context.Background(), opt, rlock.Config{Lease: 3 * time.Second, Logger: j.Logger()})
	must(t, err)
	defer ses.Close()
	_, h, err := rlock.New(ses, redistest.Name(t)).Lock(within(t, 30*time.Second))
	must(t, err)
	allow("-hexists")
	redistest.Eventually(t, 10*time.Second, "the failure is logged", func() bool { return j.Count(renewalsFail) > 0 })
	if line := j.Last(renewalsFail); !strings.Contains(line, "does not allow") || !strings.Contains(line, "locks=1 ") {
		t.Errorf("logged %q", line)
	}
	allow()
	redistest.Eventually(t, 10*time.Second, "the end is logged", func() bool { return j.Count(renewalsOver) > 0 })
	_ = h.Unlock() // a busy machine may have lost it
}

const (
	refusesUser = "Redis refuses this user"
	cannotServe = "Redis cannot serve"
)

// A Lock does not wait for what its user is not allowed, so the log does not say that it does.
func TestADeniedLockIsNotLoggedAsAnOutage(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		const each = 5
		j := new(locktest.Journal)
		ses, p := locktest.DialProxy(t, s, rlock.Config{Logger: j.Logger()})
		ctx, name := within(t, 60*time.Second), redistest.Name(t)
		began := time.Now()
		for _, text := range []string{"NOPERM this user has no permissions", "NOAUTH Authentication required.", "WRONGPASS invalid username-password pair"} {
			p.RefuseCommand("EVALSHA", text)
			for range each {
				_, _, err := rlock.New(ses, name).Lock(ctx)
				locktest.Is(t, text, err, rlock.ErrUnavailable)
				_, _, err = fairlock.New(ses, name+"-fair").Lock(ctx)
				locktest.Is(t, text+", fairlock", err, rlock.ErrUnavailable)
			}
			p.RefuseCommand("EVALSHA", "")
			_, h, err := rlock.New(ses, name).Lock(ctx)
			must(t, err)
			must(t, h.Unlock())
		}
		redistest.Eventually(t, 5*time.Second, "the refusal is logged", func() bool { return j.Count(refusesUser) > 0 })
		if n := j.Count(refusesUser); n > 1+int(time.Since(began)/(10*time.Second)) {
			t.Errorf("it was logged %d times in %v", n, time.Since(began))
		}
		if line := j.Last(refusesUser); redistest.MadeUpClock() && !strings.Contains(line, "NOPERM") {
			t.Errorf("the first was NOPERM; logged %q", line)
		}
		if redistest.MadeUpClock() {
			time.Sleep(10 * time.Second)
			p.RefuseCommand("EVALSHA", "NOAUTH Authentication required.")
			_, _, err := rlock.New(ses, name).Lock(ctx)
			locktest.Is(t, "later", err, rlock.ErrUnavailable)
			p.RefuseCommand("EVALSHA", "")
			redistest.Eventually(t, 5*time.Second, "it is logged again", func() bool { return j.Count(refusesUser) == 2 })
			if line := j.Last(refusesUser); !strings.Contains(line, fmt.Sprintf("refused=%d ", 2*3*each)) || !strings.Contains(line, "NOAUTH") {
				t.Errorf("%d Locks were refused since; logged %q", 2*3*each, line)
			}
		}
		if j.Count(cannotServe)+j.Count("serves again") > 0 {
			t.Errorf("there was no outage; logged %q", j.Lines)
		}
	})
}

// A Lock that waits in an outage, and is refused then, ends with that. The outage is over with the
// next answer.
func TestAnOutageThatEndsWithARefusal(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		j := new(locktest.Journal)
		ses, p := locktest.DialProxy(t, s, rlock.Config{Logger: j.Logger()})
		ctx, m := within(t, 60*time.Second), rlock.New(ses, redistest.Name(t))
		p.RefuseCommand("EVALSHA", "OOM command not allowed when used memory > 'maxmemory'.")
		waiting := locktest.GoLock(m, ctx)
		redistest.Eventually(t, 10*time.Second, "the outage is logged", func() bool { return j.Count(cannotServe) == 1 })
		p.RefuseCommand("EVALSHA", "NOPERM this user has no permissions")
		locktest.Is(t, "Lock", locktest.Get(t, waiting, 10*time.Second, "Lock").Err, rlock.ErrUnavailable)
		redistest.Eventually(t, 10*time.Second, "the refusal is logged", func() bool { return j.Count(refusesUser) == 1 })
		p.RefuseCommand("EVALSHA", "")
		_, h, err := m.Lock(ctx)
		must(t, err)
		must(t, h.Unlock())
		redistest.Eventually(t, 10*time.Second, "the end is logged", func() bool { return j.Count("serves again") == 1 })
		if j.Count(cannotServe) != 1 || j.Count(refusesUser) != 1 {
			t.Errorf("logged %q", j.Lines)
		}
	})
}

// What a real server says to a user that lost a permission, and to one whose password has changed
// when a connection is made anew.
func TestARealRefusalIsNotLoggedAsAnOutage(t *testing.T) {
	t.Parallel()
	s := redistest.Real(t)
	for what, rules := range map[string][]string{"NOPERM": {"-eval", "-evalsha"}, "WRONGPASS": {"resetpass", ">other"}} {
		user := "log" + strings.ToLower(what)
		must(t, s.Do(t, "ACL", "SETUSER", user, "on", ">secret", "~*", "&*", "+@all").Error())
		opt, j := s.Option(), new(locktest.Journal)
		opt.Username, opt.Password = user, "secret"
		// Close may have a release to send, which is refused for as long as it is bounded.
		ses, err := rlock.Dial(context.Background(), opt, rlock.Config{Logger: j.Logger(), ReleaseTimeout: time.Second})
		must(t, err)
		defer ses.Close()
		must(t, s.Do(t, append([]string{"ACL", "SETUSER", user}, rules...)...).Error())
		must(t, s.Do(t, "CLIENT", "KILL", "USER", user).Error())
		ctx, m := within(t, 20*time.Second), rlock.New(ses, redistest.Name(t)+strings.ToLower(what))
		redistest.Eventually(t, 10*time.Second, what, func() bool {
			_, h, err := m.Lock(ctx)
			if err == nil { // by a connection that was not yet killed
				must(t, h.Unlock())
			}
			return err != nil && errors.Is(err, rlock.ErrUnavailable) && strings.Contains(err.Error(), what)
		})
		redistest.Eventually(t, 10*time.Second, "the refusal is logged", func() bool { return j.Count(refusesUser) == 1 })
		// The connections that were killed may have been an outage, of another error.
		if line := j.Last(cannotServe); strings.Contains(line, what) {
			t.Errorf("a refusal is no outage; logged %q", line)
		}
	}
}
