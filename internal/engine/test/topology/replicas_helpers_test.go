package topology_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"relock/fairlock"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/rwlock"
	"relock/semaphore"
)

const replTimeout = 300 * time.Millisecond

// replHold is what a Lock or an Acquire returns.
type replHold interface{ Unlock() error }

type replPermits struct{ *semaphore.Permits }

func (p replPermits) Unlock() error { return p.Release() }

// replLocks are ways to acquire something, each on a name of its own.
func replLocks(ses *rlock.Session, name string) map[string]func(ctx context.Context, opts ...rlock.LockOption) (replHold, error) {
	type way = func(ctx context.Context, opts ...rlock.LockOption) (replHold, error)
	lock := func(m interface {
		Lock(context.Context, ...rlock.LockOption) (context.Context, *rlock.Hold, error)
	}) way {
		return func(ctx context.Context, opts ...rlock.LockOption) (replHold, error) {
			_, h, err := m.Lock(ctx, opts...)
			return h, err
		}
	}
	plain := lock(rlock.New(ses, name+"-named"))
	sem := semaphore.New(ses, name+"-permits", 3)
	return map[string]way{
		"plain":  lock(rlock.New(ses, name)),
		"fenced": lock(rlock.New(ses, name+"-fenced", rlock.Fenced())),
		"named": func(ctx context.Context, opts ...rlock.LockOption) (replHold, error) {
			return plain(rlock.WithOwner(ctx, "somebody"), opts...)
		},
		"fair":  lock(fairlock.New(ses, name+"-fair")),
		"write": lock(rwlock.New(ses, name+"-write")),
		"read": func(ctx context.Context, opts ...rlock.LockOption) (replHold, error) {
			_, h, err := rwlock.New(ses, name+"-read").RLock(ctx, opts...)
			return h, err
		},
		"permits": func(ctx context.Context, opts ...rlock.LockOption) (replHold, error) {
			_, h, err := sem.Acquire(ctx, 2, opts...)
			return replPermits{h}, err
		},
	}
}

// replTells reports whether an error has a text.
func replTells(err error, text string) bool { return err != nil && strings.Contains(err.Error(), text) }

// replFree waits until nothing of a test stands in Redis, but for what outlives a lock: the
// fencing token, and the permits of a semaphore.
func replFree(t *testing.T, s *redistest.Server, name string) {
	t.Helper()
	var left []string
	defer func() {
		if t.Failed() {
			t.Logf("left: %q", left)
		}
	}()
	redistest.Eventually(t, locktest.Patience, "nothing is left", func() bool {
		left = nil
		for _, key := range s.Keys(t) {
			if strings.Contains(key, name) && !strings.HasPrefix(key, "redisson_lock_token:") && key != name+"-permits" {
				left = append(left, key)
			}
		}
		return left == nil
	})
	if free, err := s.Do(t, "GET", name+"-permits").ToString(); err == nil && free != "3" {
		t.Errorf("%s of 3 permits are free", free)
	}
}
