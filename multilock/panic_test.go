package multilock_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"relock/internal/test/redistest"
	"relock/multilock"
	"relock/rlock"
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
