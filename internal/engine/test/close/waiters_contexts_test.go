package close_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"relock/internal/test/faulttest"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// The context of a caller whose attempt is under way blocks when that is interrupted. Close and Shutdown are not its callers:
// they end the other locks, and return in their own time.
func TestTheContextOfAWaiterBlocksNoClose(t *testing.T) {
	for what, end := range map[string]func(*rlock.Session) error{
		"Close": (*rlock.Session).Close,
		"Shutdown": func(ses *rlock.Session) error {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			return ses.Shutdown(ctx)
		},
	} {
		t.Run(what, func(t *testing.T) {
			redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
				ses, p := locktest.DialProxy(t, s, rlock.Config{ReleaseTimeout: time.Second})
				var sections []context.Context
				for _, name := range []string{"x", "y", "z"} {
					section, _, err := rlock.New(ses, name).Lock(within(t, time.Minute))
					must(t, err)
					sections = append(sections, section)
				}
				goOn := make(chan struct{})
				t.Cleanup(sync.OnceFunc(func() { close(goOn) }))
				asking, answer := p.HoldRequest(faulttest.Is("EVALSHA"))
				waiter := locktest.GoLock(rlock.New(ses, "waits"), &slowEnd{Context: within(t, time.Minute),
					done: make(chan struct{}), stop: func() { <-goOn }})
				locktest.Get(t, asking, 10*time.Second, "an attempt")
				ended := locktest.Go(func() error { return end(ses) })
				for _, section := range sections {
					locktest.Ends(t, section, 20*time.Second, rlock.ErrClosed)
				}
				locktest.Get(t, ended, 20*time.Second, what)
				locktest.Is(t, "Lock", locktest.Get(t, waiter, 20*time.Second, "Lock").Err, rlock.ErrClosed)
				answer()
			})
		})
	}
}

// A context that panics then is seen by the caller of Close.
func TestCloseWithAWaiterWhoseContextPanics(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ses, p := locktest.DialProxy(t, s, rlock.Config{ReleaseTimeout: time.Second})
		asking, answer := p.HoldRequest(faulttest.Is("EVALSHA"))
		defer answer()
		waiter := locktest.GoLock(rlock.New(ses, "x"), &slowEnd{Context: within(t, time.Minute),
			done: make(chan struct{}), stop: func() { panic("on purpose") }})
		locktest.Get(t, asking, 10*time.Second, "an attempt")
		panicked := make(chan any, 1)
		go func() {
			defer func() { panicked <- recover() }()
			_ = ses.Close()
		}()
		if v := locktest.Get(t, panicked, 20*time.Second, "Close"); v != "on purpose" {
			t.Errorf("Close panics with %v", v)
		}
		locktest.Is(t, "Lock", locktest.Get(t, waiter, 20*time.Second, "Lock").Err, rlock.ErrClosed)
	})
}
