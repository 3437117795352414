package semaphore_test

import (
	"context"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/semaphore"
)

// The ACL that docs/operations.md gives is enough to run everything of this package (R29).
func TestDocumentedACLIsEnough(t *testing.T) {
	s := redistest.Real(t)
	must(t, s.Do(t, redistest.DocumentedACL(t)...).Error())
	must(t, s.Do(t, "ACL", "LOG", "RESET").Error())
	opt := s.Option()
	opt.Username, opt.Password = "locks", "secret"
	ses, err := rlock.Dial(within(t, 20*time.Second), opt, rlock.Config{Prefix: "app:", PollFloor: time.Minute})
	must(t, err)
	oddName(t, ses, "x")
	must(t, ses.Close())
	log, err := s.Do(t, "ACL", "LOG").ToArray()
	must(t, err)
	for _, entry := range log {
		t.Errorf("refused: %v", entry.String())
	}
}

// A user who may do only a part of what an acquisition or a release needs gets an error, and takes no
// permit out of the semaphore for good: each of its attempts would leave less for all others.
func TestAUserWhoMayNotLosesNoPermits(t *testing.T) {
	t.Parallel()
	s := redistest.Real(t)
	allow := func(rules ...string) {
		t.Helper()
		must(t, s.Do(t, append([]string{"ACL", "SETUSER", "u", "on", ">secret", "~*", "&*", "+@all"}, rules...)...).Error())
	}
	allow()
	opt := s.Option()
	opt.Username, opt.Password = "u", "secret"
	ctx := within(t, 30*time.Second)
	ses, err := rlock.Dial(ctx, opt, rlock.Config{Lease: time.Hour})
	must(t, err)
	defer ses.Close()
	other := locktest.Dial(t, s, rlock.Config{})
	for what, expiry := range map[string]string{"others taken": inf, "others expired": "5"} {
		for _, command := range []string{"zadd", "incrby"} {
			name := what + command
			m, theirs := semaphore.New(ses, name, 3), semaphore.New(other, name, 3)
			must(t, s.Do(t, "SET", name, "2").Error())
			must(t, s.Do(t, "ZADD", "{"+name+"}:timeout", expiry, "other").Error())
			var held *semaphore.Permits
			if command == "incrby" {
				_, held, err = m.Acquire(ctx, 2)
				must(t, err)
			}
			allow("-" + command)
			if held != nil {
				err = held.Release()
			} else {
				_, _, err = m.Acquire(context.Background(), 2)
			}
			locktest.Is(t, name, err, rlock.ErrUnavailable)
			allow()
			free, err := theirs.Available(ctx)
			limit, _ := theirs.Limit(ctx)
			if want := map[bool]int{true: 3, false: 2}[expiry == "5"]; free != want || limit != 3 || err != nil {
				t.Errorf("%s: %d of %d permits are free, %v; want %d of 3", name, free, limit, err, want)
			}
		}
	}
}

// Permits that have expired come back once they are counted: they are not lost to a user who may do only a part of that.
func TestAUserWhoMayNotLosesNoExpiredPermits(t *testing.T) {
	t.Parallel()
	s := redistest.Real(t)
	allow := func(rules ...string) {
		t.Helper()
		must(t, s.Do(t, append([]string{"ACL", "SETUSER", "u", "on", ">secret", "~*", "&*", "+@all"}, rules...)...).Error())
	}
	allow()
	opt := s.Option()
	opt.Username, opt.Password = "u", "secret"
	ctx := within(t, 30*time.Second)
	ses, err := rlock.Dial(ctx, opt, rlock.Config{})
	must(t, err)
	defer ses.Close()
	for _, command := range []string{"incrby", "zremrangebyscore", "zcount", "zrem"} {
		m := semaphore.New(ses, command, 3)
		for what, call := range map[string]func() error{
			"Available": func() error { _, err := m.Available(ctx); return err },
			"SetLimit":  func() error { return m.SetLimit(ctx, 3) },
			"Acquire":   func() error { _, _, err := m.TryAcquire(ctx, 3); return err },
		} {
			must(t, s.Do(t, "SET", command, "2").Error())
			must(t, s.Do(t, "ZADD", "{"+command+"}:timeout", "5", "other").Error())
			allow("-" + command)
			locktest.Is(t, what+" without "+command, call(), rlock.ErrUnavailable)
			allow()
			free, err := m.Available(ctx)
			limit, _ := m.Limit(ctx)
			if free != 3 || limit != 3 || err != nil {
				t.Errorf("%s without %s: %d of %d permits are free, %v; want 3 of 3", what, command, free, limit, err)
			}
		}
	}
}
