package close_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"relock/fairlock"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/locktrace"
	"relock/rlock"
	"relock/rwlock"
	"relock/semaphore"
)

// begins shuts a session down, and returns when outside calls are turned away.
func begins(t *testing.T, ctx context.Context, ses *rlock.Session, name string) <-chan error {
	t.Helper()
	done := locktest.Go(func() error { return ses.Shutdown(ctx) })
	redistest.Eventually(t, 5*time.Second, "Shutdown to begin", func() bool {
		_, h, err := rlock.New(ses, name+"-probe").TryLock(context.Background())
		if err == nil {
			must(t, h.Unlock())
		}
		return err != nil
	})
	return done
}

// goesOn: Shutdown waits, and the section that it waits for is open.
func goesOn(t *testing.T, done <-chan error, section context.Context) {
	t.Helper()
	select {
	case err := <-done:
		t.Fatalf("Shutdown returned (%v) before the last section has ended", err)
	default:
	}
	if section.Err() != nil {
		t.Errorf("the section ended: %v", context.Cause(section))
	}
}

// turnsAway: on a context that lies in no section, a session that shuts down locks nothing.
func turnsAway(t *testing.T, ctx context.Context, ses *rlock.Session, name string) {
	t.Helper()
	for what, err := range map[string]error{
		"Lock": third(rlock.New(ses, name).Lock(ctx)), "TryLock": third(fairlock.New(ses, name+"f").TryLock(ctx)),
		"RLock":   third(rwlock.New(ses, name+"w").RLock(ctx)),
		"Acquire": acquires(ses, name+"s", ctx), "Counter": semaphore.NewCounter(ses, name+"c").Acquire(ctx, 1),
	} {
		locktest.Is(t, what, err, rlock.ErrClosed)
	}
}

// locksMore: on the contexts of open sections the session locks other names too.
func locksMore(t *testing.T, ses *rlock.Session, name string, sections ...context.Context) {
	t.Helper()
	for _, in := range sections {
		must(t, rlock.New(ses, name+"more").Do(in, func(ctx context.Context) error {
			return rwlock.New(ses, name+"w").RDo(ctx, func(context.Context) error { return nil })
		}))
	}
}

// Open sections go on, nest, and lock others; what is outside of them ends with ErrClosed.
func TestShutdownLetsSectionsEnd(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		trace, waiting := locktest.Waiting()
		ses := dial(t, s, rlock.Config{Trace: trace})
		other := dial(t, s, rlock.Config{})
		ctx := within(t, 30*time.Second)
		name := redistest.Name(t)
		m, fair := rlock.New(ses, name), fairlock.New(ses, name+"f")
		section, h, err := m.Lock(ctx)
		must(t, err)
		named, nh, err := rlock.New(ses, name+"named").Lock(rlock.WithOwner(ctx, "order-17"))
		must(t, err)
		// A caller that came in by the name lies in the section too.
		byName, nh2, err := rlock.New(ses, name+"named").Lock(rlock.WithOwner(ctx, "order-17"))
		must(t, err)
		_, permits, err := semaphore.New(ses, name+"s", 1).Acquire(ctx, 1)
		must(t, err)
		_, theirs, err := rlock.New(other, name+"theirs").Lock(ctx)
		must(t, err)
		_, theirFair, err := fairlock.New(other, name+"f").Lock(ctx)
		must(t, err)

		wait := func(m locktest.Mutex, ctx context.Context) <-chan locktest.Locked { return waits(t, ctx, m, waiting) }
		plain := rlock.New(ses, name+"theirs")
		var outside []<-chan locktest.Locked
		for _, l := range []locktest.Mutex{m, plain, fair} {
			for range 3 {
				outside = append(outside, wait(l, ctx))
			}
		}
		inside := wait(plain, rlock.WithoutOwner(section)) // it lies in the section all the same
		insideFair := wait(fair, section)

		done := begins(t, ctx, ses, name)
		for _, w := range outside {
			locktest.Is(t, "a waiter outside", locktest.Get(t, w, 5*time.Second, "Lock").Err, rlock.ErrClosed)
		}
		turnsAway(t, ctx, ses, name)
		locksMore(t, ses, name, section, named, byName, rlock.WithOwner(section, "order-18"), rlock.WithoutOwner(named))
		_, nested, err := m.Lock(section)
		must(t, err)
		must(t, errors.Join(theirs.Unlock(), theirFair.Unlock()))
		getIn(t, inside, insideFair)
		if _, err := m.State(ctx); err != nil {
			t.Errorf("State: %v", err)
		}
		must(t, errors.Join(h.Unlock(), nh.Unlock(), nh2.Unlock(), permits.Release()))
		goesOn(t, done, section)
		must(t, nested.Unlock())
		must(t, locktest.Get(t, done, 5*time.Second, "Shutdown"))
		locktest.Is(t, "State", locktest.Second(m.State(ctx)), rlock.ErrClosed)
		must(t, ses.Shutdown(ctx))
	})
}

// waits has a caller of m wait, of which waiting tells.
func waits[T any](t *testing.T, ctx context.Context, m locktest.Mutex, waiting <-chan T) <-chan locktest.Locked {
	t.Helper()
	c := locktest.GoLock(m, ctx)
	locktest.Get(t, waiting, 10*time.Second, "a waiter")
	return c
}

// getIn: all these get their lock, and unlock.
func getIn(t *testing.T, waiters ...<-chan locktest.Locked) {
	t.Helper()
	for _, w := range waiters {
		got := locktest.Get(t, w, 10*time.Second, "a waiter inside")
		must(t, got.Err)
		must(t, got.Hold.Unlock())
	}
}

func third(_ context.Context, _ *rlock.Hold, err error) error { return err }

func acquires(ses *rlock.Session, name string, ctx context.Context) error {
	_, _, err := semaphore.New(ses, name, 1).Acquire(ctx, 1)
	return err
}

// When ctx ends first, Shutdown ends what is open.
func TestShutdownIsBoundedByItsContext(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		ses := dial(t, s, rlock.Config{})
		name := redistest.Name(t)
		section, h, err := rlock.New(ses, name).Lock(context.Background())
		must(t, err)
		ctx, cancel := context.WithCancel(context.Background())
		done := begins(t, ctx, ses, name)
		cancel()
		locktest.Is(t, "Shutdown", locktest.Get(t, done, 5*time.Second, "Shutdown"), context.Canceled)
		locktest.Ends(t, section, s.Slack(), rlock.ErrClosed)
		locktest.Is(t, "Unlock", h.Unlock(), rlock.ErrClosed)
		if !locktest.Free(t, s, name) {
			t.Error("the lock stands")
		}
	})
}

// Nothing is open: Shutdown is Close. Close during a Shutdown ends it. A nil context is refused.
func TestShutdownAndClose(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		idle, busy := dial(t, s, rlock.Config{}), dial(t, s, rlock.Config{})
		var none context.Context
		locktest.Is(t, "Shutdown(nil)", idle.Shutdown(none), rlock.ErrArgument)
		locktest.Is(t, "nil session", (*rlock.Session)(nil).Shutdown(context.Background()), rlock.ErrArgument)
		locktest.Is(t, "zero session", new(rlock.Session).Shutdown(context.Background()), rlock.ErrArgument)
		must(t, rlock.New(idle, redistest.Name(t)).Do(context.Background(), func(context.Context) error { return nil }))
		must(t, idle.Shutdown(context.Background()))
		must(t, idle.Close())

		section, _, err := rlock.New(busy, redistest.Name(t)).Lock(context.Background())
		must(t, err)
		done := begins(t, context.Background(), busy, redistest.Name(t))
		must(t, busy.Close())
		must(t, locktest.Get(t, done, 5*time.Second, "Shutdown"))
		locktest.Ends(t, section, s.Slack(), rlock.ErrClosed)
	})
}

// Shutdown begins when the lock has been handed to a waiter whose Lock has not returned: it has
// the lock, and Shutdown waits for it.
func TestShutdownAtAHandOver(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		waiting, goOn := make(chan struct{}, 1), make(chan struct{})
		ses := dial(t, s, rlock.Config{Trace: &rlock.Trace{
			Waiting: func(context.Context, locktrace.Waiting) { waiting <- struct{}{}; <-goOn },
		}})
		ctx, name := within(t, 30*time.Second), redistest.Name(t)
		m := rlock.New(ses, name)
		_, h, err := m.Lock(ctx)
		must(t, err)
		locktest.Unhurried(ses, name)
		next := locktest.GoLock(m, ctx)
		locktest.Get(t, waiting, 5*time.Second, "the next one waits")
		must(t, h.Unlock())
		done := begins(t, ctx, ses, name)
		close(goOn)
		l := locktest.Get(t, next, 5*time.Second, "Lock returns")
		must(t, l.Err)
		goesOn(t, done, l.Ctx)
		must(t, l.Hold.Unlock())
		must(t, locktest.Get(t, done, 5*time.Second, "Shutdown returns"))
		locktest.NothingLeft(t, s, ses)
	})
}
