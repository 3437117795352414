package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"relock/internal/test/benchkit"
)

// The peers, each used as its README shows it. Where a README leaves something open, the
// choice is the one that is better for it here, and is said in its comment.
var peers = []benchkit.Kind{
	{Name: "rueidislock", Sends: []string{"evalsha", "eval", "client|tracking"}, Open: openRueidislock},
	{Name: "redsync", Sends: []string{"set", "evalsha", "eval"}, Open: openRedsync},
	{Name: "redislock", Sends: []string{"evalsha", "eval"}, Open: openRedislock},
	{Name: etcdName, Open: openEtcd},
}

// openRueidislock: one Redis, so a majority of one key, and NoLoopTracking, both as its
// README advises; it waits by client-side caching.
func openRueidislock(_ context.Context, env benchkit.Env) (*benchkit.Handle, error) {
	locker, err := rueidislock.NewLocker(rueidislock.LockerOption{
		ClientOption:   rueidis.ClientOption{InitAddress: []string{env.Addr}},
		KeyMajority:    1,
		NoLoopTracking: true,
	})
	if err != nil {
		return nil, fmt.Errorf("rueidislock: %w", err)
	}
	return &benchkit.Handle{
		Worker: func(_ context.Context, name string) (benchkit.Cycle, error) {
			return func(ctx context.Context, _ bool, inside func()) error {
				_, cancel, err := locker.WithContext(ctx, name)
				if err != nil {
					return err
				}
				inside()
				cancel()
				return nil
			}, nil
		},
		Close: locker.Close,
	}, nil
}

// openRedsync: one pool, a mutex for each goroutine, all options at their defaults: 32 tries,
// 50 to 250 ms apart, and 8 s of lease. The client's pool is go-redis's default.
func openRedsync(_ context.Context, env benchkit.Env) (*benchkit.Handle, error) {
	client := redis.NewClient(&redis.Options{Addr: env.Addr})
	rs := redsync.New(goredis.NewPool(client))
	return &benchkit.Handle{
		Worker: func(_ context.Context, name string) (benchkit.Cycle, error) {
			mutex := rs.NewMutex(name)
			return func(ctx context.Context, _ bool, inside func()) error {
				err := mutex.LockContext(ctx)
				var taken *redsync.ErrTaken
				if errors.Is(err, redsync.ErrFailed) || errors.As(err, &taken) {
					return fmt.Errorf("%w: %w", benchkit.ErrGaveUp, err)
				}
				if err != nil {
					return err
				}
				inside()
				ok, err := mutex.UnlockContext(ctx)
				if err == nil && !ok {
					err = errors.New("redsync: unlock failed")
				}
				return err
			}, nil
		},
		Close: func() { _ = client.Close() },
	}, nil
}

// redislockLease is as long as ours: its README's 100 ms would end in the middle of a
// hiccup, and nothing renews it.
const redislockLease = 30 * time.Second

// openRedislock: tries again every 10 ms, far more often than the README's example of
// 100 ms, until ctx ends.
func openRedislock(_ context.Context, env benchkit.Env) (*benchkit.Handle, error) {
	client := redis.NewClient(&redis.Options{Addr: env.Addr})
	locker := redislock.New(client)
	return &benchkit.Handle{
		Worker: func(_ context.Context, name string) (benchkit.Cycle, error) {
			return func(ctx context.Context, _ bool, inside func()) error {
				lock, err := locker.Obtain(ctx, name, redislockLease, &redislock.Options{
					RetryStrategy: redislock.LinearBackoff(10 * time.Millisecond),
				})
				if errors.Is(err, redislock.ErrNotObtained) {
					return fmt.Errorf("%w: %w", benchkit.ErrGaveUp, err)
				}
				if err != nil {
					return err
				}
				inside()
				return lock.Release(ctx)
			}, nil
		},
		Close: func() { _ = client.Close() },
	}, nil
}

// openEtcd: a client for the process, and a session with its lease for each goroutine, since
// in one session all goroutines are the same owner of a lock.
func openEtcd(_ context.Context, env benchkit.Env) (*benchkit.Handle, error) {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{env.Addr}, DialTimeout: 5 * time.Second})
	if err != nil {
		return nil, fmt.Errorf("etcd: %w", err)
	}
	return &benchkit.Handle{
		Worker: func(ctx context.Context, name string) (benchkit.Cycle, error) {
			session, err := concurrency.NewSession(client)
			if err != nil {
				return nil, fmt.Errorf("etcd: session: %w", err)
			}
			mutex := concurrency.NewMutex(session, "/"+name+"/")
			return func(ctx context.Context, _ bool, inside func()) error {
				if err := mutex.Lock(ctx); err != nil {
					return err
				}
				inside()
				return mutex.Unlock(ctx)
			}, nil
		},
		// The sessions' leases end by themselves; waiting for each to be revoked would
		// take longer than the measurement.
		Close: func() { _ = client.Close() },
	}, nil
}
