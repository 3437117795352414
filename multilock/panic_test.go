package multilock_test

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"relock/internal/test/redistest"
	"relock/locktrace"
	"relock/multilock"
	"relock/rlock"
	"relock/rwlock"
)

// A part of the caller's own, whose code may do anything.
type part struct {
	*rlock.Mutex
	code func()
}

func (p part) Lock(ctx context.Context, opts ...rlock.LockOption) (context.Context, *rlock.Hold, error) {
	p.code()
	return p.Mutex.Lock(ctx, opts...)
}

// A Part of the caller's that panics, or ends the goroutine, leaves none of the locks before it held.
func TestWhatIsHeldIsReleasedWhenAPartPanics(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, 20*time.Second)
		ses, other := dial(t, s, slow()), dial(t, s, slow())
		for what, code := range map[string]func(){"panic": func() { panic("on purpose") }, "Goexit": runtime.Goexit} {
			done := make(chan struct{})
			go func() {
				defer close(done)
				defer func() { _ = recover() }()
				_, _, err := multilock.New(rlock.New(ses, "a"), part{rlock.New(ses, "b"), code}).Lock(ctx)
				t.Errorf("%s: Lock returns %v", what, err)
			}()
			<-done
			free(t, ctx, rlock.New(other, "a"))
		}
	})
}

// Unlock ends the locks in goroutines of their own. A hook that ends such a goroutine ends the Unlock of one lock: the other
// side of a read-write lock, whose turn comes after it there, is released all the same, and the caller is told.
func TestUnlockWhereAHookEndsItsGoroutine(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, 20*time.Second)
		var armed atomic.Bool
		cfg := slow()
		cfg.Trace = &rlock.Trace{HoldEnd: func(_ context.Context, e locktrace.HoldEnd) {
			if e.Kind == "read" && armed.CompareAndSwap(true, false) {
				runtime.Goexit()
			}
		}}
		ses, other := dial(t, s, cfg), dial(t, s, slow())
		rw := rwlock.New(ses, "rw")
		_, h, err := multilock.New(rlock.New(ses, "a"), rw, multilock.Read(rw)).Lock(ctx)
		must(t, err)
		armed.Store(true)
		if h.Unlock() == nil {
			t.Error("no error says that the outcome of an Unlock is not known")
		}
		free(t, ctx, rwlock.New(other, "rw"))
		free(t, ctx, rlock.New(other, "a"))
	})
}
