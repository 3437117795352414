package line_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"relock/fairlock"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/rwlock"
)

// Redis keeps a lock that it has given for 1.25 s, and waits with a renewal for a third of what is left: who is too far
// away for that asks, and keeps what was given to him.
func TestAFarSessionKeepsWhatItWasGiven(t *testing.T) {
	kinds := map[string]func(ses *rlock.Session, name string) locktest.Mutex{
		"plain":  func(ses *rlock.Session, name string) locktest.Mutex { return rlock.New(ses, name) },
		"fair":   func(ses *rlock.Session, name string) locktest.Mutex { return fairlock.New(ses, name) },
		"writer": func(ses *rlock.Session, name string) locktest.Mutex { return rwlock.New(ses, name) },
	}
	for kind, lock := range kinds {
		for _, trip := range []time.Duration{150 * time.Millisecond, 250 * time.Millisecond, 450 * time.Millisecond, 700 * time.Millisecond} {
			t.Run(fmt.Sprint(kind, "/", trip), func(t *testing.T) {
				redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
					redistest.SkipShort(t)
					name := redistest.Name(t)
					near, far := dial(t, s, rlock.Config{}), farDial(t, s, trip, rlock.Config{})
					keepsWhatItWasGiven(t, s, name, lock(near, name), lock(far, name))
				})
			})
		}
	}
}

// keepsWhatItWasGiven gives a lock to a session that is far from Redis, where it stays for longer than it was given for.
func keepsWhatItWasGiven(t *testing.T, s *redistest.Server, name string, near, far locktest.Mutex) {
	t.Helper()
	ctx := within(t, time.Minute)
	_, h, err := near.Lock(ctx)
	must(t, err)
	in := locktest.GoLock(far, ctx)
	redistest.Eventually(t, 10*time.Second, "the far session in the line", func() bool {
		n, err := s.Do(t, "EXISTS", locktest.LineOf(name)).AsInt64()
		must(t, err)
		return n == 1
	})
	must(t, h.Unlock())
	got := locktest.Get(t, in, 10*time.Second, "the far session")
	must(t, got.Err)
	select {
	case <-got.Ctx.Done():
		t.Errorf("the section has ended: %v", context.Cause(got.Ctx))
	case <-time.After(4 * time.Second):
	}
	if err := got.Hold.Unlock(); err != nil {
		t.Errorf("Unlock returns %v", err)
	}
}
