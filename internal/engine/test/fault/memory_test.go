package fault_test

import (
	"context"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// A server that is out of memory still takes renewals, extensions and releases: a lock neither
// is lost nor stays for a lease because of that.
func TestOutOfMemory(t *testing.T) {
	t.Parallel()
	redistest.SkipShort(t)
	for _, c := range []struct {
		name  string
		named bool
		opts  []rlock.MutexOption
	}{
		{"private", false, nil},
		{"named", true, nil},
		{"fenced", false, []rlock.MutexOption{rlock.Fenced()}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := redistest.Real(t)
			ses, ctx := dial(t, s, rlock.Config{Lease: 6 * time.Second}), within(t, 90*time.Second)
			lockCtx := ctx
			if c.named {
				lockCtx = rlock.WithOwner(ctx, "me")
			}
			m, fixed := rlock.New(ses, c.name, c.opts...), rlock.New(ses, c.name+"-fixed", c.opts...)
			section, h, err := m.Lock(lockCtx)
			must(t, err)
			_, inner, err := m.Lock(section)
			must(t, err)
			_, long, err := fixed.Lock(lockCtx, rlock.Lease(20*time.Second))
			must(t, err)
			must(t, s.Do(t, "CONFIG", "SET", "maxmemory", "1").Error())
			if _, _, err := rlock.New(ses, c.name+"-free").TryLock(ctx); err == nil {
				t.Fatal("the server is not out of memory")
			}
			locktest.Stays(t, section, 7*time.Second)
			must(t, inner.Unlock())
			must(t, h.Unlock())
			must(t, long.Extend(ctx, 10*time.Second))
			must(t, long.Unlock())
			for _, key := range []string{c.name, c.name + "-fixed"} {
				if !locktest.Free(t, s, key) {
					t.Errorf("%s is still held", key)
				}
			}
		})
	}
}

// A fenced Lock waits through what passes by itself, as a plain one does.
func TestFencedLockWaitsThroughRefusedWrites(t *testing.T) {
	t.Parallel()
	s := redistest.Real(t)
	trace, failed := locktest.Failed()
	ses, ctx := dial(t, s, rlock.Config{Trace: trace}), within(t, 30*time.Second)
	for name, state := range map[string][2][]string{
		"NOREPLICAS": {{"CONFIG", "SET", "min-replicas-to-write", "1"}, {"CONFIG", "SET", "min-replicas-to-write", "0"}},
		"READONLY":   {{"REPLICAOF", "127.0.0.1", "1"}, {"REPLICAOF", "NO", "ONE"}},
	} {
		for _, ctx := range []context.Context{ctx, rlock.WithOwner(ctx, "me")} {
			for len(failed) > 0 {
				<-failed
			}
			must(t, s.Do(t, state[0]...).Error())
			next := locktest.GoLock(rlock.New(ses, name, rlock.Fenced()), ctx)
			for range 2 {
				locktest.Get(t, failed, 10*time.Second, "a failed attempt")
			}
			must(t, s.Do(t, state[1]...).Error())
			got := locktest.Get(t, next, 10*time.Second, "Lock")
			must(t, got.Err)
			if got.Hold.Token() == 0 {
				t.Errorf("%s: no token", name)
			}
			must(t, got.Hold.Unlock())
		}
	}
}
