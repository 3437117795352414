package fault_test

import (
	"context"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"relock/internal/test/faulttest"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// The ways in which Redis is gone: nothing comes back, nothing listens, and a network that is
// silent after the connections have been cut, so that every new one hangs while it greets.
var gone = map[string]func(p *faulttest.Proxy){
	"silent":        func(p *faulttest.Proxy) { p.BlackHole(true) },
	"refused":       func(p *faulttest.Proxy) { p.Refuse(true) },
	"silent greets": func(p *faulttest.Proxy) { p.BlackHole(true); p.Cut() },
}

// bounded runs a call and checks how long it takes.
func bounded(t *testing.T, s *redistest.Server, what string, most time.Duration, call func()) {
	t.Helper()
	begin := time.Now()
	call()
	if d := time.Since(begin); d > most+s.Slack() {
		t.Errorf("%s took %v; its bound is %v", what, d, most)
	}
}

// Each call keeps its bound in an outage, with many callers at once, and Close leaves nothing
// behind: that is for TestMain to see.
func TestCallsAreBoundedInAnOutage(t *testing.T) {
	const timeout, try, farewell = 1500 * time.Millisecond, time.Second, 500 * time.Millisecond
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		var all sync.WaitGroup
		for how, fail := range gone {
			ses, p := locktest.DialProxy(t, s, rlock.Config{ReleaseTimeout: timeout})
			name := redistest.Name(t) + how
			_, h, err := rlock.New(ses, name+"held").Lock(context.Background())
			must(t, err)
			_, _, err = rlock.New(ses, name+"open").Lock(context.Background())
			must(t, err)
			fail(p)
			all.Go(func() {
				var calls sync.WaitGroup
				for what, op := range operations(ses, name) {
					for range 3 {
						calls.Go(func() {
							bound := timeout
							switch what {
							case "TryLock", "Wait(0)", "fair TryLock", "TryRLock", "TryAcquire", "counter try":
								bound = try
							}
							bounded(t, s, how+", "+what, bound, func() {
								locktest.Is(t, what, op(context.Background()), rlock.ErrUnavailable)
							})
						})
					}
				}
				calls.Go(func() {
					bounded(t, s, how+", Unlock", timeout, func() { locktest.Is(t, "Unlock", h.Unlock(), rlock.ErrUnavailable) })
				})
				calls.Go(func() {
					bounded(t, s, how+", Lock", 300*time.Millisecond, func() {
						_, _, err := rlock.New(ses, name+"wait").Lock(context.Background(), rlock.Wait(300*time.Millisecond))
						locktest.Is(t, "Lock", err, rlock.ErrUnavailable, rlock.ErrNotAcquired)
					})
				})
				calls.Wait()
				bounded(t, s, how+", Close", timeout+farewell, func() {
					locktest.Is(t, "Close", ses.Close(), rlock.ErrUnavailable)
				})
			})
		}
		all.Wait()
	})
}

// Close keeps its bound while the client connects anew.
func TestCloseDuringAReconnect(t *testing.T) {
	const timeout, farewell = 300 * time.Millisecond, 500 * time.Millisecond
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		locktest.Together(t, slices.Collect(maps.Keys(gone)), func(how string) {
			trace, failed := locktest.Failed()
			ses, p := locktest.DialProxy(t, s, rlock.Config{ReleaseTimeout: timeout, Trace: trace})
			ctx := within(t, 30*time.Second)
			m := rlock.New(ses, redistest.Name(t)+how)
			gone[how](p)
			short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
			_, _, _ = m.Lock(short)
			cancel()
			waiter := locktest.GoLock(m, ctx)
			locktest.Get(t, failed, 10*time.Second, "a failed attempt")
			bounded(t, s, how+", Close", timeout+farewell, func() { _ = ses.Close() })
			locktest.Is(t, "Lock", locktest.Get(t, waiter, 5*time.Second, "Lock").Err, rlock.ErrClosed)
		})
	})
}

// A client of the caller's own that is closed before the session costs Close no more.
func TestCloseAfterTheClient(t *testing.T) {
	const timeout, farewell = 300 * time.Millisecond, 500 * time.Millisecond
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		client := s.Client(t)
		ses, err := rlock.NewSession(context.Background(), client, rlock.Config{ReleaseTimeout: timeout})
		must(t, err)
		_, h, err := rlock.New(ses, redistest.Name(t)).Lock(context.Background())
		must(t, err)
		_, other, err := rlock.New(ses, redistest.Name(t)).Lock(context.Background())
		must(t, err)
		// A client that is closed while one of its connections is being made goes on with the next.
		redistest.Eventually(t, 10*time.Second, "the session to listen", func() bool {
			return slices.Contains(s.Channels(t), "relock_session:"+ses.ID())
		})
		client.Close()
		bounded(t, s, "TryLock", timeout, func() {
			_, _, err := rlock.New(ses, redistest.Name(t)).TryLock(context.Background())
			locktest.Is(t, "TryLock", err, rlock.ErrUnavailable)
		})
		bounded(t, s, "Unlock", timeout, func() { locktest.Is(t, "Unlock", h.Unlock(), rlock.ErrUnavailable) })
		bounded(t, s, "Close", timeout+farewell, func() { locktest.Is(t, "Close", ses.Close(), rlock.ErrUnavailable) })
		locktest.Is(t, "Unlock", other.Unlock(), rlock.ErrClosed)
	})
}
