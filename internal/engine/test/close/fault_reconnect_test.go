package close_test

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"testing"
	"time"

	"relock/internal/test/faulttest"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// The connection is lost, and a new one is accepted but never greeted: a firewall that
// drops, a server that is stopped. The caller that dials waits for the greeting. The
// others do not: each call still ends in its own time, and a section by the clock.
func TestFaultSilentReconnectionKeepsNobodyLongerThanAskedFor(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		const timeout, lease = 500 * time.Millisecond, 2 * time.Second
		p := faulttest.New(t, s.Addr)
		opt := p.Option(s.Option())
		dials := make(chan struct{}, 1000)
		opt.DialCtxFn = func(ctx context.Context, addr string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
			dials <- struct{}{}
			return d.DialContext(ctx, "tcp", addr)
		}
		ses, err := rlock.Dial(context.Background(), opt, rlock.Config{ReleaseTimeout: timeout})
		must(t, err)
		defer func() {
			p.BlackHole(false)
			_ = ses.Close()
		}()
		ctx := within(t, 60*time.Second)
		name := redistest.Name(t)
		section, kept, err := rlock.New(ses, name).Lock(ctx, rlock.Lease(lease))
		must(t, err)
		_, h, err := rlock.New(ses, name+"2").Lock(ctx, rlock.Lease(20*time.Second))
		must(t, err)
		for len(dials) > 0 {
			<-dials
		}
		p.BlackHole(true)
		p.Cut()
		locktest.Get(t, dials, 5*time.Second, "the subscriber's connection is dialled")

		patient, stop := context.WithCancel(ctx)
		defer stop()
		first := locktest.GoLock(rlock.New(ses, name+"3"), patient)
		// By the first Lock, which has time, or by the session itself, which asks for its
		// holds after a loss, and has a third of the lease.
		locktest.Get(t, dials, 5*time.Second, "the other connection is dialled")
		calls := faultPromptCalls(ctx, ses, name, timeout, h)
		locktest.Ends(t, section, lease+2*time.Second, rlock.ErrLost) // the dial would time out after 5 s
		locktest.Is(t, "Unlock of the lost hold", kept.Unlock(), rlock.ErrLost)
		for range cap(calls) {
			c := locktest.Get(t, calls, 30*time.Second, "a call's end")
			if c.err == nil {
				t.Errorf("%s reports success", c.what)
			}
			if c.d > c.max+s.Slack() {
				t.Errorf("%s took %v; it was to end within %v (%v)", c.what, c.d, c.max, c.err)
			}
		}
		stop()
		if got := locktest.Get(t, first, s.Slack(), "the first Lock"); !errors.Is(got.Err, context.Canceled) {
			t.Errorf("the first Lock: %v", got.Err)
		}
		p.BlackHole(false)
		redistest.Eventually(t, 2*lease+5*time.Second, "nothing is held", func() bool { return len(faultLockKeys(t, s)) == 0 })
		_, h, err = rlock.New(ses, name).Lock(within(t, 20*time.Second))
		must(t, err)
		must(t, h.Unlock())
	})
}

// A faultTook is how long a call took, and could have taken at most.
type faultTook struct {
	what   string
	d, max time.Duration
	err    error
}

// faultPromptCalls makes calls that have their own ends, each in a goroutine; as many results come as
// the channel has room for.
func faultPromptCalls(ctx context.Context, ses *rlock.Session, name string, release time.Duration, h *rlock.Hold) chan faultTook {
	calls := make(chan faultTook, 4)
	call := func(what string, limit time.Duration, fn func() error) {
		go func() {
			from := time.Now()
			err := fn()
			calls <- faultTook{what, time.Since(from), limit, err}
		}()
	}
	const limit = 300 * time.Millisecond
	call("Unlock", release, h.Unlock)
	call("Lock with a deadline", limit, func() error {
		short, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		_, _, err := rlock.New(ses, name+"4").Lock(short)
		return err
	})
	call("Lock with Wait", limit, func() error {
		_, _, err := rlock.New(ses, name+"5").Lock(ctx, rlock.Wait(limit))
		return err
	})
	call("TryLock with a deadline", limit, func() error {
		short, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		_, _, err := rlock.New(ses, name+"6").TryLock(short)
		return err
	})
	return calls
}

// The same, and the session is closed meanwhile.
func TestFaultCloseDuringSilentReconnection(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		const timeout = 500 * time.Millisecond
		ses, p := locktest.DialProxy(t, s, rlock.Config{ReleaseTimeout: timeout})
		ctx := within(t, 60*time.Second)
		name := redistest.Name(t)
		section, _, err := rlock.New(ses, name).Lock(ctx)
		must(t, err)
		p.BlackHole(true)
		p.Cut()
		first := locktest.GoLock(rlock.New(ses, name+"2"), ctx)
		second := locktest.GoLock(rlock.New(ses, name+"3"), ctx)
		from := time.Now()
		closed := locktest.Go(ses.Close)
		locktest.Ends(t, section, s.Slack(), rlock.ErrClosed)
		for _, c := range []<-chan locktest.Locked{first, second} {
			locktest.Is(t, "Lock", locktest.Get(t, c, timeout+2*time.Second, "Lock").Err, rlock.ErrClosed)
		}
		// The client's dial timeout of 5 s is what closing a hub may take at most.
		if err := locktest.Get(t, closed, 20*time.Second, "Close"); err == nil {
			t.Error("Close reports success")
		}
		if d := time.Since(from); d > 2*timeout+5*time.Second+faultFarewell+s.Slack() {
			t.Errorf("Close took %v", d)
		}
	})
}
