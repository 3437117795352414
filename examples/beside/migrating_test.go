package beside_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"

	"relock/rlock"
)

func withRedsync(ctx context.Context, rs *redsync.Redsync, name string, fn func(context.Context) error) (err error) {
	m := rs.NewMutex(name, redsync.WithExpiry(8*time.Second), redsync.WithTries(32))
	if err := m.LockContext(ctx); err != nil {
		return err
	}
	defer func() { _, bad := m.UnlockContext(context.WithoutCancel(ctx)); err = errors.Join(err, bad) }()
	return fn(ctx) // must be over in 8 s, or call m.ExtendContext
}

func withRedislock(ctx context.Context, c *redislock.Client, name string, fn func(context.Context) error) error {
	l, err := c.Obtain(ctx, name, 30*time.Second, &redislock.Options{
		RetryStrategy: redislock.LimitRetry(redislock.LinearBackoff(100*time.Millisecond), 50),
	})
	if err != nil {
		return err
	}
	defer l.Release(context.WithoutCancel(ctx))
	return fn(ctx) // must be over in 30 s, or call l.Refresh
}

func withRueidislock(ctx context.Context, locker rueidislock.Locker, name string, fn func(context.Context) error) error {
	ctx, cancel, err := locker.WithContext(ctx, name)
	if err != nil {
		return err
	}
	defer cancel()
	return fn(ctx)
}

func withRelock(ctx context.Context, session *rlock.Session, name string, fn func(context.Context) error) error {
	return rlock.New(session, name).Do(ctx, fn, rlock.Wait(5*time.Second))
}

// withBoth is for the deployment in between: it excludes what runs before it and after it.
func withBoth(ctx context.Context, old *redislock.Client, session *rlock.Session, name string, fn func(context.Context) error) error {
	return withRedislock(ctx, old, name, func(ctx context.Context) error {
		return withRelock(ctx, session, "relock:"+name, fn)
	})
}

type withLock func(ctx context.Context, name string, fn func(context.Context) error) error

// Versions of a service that run at the same time during the two deployments exclude each other.
func TestTwoPhases(t *testing.T) {
	server := miniredis.RunT(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	t.Cleanup(func() { _ = client.Close() })
	session, err := rlock.Dial(t.Context(), rueidis.ClientOption{InitAddress: []string{server.Addr()}, ForceSingleClient: true}, rlock.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	old := redislock.New(client)
	before := func(ctx context.Context, name string, fn func(context.Context) error) error {
		return withRedislock(ctx, old, name, fn)
	}
	between := func(ctx context.Context, name string, fn func(context.Context) error) error {
		return withBoth(ctx, old, session, name, fn)
	}
	after := func(ctx context.Context, name string, fn func(context.Context) error) error {
		return withRelock(ctx, session, "relock:"+name, fn)
	}
	for what, pair := range map[string][2]withLock{
		"before and between": {before, between}, "between and before": {between, before},
		"between and after": {between, after}, "after and between": {after, between},
		"between and itself": {between, between},
	} {
		t.Run(what, func(t *testing.T) { excludes(t, pair[0], pair[1]) })
	}
}

// excludes checks that second does not get in while first is.
func excludes(t *testing.T, first, second withLock) {
	err := first(t.Context(), "job", func(context.Context) error {
		ctx, cancel := context.WithTimeout(t.Context(), 150*time.Millisecond)
		defer cancel()
		err := second(ctx, "job", func(context.Context) error { t.Error("two inside"); return nil })
		if err == nil {
			t.Error("the second one got in")
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if err := second(t.Context(), "job", func(context.Context) error { return nil }); err != nil {
		t.Errorf("after the first has left: %v", err)
	}
}

// The four do the same, as docs/migrating.md puts them side by side.
func TestSideBySide(t *testing.T) {
	server := miniredis.RunT(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	t.Cleanup(func() { _ = client.Close() })
	opt := rueidis.ClientOption{InitAddress: []string{server.Addr()}, ForceSingleClient: true, DisableCache: true}
	session, err := rlock.Dial(t.Context(), opt, rlock.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	locker, err := rueidislock.NewLocker(rueidislock.LockerOption{ClientOption: opt, KeyMajority: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(locker.Close)
	rs, rl := redsync.New(goredis.NewPool(client)), redislock.New(client)
	ran := 0
	fn := func(ctx context.Context) error { ran++; return ctx.Err() }
	err = errors.Join(
		withRedsync(t.Context(), rs, "a", fn), withRedislock(t.Context(), rl, "b", fn),
		withRueidislock(t.Context(), locker, "c", fn), withRelock(t.Context(), session, "d", fn))
	if err != nil || ran != 4 {
		t.Errorf("%d ran: %v", ran, err)
	}
}

// On one name the two libraries exclude each other too, but not quietly: the hash of one is an
// error to the other.
func TestOneNameForBoth(t *testing.T) {
	server := miniredis.RunT(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	t.Cleanup(func() { _ = client.Close() })
	session, err := rlock.Dial(t.Context(), rueidis.ClientOption{InitAddress: []string{server.Addr()}, ForceSingleClient: true}, rlock.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	err = withRedislock(t.Context(), redislock.New(client), "job", func(ctx context.Context) error {
		_, _, err := rlock.New(session, "job").TryLock(ctx)
		return err
	})
	if err == nil || errors.Is(err, rlock.ErrNotAcquired) {
		t.Errorf("TryLock on another library's key: %v, want Redis's WRONGTYPE", err)
	}
}
