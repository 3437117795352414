package multilock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"relock/internal/test/faulttest"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/multilock"
	"relock/rlock"
)

// A silence is that of a Redis which has been asked who it is. The question may take as long as the
// test, so that its end is not what ends a wait.
type silence struct {
	answers, silent *rlock.Session
	proxy           *faulttest.Proxy
	m               *multilock.Mutex
}

func newSilence(t *testing.T, s *redistest.Server) silence {
	cfg := rlock.Config{ReleaseTimeout: 10 * time.Minute}
	x := silence{answers: dial(t, s, cfg)}
	x.silent, x.proxy = locktest.DialProxy(t, s, cfg)
	x.m = multilock.New(rlock.New(x.answers, "x"), rlock.New(x.silent, "x"))
	return x
}

// wait has a caller wait for the answer.
func (x *silence) wait(t *testing.T, ctx context.Context) (waiter <-chan taken, release func()) {
	t.Helper()
	asked, release := x.proxy.HoldReply(locktest.Runs(multilock.DeploymentSource))
	waiter = start(ctx, x.m)
	locktest.Get(t, asked, 10*time.Second, "the question who the Redis is")
	x.proxy.BlackHole(true)
	return waiter, release
}

// A Lock that asks a silent Redis who it is, is turned away when one of its sessions shuts down or
// closes, the silent one or another, if it lies in no open section there.
func TestShutdownTurnsAwayWhoAsksForTheOrder(t *testing.T) {
	ends := map[string]func(context.Context, *rlock.Session) error{
		"Shutdown": func(ctx context.Context, s *rlock.Session) error { return s.Shutdown(ctx) },
		"Close":    func(_ context.Context, s *rlock.Session) error { return s.Close() },
	}
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		for what, end := range ends {
			for _, which := range []string{"the one that answers", "the silent one", "the silent one, beside a section of the other"} {
				isTurnedAway(t, s, which, what+" of "+which, end)
			}
		}
	})
}

func isTurnedAway(t *testing.T, s *redistest.Server, which, what string, end func(context.Context, *rlock.Session) error) {
	ctx, cancel := context.WithCancel(within(t, 5*time.Minute))
	defer cancel()
	x := newSilence(t, s)
	ending, inside := x.silent, ctx
	switch which {
	case "the one that answers":
		ending = x.answers
	case "the silent one, beside a section of the other":
		section, h, err := rlock.New(x.answers, "around").Lock(ctx)
		must(t, err)
		defer func() { must(t, h.Unlock()) }()
		inside = section
	}
	waiter, release := x.wait(t, inside)
	ended := make(chan error, 1)
	go func() { ended <- end(ctx, ending) }()
	is(t, what, locktest.Get(t, waiter, 10*time.Second, what+" to turn the waiter away").err, rlock.ErrClosed)
	must(t, locktest.Get(t, ended, 10*time.Second, what))
	release()
	x.proxy.BlackHole(false)
}

// A caller in an open section of the session that shuts down goes on waiting for the answer.
func TestShutdownLetsASectionAskForTheOrder(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, time.Minute)
		x := newSilence(t, s)
		section, h, err := rlock.New(x.answers, "around").Lock(ctx)
		must(t, err)
		waiter, release := x.wait(t, section)
		ended := make(chan error, 1)
		go func() { ended <- x.answers.Shutdown(ctx) }()
		redistest.Eventually(t, 10*time.Second, "Shutdown to begin", func() bool {
			_, h, err := rlock.New(x.answers, "probe").TryLock(ctx)
			_ = h.Unlock()
			return errors.Is(err, rlock.ErrClosed)
		})
		select {
		case got := <-waiter:
			t.Fatalf("the caller in a section does not wait any more: %v", got.err)
		case err := <-ended:
			t.Fatalf("Shutdown has not waited: %v", err)
		case <-time.After(time.Second):
		}
		x.proxy.BlackHole(false)
		release()
		got := locktest.Get(t, waiter, 20*time.Second, "the silent Redis to say who it is")
		is(t, "Lock", got.err, rlock.ErrArgument) // they are one and the same
		must(t, h.Unlock())
		must(t, locktest.Get(t, ended, 10*time.Second, "Shutdown"))
	})
}

// The error of a wait for the order says how long it was, and not only how long the last question.
func TestWhatWasWaitedForWithTheOrder(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, time.Minute)
		cfg := rlock.Config{ReleaseTimeout: 300 * time.Millisecond} // of one question
		cut, proxy := locktest.DialProxy(t, s, cfg)
		m := multilock.New(rlock.New(dial(t, s, cfg), "x"), rlock.New(cut, "x"))
		proxy.BlackHole(true)
		defer proxy.BlackHole(false)
		_, _, err := m.Lock(ctx, rlock.Wait(time.Second))
		is(t, "Wait", err, rlock.ErrNotAcquired, rlock.ErrUnavailable)
		if !strings.Contains(err.Error(), "the order of the locks was not known for 1") {
			t.Errorf("it does not say what was waited for, and for how long: %v", err)
		}
		own, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		_, _, err = m.Lock(own)
		is(t, "ctx", err, rlock.ErrNotAcquired, rlock.ErrUnavailable, context.DeadlineExceeded)
		if !strings.Contains(err.Error(), "the order of the locks was not known for 1") {
			t.Errorf("it does not say what was waited for, and for how long: %v", err)
		}
	})
}

// A caller that leaves between two questions hears that Redis did not answer the last one.
func TestRedisIsUnavailableToACallerThatLeavesBetweenTwoQuestions(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		cfg := rlock.Config{ReleaseTimeout: 300 * time.Millisecond} // of one question
		cut, proxy := locktest.DialProxy(t, s, cfg)
		m := multilock.New(rlock.New(dial(t, s, cfg), "x"), rlock.New(cut, "x"))
		proxy.BlackHole(true)
		defer proxy.BlackHole(false)
		ctx, cancel := context.WithTimeout(within(t, time.Minute), cfg.ReleaseTimeout+time.Microsecond)
		defer cancel()
		_, _, err := m.Lock(ctx)
		is(t, "Lock", err, rlock.ErrNotAcquired, rlock.ErrUnavailable, context.DeadlineExceeded)
	})
}
