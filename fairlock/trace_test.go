package fairlock_test

import (
	"context"
	"testing"

	"relock/fairlock"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/locktrace"
	"relock/rlock"
)

// The hooks are told where the lock came from: from Redis where it was free, from another session's release, or in
// memory from a caller of the same run.
func TestTraceTellsWhereTheLockCameFrom(t *testing.T) {
	each(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, patience)
		grants := make(chan locktrace.Grant, 10)
		cfg := silent()
		cfg.Trace = &rlock.Trace{AcquireEnd: func(_ context.Context, e locktrace.AcquireEnd) { grants <- e.Grant }}
		b := dial(t, s, cfg)
		m := fairlock.New(b, "x")
		came := func(want locktrace.Grant) {
			t.Helper()
			if got := locktest.Get(t, grants, patience, "the end of a Lock"); got != want {
				t.Errorf("the lock came from %q, want %q", got, want)
			}
		}
		unlock(t, lock(t, ctx, m))
		came(locktrace.GrantRedis)
		first := lock(t, ctx, fairlock.New(dial(t, s, silent()), "x"))
		next := goQueued(t, ctx, m, 1)
		behind := goQueued(t, ctx, m, 2)
		unlock(t, first)
		l := granted(t, next, patience, "the first of the run")
		came(locktrace.GrantLine)
		unlock(t, l)
		unlock(t, granted(t, behind, patience, "the second of the run"))
		came(locktrace.GrantMemory)
	})
}
