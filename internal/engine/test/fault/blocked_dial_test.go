package fault_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"

	"relock/internal/test/faulttest"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// A dial function of the caller's that blocks, whatever its context says, holds up no other call and
// no section: each ends in its own time (R32).
func TestBlockedDialStopsNothing(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		const timeout, farewell = 500 * time.Millisecond, 500 * time.Millisecond
		lease := s.Slowed(time.Second)
		p, opt := faulttest.Of(t, s.Option())
		var blocks atomic.Bool
		blocked, free := make(chan struct{}, 1000), make(chan struct{})
		defer close(free)
		dial := opt.DialCtxFn
		opt.DialCtxFn = func(ctx context.Context, addr string, d *net.Dialer, tc *tls.Config) (net.Conn, error) {
			if blocks.Load() {
				blocked <- struct{}{}
				<-free
			}
			if dial != nil {
				return dial(ctx, addr, d, tc)
			}
			return d.DialContext(ctx, "tcp", addr)
		}
		ses, err := rlock.Dial(within(t, 30*time.Second), opt, rlock.Config{Lease: lease, ReleaseTimeout: timeout})
		must(t, err)
		defer func() { _ = ses.Close() }()
		ctx := within(t, time.Minute)
		name := redistest.Name(t)
		section, kept, err := rlock.New(ses, name).Lock(ctx)
		must(t, err)
		blocks.Store(true)
		p.Cut()
		locktest.Get(t, blocked, 5*time.Second, "a connection is dialled")
		bounded(t, s, "Lock with Wait", timeout, func() {
			_, _, err := rlock.New(ses, name+"2").Lock(ctx, rlock.Wait(timeout))
			locktest.Is(t, "Lock", err, rlock.ErrNotAcquired, rlock.ErrUnavailable)
		})
		locktest.Ends(t, section, lease+s.Slack(), rlock.ErrLost)
		bounded(t, s, "Unlock", timeout, func() { locktest.Is(t, "Unlock", kept.Unlock(), rlock.ErrLost) })
		bounded(t, s, "Close", timeout+farewell, func() { _ = ses.Close() })
	})
}

// Dial ends soon after its context, or the error that it has found, whichever of its connections is just
// being dialled, and leaves nothing behind: that is for the bubble to see.
func TestDialThatFailsEndsItsDials(t *testing.T) {
	const farewell = 750 * time.Millisecond // for the record, the ends in order, and those by force
	for name, c := range map[string]struct {
		blocks int32 // which dial
		refuse string
		want   error
	}{
		"the first":      {1, "", context.Canceled},
		"the subscriber": {2, "", context.Canceled},
		"the direct one": {3, "EVALSHA", nil},
	} {
		t.Run(name, func(t *testing.T) {
			redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
				p, opt := faulttest.Of(t, s.Option())
				if c.refuse != "" {
					p.RefuseCommand(c.refuse, "ERR not here")
				}
				given, end := context.WithCancel(t.Context())
				defer end()
				var dials atomic.Int32
				dial := opt.DialCtxFn
				opt.DialCtxFn = func(ctx context.Context, addr string, d *net.Dialer, tc *tls.Config) (net.Conn, error) {
					if dials.Add(1) == c.blocks {
						if c.want != nil {
							end()
						}
						<-ctx.Done()
						return nil, ctx.Err()
					}
					if dial != nil {
						return dial(ctx, addr, d, tc)
					}
					return d.DialContext(ctx, "tcp", addr)
				}
				bounded(t, s, "Dial", farewell, func() {
					_, err := rlock.Dial(given, opt, rlock.Config{})
					if err == nil || c.want != nil && !(errors.Is(err, c.want) && errors.Is(err, rlock.ErrUnavailable)) {
						t.Errorf("Dial: %v", err)
					}
				})
				if dials.Load() < c.blocks {
					t.Errorf("%d connections were dialled", dials.Load())
				}
			})
		})
	}
}

// Dial ends soon after its context also while servers that it has connected to say nothing to its greeting.
func TestDialOfSilentServersEndsWithItsContext(t *testing.T) {
	const farewell = 750 * time.Millisecond
	for name, opt := range map[string]rueidis.ClientOption{
		"one server": {InitAddress: []string{"silent:1"}},
		"RESP2":      {InitAddress: []string{"silent:1"}, AlwaysRESP2: true},
		"a Cluster":  {InitAddress: []string{"silent:1", "silent:2"}},
		"Sentinels":  {InitAddress: []string{"silent:1", "silent:2"}, Sentinel: rueidis.SentinelOption{MasterSet: "x"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				defer time.Sleep(time.Second) // a Cluster's client ends that much later
				given, end := context.WithCancel(t.Context())
				defer end()
				opt.DialCtxFn = func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) {
					ours, theirs := net.Pipe()
					go func() {
						_, _ = theirs.Read(make([]byte, 1))
						end()
						_, _ = io.Copy(io.Discard, theirs)
					}()
					return ours, nil
				}
				began := time.Now()
				_, err := rlock.Dial(given, opt, rlock.Config{})
				locktest.Is(t, "Dial", err, context.Canceled, rlock.ErrUnavailable)
				if took := time.Since(began); took > farewell {
					t.Errorf("Dial took %v", took)
				}
			})
		})
	}
}

// A dial function of the caller's that waits until its context ends, as where packets are lost, is not waited for longer
// than the client's own way of dialling: the session goes on when the next dial succeeds.
func TestADialThatNeverEndsIsGivenUp(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		p, opt := faulttest.Of(t, s.Option())
		opt.Dialer.Timeout = 3 * time.Second
		var blocks atomic.Bool
		blocked := make(chan struct{}, 1000)
		dial := opt.DialCtxFn
		opt.DialCtxFn = func(ctx context.Context, addr string, d *net.Dialer, tc *tls.Config) (net.Conn, error) {
			if blocks.Load() {
				blocked <- struct{}{}
				<-ctx.Done()
				return nil, ctx.Err()
			}
			if dial != nil {
				return dial(ctx, addr, d, tc)
			}
			return d.DialContext(ctx, "tcp", addr)
		}
		ses, err := rlock.Dial(within(t, 30*time.Second), opt, rlock.Config{})
		must(t, err)
		defer func() { _ = ses.Close() }()
		blocks.Store(true)
		p.Cut()
		acquired := locktest.GoLock(rlock.New(ses, redistest.Name(t)), within(t, time.Minute))
		for range 2 { // for commands, and for messages
			locktest.Get(t, blocked, 20*time.Second, "both connections are dialled")
		}
		blocks.Store(false)
		got := locktest.Get(t, acquired, 20*time.Second, "Lock returns")
		must(t, got.Err)
		must(t, got.Hold.Unlock())
		redistest.Eventually(t, 20*time.Second, "the session to listen again", func() bool { return len(s.Channels(t)) > 0 })
	})
}
