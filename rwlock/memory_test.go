package rwlock_test

import (
	"context"
	"testing"
	"time"

	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/rwlock"
)

// A server that is out of memory still takes renewals, extensions and releases: a lock neither
// is lost nor stays for a lease because of that.
func TestOutOfMemory(t *testing.T) {
	s := redistest.Real(t)
	ses := dial(t, s, slow)
	m, ctx := rwlock.New(ses, "x"), within(t, 30*time.Second)
	out := func(yes bool) {
		t.Helper()
		must(t, s.Do(t, "CONFIG", "SET", "maxmemory", map[bool]string{true: "1", false: "0"}[yes]).Error())
	}
	for side, lock := range map[string]lockFunc{"read": m.RLock, "write": m.Lock} {
		for name, ctx := range map[string]context.Context{"private": ctx, "named": rlock.WithOwner(ctx, "me")} {
			t.Run(side+"/"+name, func(t *testing.T) {
				section, h := hold(t, ctx, lock, rlock.Lease(10*time.Second))
				_, inner := hold(t, section, m.RLock, rlock.Lease(10*time.Second))
				out(true)
				defer out(false)
				if _, _, err := rwlock.New(ses, "free").TryLock(ctx); err == nil {
					t.Fatal("the server is not out of memory")
				}
				must(t, h.Extend(ctx, 20*time.Second))
				must(t, inner.Unlock())
				must(t, h.Unlock())
				nothingLeft(t, s)
			})
		}
	}
}

// The same for renewals.
func TestOutOfMemoryIsRenewed(t *testing.T) {
	t.Parallel()
	redistest.SkipShort(t)
	s := redistest.Real(t)
	ses, ctx := dial(t, s, rlock.Config{Lease: 6 * time.Second}), within(t, 30*time.Second)
	read, r := hold(t, ctx, rwlock.New(ses, "x").RLock)
	written, w := hold(t, ctx, rwlock.New(ses, "y").Lock)
	must(t, s.Do(t, "CONFIG", "SET", "maxmemory", "1").Error())
	select {
	case <-read.Done():
		t.Errorf("the reader's section ended: %v", context.Cause(read))
	case <-written.Done():
		t.Errorf("the writer's section ended: %v", context.Cause(written))
	case <-time.After(7 * time.Second):
	}
	must(t, r.Unlock())
	must(t, w.Unlock())
	nothingLeft(t, s)
	must(t, s.Do(t, "CONFIG", "SET", "maxmemory", "0").Error())
}
