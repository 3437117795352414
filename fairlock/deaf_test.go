package fairlock_test

import (
	"context"
	"testing"
	"time"

	"relock/fairlock"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// A waiter of a session that may not subscribe, and whose entry is called and never given the lock, has its turn too
// while others want the lock all the time.
func TestADeafWaiterThatIsCalledIsServed(t *testing.T) {
	for name, wants := range map[string]struct {
		ctx func(context.Context) context.Context
		opt []rlock.MutexOption
	}{
		"of a named owner": {func(ctx context.Context) context.Context { return rlock.WithOwner(ctx, "ann") }, nil},
		"of FencedFor":     {func(ctx context.Context) context.Context { return ctx }, []rlock.MutexOption{rlock.FencedFor(time.Hour)}},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, s *redistest.Server) {
				ctx := within(t, patience)
				proxy := newProxy(t, s)
				proxy.RefuseCommand("SUBSCRIBE", "NOPERM no channels for you")
				deaf := fairlock.New(dialVia(t, s, proxy, short(s)), "x", wants.opt...)
				a, b := fairlock.New(dial(t, s, short(s)), "x", wants.opt...), fairlock.New(dial(t, s, short(s)), "x", wants.opt...)
				first := lock(t, ctx, a)
				served := goQueued(t, wants.ctx(ctx), deaf, 1)
				servedBeside(t, ctx, first, served, a, b)
			})
		})
	}
}

// servedBeside checks that a caller who has queued behind first is served although others come again and again.
func servedBeside(t *testing.T, ctx context.Context, first locked, served <-chan locked, a, b *fairlock.Mutex) {
	t.Helper()
	others, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	for _, m := range []*fairlock.Mutex{a, a, b, b} {
		go func() {
			for others.Err() == nil {
				_ = m.Do(others, func(context.Context) error { pause(20 * time.Millisecond); return nil })
			}
			done <- struct{}{}
		}()
	}
	queued(t, a, 5)
	unlock(t, first)
	began := time.Now()
	select {
	case l := <-served:
		must(t, l.err)
		unlock(t, l)
		t.Logf("served after %v", time.Since(began))
	case <-time.After(patience / 2):
		t.Error("not served")
	}
	stop()
	for range 4 {
		<-done
	}
}
