package claim_test

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"relock/fairlock"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/locktrace"
	"relock/rlock"
)

// endings are the ways in which code of the caller's ends the goroutine that it runs in.
var endings = map[string]func(){"panic": func() { panic("on purpose") }, "Goexit": runtime.Goexit}

// returns runs call in a goroutine of its own, and reports whether it has returned.
func returns(call func()) (returned bool) {
	over := make(chan struct{})
	go func() {
		defer close(over)
		defer func() { _ = recover() }()
		call()
		returned = true
	}()
	<-over
	return returned
}

// noCalls waits until the session has to do with no lock.
func noCalls(t *testing.T, ses *rlock.Session, what string) {
	t.Helper()
	redistest.Eventually(t, 10*time.Second, what+": nothing to be left of the call", func() bool {
		held, asking, locks, scheduled, active := locktest.Books(ses)
		return held+asking+locks+scheduled+active == 0
	})
}

// A Backoff that panics, or ends its goroutine, in the middle of a call leaves nothing of it: else the next
// callers of that name would wait for it, and so would Close, where the caller recovers.
func TestABackoffThatEndsItsGoroutine(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx, other := within(t, time.Minute), dial(t, s, rlock.Config{})
		for how, end := range endings {
			var armed atomic.Bool
			backoff := func(int) time.Duration {
				if armed.Load() {
					end()
				}
				return time.Millisecond
			}
			ses := dial(t, s, rlock.Config{})
			name := redistest.Name(t) + how
			for what, c := range map[string]struct {
				m, held locktest.Mutex
				ctx     context.Context
				opts    []rlock.LockOption
			}{
				"Retry":           {rlock.New(ses, name), rlock.New(other, name), ctx, []rlock.LockOption{rlock.Retry(backoff)}},
				"Retry of a name": {rlock.New(ses, name), rlock.New(other, name), rlock.WithOwner(ctx, "me"), []rlock.LockOption{rlock.Retry(backoff)}},
				"Retry, fair":     {fairlock.New(ses, name+"fair"), fairlock.New(other, name+"fair"), ctx, []rlock.LockOption{rlock.Retry(backoff)}},
			} {
				_, h, err := c.held.Lock(ctx)
				must(t, err)
				armed.Store(true)
				if returns(func() { _, _, _ = c.m.Lock(c.ctx, c.opts...) }) {
					t.Errorf("%s, %s: Lock has returned", how, what)
				}
				armed.Store(false)
				noCalls(t, ses, how+", "+what)
				must(t, h.Unlock())
				_, h, err = c.m.Lock(ctx)
				must(t, err)
				must(t, h.Unlock())
			}
			must(t, ses.Close())
		}
	})
}

// A Backoff of a session that polls is called in the middle of a wait, and by the heartbeats of a fair lock's callers, in a
// goroutine of the session's: if it panics there, it gives up, and the Logger hears of it.
func TestAPollingBackoffThatPanics(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx, other := within(t, time.Minute), dial(t, s, rlock.Config{})
		var text locktest.Journal
		panicked := make(chan struct{}, 100)
		var armed atomic.Bool
		ses := dial(t, s, rlock.Config{Logger: text.Logger(), Polling: func(int) time.Duration {
			if armed.Load() {
				panicked <- struct{}{}
				panic("on purpose")
			}
			return time.Millisecond
		}})
		armed.Store(true)
		name := redistest.Name(t)
		for what, ctx := range map[string]context.Context{"a caller": ctx, "a named owner": rlock.WithOwner(ctx, "me")} {
			m := rlock.New(ses, name)
			_, h, err := rlock.New(other, name).Lock(ctx)
			must(t, err)
			if _, _, err := m.Lock(rlock.WithOwner(ctx, "else")); !errors.Is(err, rlock.ErrNotAcquired) {
				t.Errorf("%s: Lock returned %v", what, err)
			}
			noCalls(t, ses, what)
			must(t, h.Unlock())
			_, h, err = m.Lock(ctx)
			must(t, err)
			must(t, h.Unlock())
		}
		if text.Count("a hook has panicked; the session goes on\" hook=Polling") == 0 {
			t.Errorf("the Logger heard %q", text.Lines)
		}
		for len(panicked) > 0 {
			<-panicked
		}
		_, h, err := fairlock.New(other, name+"fair").Lock(ctx)
		must(t, err)
		got := make(chan error)
		go func() {
			_, h, err := fairlock.New(ses, name+"fair").Lock(ctx)
			if err == nil {
				err = h.Unlock()
			}
			got <- err
		}()
		<-panicked
		must(t, h.Unlock())
		must(t, <-got)
	})
}

// If it ends the goroutine of a caller that waits, as t.FailNow does, it ends its call: the caller stood in front of the
// session's queue for good, and the next ones waited behind it.
func TestAPollingBackoffThatEndsItsGoroutine(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx, other := within(t, time.Minute), dial(t, s, rlock.Config{})
		var armed atomic.Bool
		ses := dial(t, s, rlock.Config{Polling: func(int) time.Duration {
			if armed.CompareAndSwap(true, false) {
				runtime.Goexit()
			}
			return time.Millisecond
		}})
		name := redistest.Name(t)
		for what, own := range map[string]context.Context{"a caller": ctx, "a named owner": rlock.WithOwner(ctx, "me")} {
			m := rlock.New(ses, name)
			_, h, err := rlock.New(other, name).Lock(ctx)
			must(t, err)
			armed.Store(true)
			if returns(func() { _, _, _ = m.Lock(own) }) {
				t.Errorf("%s: Lock has returned", what)
			}
			noCalls(t, ses, what)
			must(t, h.Unlock())
			_, h, err = m.Lock(own)
			must(t, err)
			must(t, h.Unlock())
		}
	})
}

// An ending is a context of the caller's own that ends the goroutine which asks it so many times from now, as one that must not
// be used any longer may.
type ending struct {
	context.Context
	left *atomic.Int64
	how  func()
}

func (c ending) count() {
	if c.left.Add(-1) == 0 {
		c.how()
	}
}

func (c ending) Err() error {
	c.count()
	return c.Context.Err()
}

func (c ending) Done() <-chan struct{} {
	c.count()
	return c.Context.Done()
}

// Wherever a context does so in a Lock or TryLock, nothing is left of that call.
func TestAContextThatEndsACallersGoroutine(t *testing.T) {
	calls := map[string]func(m locktest.Mutex, ctx context.Context) (context.Context, *rlock.Hold, error){
		"Lock": func(m locktest.Mutex, ctx context.Context) (context.Context, *rlock.Hold, error) { return m.Lock(ctx) },
		"TryLock": func(m locktest.Mutex, ctx context.Context) (context.Context, *rlock.Hold, error) {
			return m.TryLock(ctx)
		},
		"with Wait": func(m locktest.Mutex, ctx context.Context) (context.Context, *rlock.Hold, error) {
			return m.Lock(ctx, rlock.Wait(time.Minute))
		},
	}
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx, ses := within(t, time.Minute), dial(t, s, rlock.Config{})
		name := redistest.Name(t)
		for kind, m := range map[string]locktest.Mutex{"plain": rlock.New(ses, name), "fair": fairlock.New(ses, name+"fair")} {
			for how, end := range endings {
				for call, lock := range calls {
					var left atomic.Int64
					n, got := int64(0), false
					for !got {
						n++
						got = returns(func() {
							left.Store(n)
							_, h, err := lock(m, ending{ctx, &left, end})
							left.Store(0)
							must(t, err)
							must(t, h.Unlock())
						})
						noCalls(t, ses, kind+", "+how+", "+call)
						_, h, err := m.Lock(ctx)
						must(t, err)
						must(t, h.Unlock())
					}
					if n < 5 {
						t.Errorf("%s, %s: %s asked the context %d times", kind, how, call, n-1)
					}
				}
			}
		}
	})
}

// A context that panics, or ends the goroutine, while its caller waits ends that call: the caller stood in the session's queue
// for good, later ones waited behind it, and what it was given was held and renewed without an owner.
func TestAContextThatEndsAWaitersGoroutine(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, time.Minute)
		waits := make(chan struct{}, 10)
		ses := dial(t, s, rlock.Config{Trace: &rlock.Trace{Waiting: func(context.Context, locktrace.Waiting) { waits <- struct{}{} }}})
		mutexes := map[string]func(*rlock.Session, string) locktest.Mutex{
			"plain": func(ses *rlock.Session, name string) locktest.Mutex { return rlock.New(ses, name) },
			"fair":  func(ses *rlock.Session, name string) locktest.Mutex { return fairlock.New(ses, name) },
		}
		for kind, mutex := range mutexes {
			for how, end := range endings {
				for from, holds := range map[string]*rlock.Session{"the session": ses, "another session": dial(t, s, rlock.Config{})} {
					what, name := kind+", "+how+", a lock of "+from, redistest.Name(t)+kind+how+from
					for _, given := range []bool{false, true} {
						_, h, err := mutex(holds, name).Lock(ctx)
						must(t, err)
						own, cancel := context.WithCancel(ctx)
						var left atomic.Int64
						over := make(chan bool, 1)
						go func() {
							over <- returns(func() { _, _, _ = mutex(ses, name).Lock(ending{own, &left, end}) })
						}()
						<-waits
						left.Store(1)
						if given {
							must(t, h.Unlock())
						} else {
							cancel()
						}
						if <-over {
							t.Errorf("%s: Lock has returned", what)
						}
						cancel()
						if !given {
							must(t, h.Unlock())
						}
						noCalls(t, ses, what)
						_, h, err = mutex(ses, name).Lock(ctx)
						must(t, err)
						must(t, h.Unlock())
					}
				}
			}
		}
	})
}
