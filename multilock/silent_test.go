package multilock_test

import (
	"context"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/multilock"
	"relock/rlock"
)

// A Redis that does not answer keeps no lock of another: what was taken there is free when
// Lock returns, which is soon.
func TestOneRedisIsSilent(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, 30*time.Second)
		ses := dial(t, s, slow())
		cut, proxy := locktest.DialProxy(t, s, slow())
		proxy.BlackHole(true)
		a := rlock.New(ses, "a")
		began := time.Now()
		_, _, err := multilock.New(a, rlock.New(cut, "b")).Lock(ctx, rlock.Wait(300*time.Millisecond))
		is(t, "Lock", err, rlock.ErrNotAcquired)
		if took := time.Since(began); took > rlock.DefaultReleaseTimeout {
			t.Errorf("Lock took %v", took)
		}
		free(t, ctx, a)
	})
}

// The first Lock of one name in several Redises asks each of them who it is. That is a part of the
// waiting: it goes on while one of them is silent, and Wait and the end of ctx bound it.
func TestASilentRedisIsAskedWhoItIs(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, time.Hour)
		cfg := rlock.Config{ReleaseTimeout: time.Second} // within which a call without a Wait asks
		ses := dial(t, s, cfg)
		cut, proxy := locktest.DialProxy(t, s, cfg)
		m := multilock.New(rlock.New(ses, "x"), rlock.New(cut, "x"))
		proxy.BlackHole(true)
		for what, c := range map[string]struct {
			ends bool
			opts []rlock.LockOption
			most time.Duration
			want []error
		}{
			"Wait":    {false, []rlock.LockOption{rlock.Wait(100 * time.Millisecond)}, 100 * time.Millisecond, []error{rlock.ErrNotAcquired, rlock.ErrUnavailable}},
			"no Wait": {false, []rlock.LockOption{rlock.Wait(0)}, time.Second, []error{rlock.ErrUnavailable}},
			"ctx":     {true, nil, 100 * time.Millisecond, []error{rlock.ErrNotAcquired, rlock.ErrUnavailable, context.DeadlineExceeded}},
		} {
			own, cancel := context.WithCancel(ctx)
			if c.ends {
				own, cancel = context.WithTimeout(ctx, c.most)
			}
			began := time.Now()
			_, _, err := m.Lock(own, c.opts...)
			cancel()
			is(t, what, err, c.want...)
			if took := time.Since(began); took > c.most+s.Slack() {
				t.Errorf("%s: Lock took %v", what, took)
			}
		}
		lasting := start(ctx, m)
		if s.IsMini() {
			time.Sleep(time.Minute)
		} else {
			time.Sleep(2 * cfg.ReleaseTimeout)
		}
		select {
		case got := <-lasting:
			t.Fatalf("Lock does not wait any more: %v", got.err)
		default:
		}
		proxy.BlackHole(false)
		got := locktest.Get(t, lasting, 20*time.Second, "the silent Redis to say who it is")
		is(t, "Lock", got.err, rlock.ErrArgument) // they are one and the same
	})
}
