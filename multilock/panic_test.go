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

// A panicking is a context of the caller's own. What is derived from it panics as it ends, once it is armed: package context calls
// the stop function then.
type panicking struct {
	context.Context
	armed *atomic.Bool
	done  chan struct{}
}

func (c panicking) Done() <-chan struct{} { return c.done }

func (c panicking) Value(key any) any {
	if _, own := key.(*int); own { // package context looks for its own contexts by such a key
		return nil
	}
	return c.Context.Value(key)
}

func (c panicking) AfterFunc(func()) (stop func() bool) {
	return func() bool {
		if c.armed.CompareAndSwap(true, false) {
			panic("on purpose")
		}
		return true
	}
}

// A context that panics as Unlock ends it panics in the goroutine that has called Unlock, as that of a single lock does, and the
// other locks are released.
func TestUnlockWithAContextThatPanics(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, 20*time.Second)
		ses, other := dial(t, s, slow()), dial(t, s, slow())
		var armed atomic.Bool
		_, h, err := multilock.New(rlock.New(ses, "a"), rlock.New(ses, "b")).Lock(panicking{ctx, &armed, make(chan struct{})})
		must(t, err)
		armed.Store(true)
		func() {
			defer func() {
				if p := recover(); p != "on purpose" {
					t.Errorf("Unlock panics with %v", p)
				}
			}()
			_ = h.Unlock()
		}()
		_, a, errA := rlock.New(other, "a").Lock(ctx, rlock.Wait(0))
		_, b, errB := rlock.New(other, "b").Lock(ctx, rlock.Wait(0))
		if errA != nil && errB != nil {
			t.Errorf("none of the locks is free: %v, %v", errA, errB)
		}
		for _, h := range []*rlock.Hold{a, b} {
			if h != nil {
				must(t, h.Unlock())
			}
		}
	})
}
