package semaphore_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"relock/internal/engine"
	"relock/internal/test/faulttest"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/semaphore"
)

// narrowed makes a session of a user who may do everything, until allow is called with rules that say
// otherwise. Its traffic goes through a proxy.
func narrowed(t *testing.T, s *redistest.Server) (ses *rlock.Session, p *faulttest.Proxy, allow func(rules ...string)) {
	t.Helper()
	allow = func(rules ...string) {
		t.Helper()
		must(t, s.Do(t, append([]string{"ACL", "SETUSER", "u", "on", ">secret", "~*", "&*", "+@all"}, rules...)...).Error())
	}
	allow()
	p, opt := faulttest.Of(t, s.Option())
	opt.Username, opt.Password = "u", "secret"
	ses, err := rlock.Dial(within(t, time.Minute), opt, rlock.Config{})
	must(t, err)
	t.Cleanup(func() { _ = ses.Close() })
	return ses, p, allow
}

// An ACL that is narrowed while a session runs forbids a command in the middle of what changes a
// counter: an operation that fails has changed nothing, and leaves nothing without an end.
func TestAUserWhoMayNotChangesNoCounter(t *testing.T) {
	redistest.SkipShort(t) // what was given up is ended later
	t.Parallel()
	s := redistest.Real(t)
	ses, _, allow := narrowed(t, s)
	ctx := within(t, time.Minute)
	for what, op := range counterChanges(ctx) {
		for _, forbidden := range [][]string{
			{"-hset"}, {"-pexpire"}, {"-incrby"}, {"-decrby"}, {"-del"}, {"-set"}, {"-hdel"},
			{"-incrby", "-decrby", "-hdel", "-del"},
			nil, // and so behind an earlier request of the session
		} {
			name := what + strings.Join(forbidden, "")
			var opts []semaphore.Option
			if what == "with an end" || what == "take for now" {
				opts = append(opts, semaphore.Expire(time.Hour))
			}
			must(t, s.Do(t, "SET", name, "5").Error())
			c := semaphore.NewCounter(ses, name, opts...)
			if forbidden == nil {
				must(t, c.TryAcquire(ctx, 4))
				must(t, c.Release(ctx, 4))
				forbidden = []string{"-incrby", "-decrby", "-del"}
			}
			allow(forbidden...)
			err := op.run(c)
			allow()
			want := op.then
			if err != nil {
				locktest.Is(t, name, err, rlock.ErrUnavailable)
				want = "5"
			}
			isLeft(t, s, ses, name, want)
			s.FlushAll(t)
		}
	}
}

// A counterChange is an operation that changes a counter, or may.
type counterChange struct {
	run  func(c *semaphore.Counter) error
	then string // the value of a counter that had 5
}

func counterChanges(ctx context.Context) map[string]counterChange {
	return map[string]counterChange{
		"acquire":      {func(c *semaphore.Counter) error { return c.Acquire(context.Background(), 2) }, "3"},
		"try acquire":  {func(c *semaphore.Counter) error { return c.TryAcquire(ctx, 2) }, "3"},
		"release":      {func(c *semaphore.Counter) error { return c.Release(ctx, 2) }, "7"},
		"add below 0":  {func(c *semaphore.Counter) error { return c.Add(ctx, -2) }, "3"},
		"drain":        {func(c *semaphore.Counter) error { _, err := c.Drain(ctx); return err }, "0"},
		"delete":       {func(c *semaphore.Counter) error { return c.Delete(ctx) }, ""},
		"try set, no":  {func(c *semaphore.Counter) error { _, err := c.TrySet(ctx, 9); return err }, "5"},
		"with an end":  {func(c *semaphore.Counter) error { return c.Release(ctx, 2) }, "7"},
		"take for now": {func(c *semaphore.Counter) error { return c.TryAcquire(ctx, 2) }, "3"},
	}
}

// isLeft: when the session has ended what was given up, the counter has the value, and all other keys have an end.
func isLeft(t *testing.T, s *redistest.Server, ses *rlock.Session, name, value string) {
	t.Helper()
	redistest.Eventually(t, 10*time.Second, name+": what was given up is ended", func() bool {
		return (*engine.Session)(ses).Counts().Cleaning == 0
	})
	if got, _ := s.Do(t, "GET", name).ToString(); got != value {
		t.Errorf("%s: the value is %q, want %q", name, got, value)
	}
	redistest.Eventually(t, 10*time.Second, name+": all else has an end", func() bool {
		for _, key := range s.Keys(t) {
			if ttl, err := s.Do(t, "PTTL", key).AsInt64(); err == nil && key != name && ttl == -1 {
				return false
			}
		}
		return true
	})
}

// A caller goes away before it hears that it was granted permits: they are given back, though Redis does
// not allow that at first.
func TestPermitsOfACallerThatIsGoneComeBackWhenTheyMay(t *testing.T) {
	t.Parallel()
	s := redistest.Real(t)
	ses, p, allow := narrowed(t, s)
	c := semaphore.NewCounter(ses, "x")
	for _, forbidden := range []string{"decrby", "hset", "incrby", "publish"} {
		must(t, s.Do(t, "SET", "x", "5").Error())
		ctx, cancel := context.WithCancel(within(t, time.Minute))
		seen, release := p.HoldReply(locktest.Runs(src["take"]))
		taken := make(chan error, 1)
		go func() { taken <- c.Acquire(ctx, 2) }()
		locktest.Get(t, seen, 10*time.Second, "the answer")
		allow("-" + forbidden)
		cancel()
		locktest.Is(t, "Acquire", locktest.Get(t, taken, 10*time.Second, "Acquire"), context.Canceled)
		release()
		if forbidden != "incrby" { // who could take needs no more to give back
			redistest.Eventually(t, 10*time.Second, "it was tried twice", func() bool { return locktest.Sent(p, locktest.Runs(src["untake"])) > 1 })
			allow()
		}
		redistest.Eventually(t, 10*time.Second, "the permits", func() bool {
			got, _ := s.Do(t, "GET", "x").ToString()
			return got == "5"
		})
		allow()
		p.Reset()
	}
}
