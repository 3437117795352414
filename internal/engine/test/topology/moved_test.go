package topology_test

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"relock/internal/test/faulttest"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// The tests of this file move the name that a session connects to, and leave the connections to the
// old server open: it goes on, as something that is no primary.

// movedName has clients connect to where it leads.
type movedName struct {
	to    atomic.Pointer[rueidis.ClientOption]
	dials atomic.Int64
}

// leads has the clients connect from now on as those with these options do.
func (m *movedName) leads(to rueidis.ClientOption) { m.to.Store(&to) }

func (m *movedName) option(s *redistest.Server) rueidis.ClientOption {
	opt := s.Option()
	opt.DialCtxFn = func(ctx context.Context, _ string, d *net.Dialer, tlsOpt *tls.Config) (net.Conn, error) {
		m.dials.Add(1)
		to := m.to.Load()
		if to.DialCtxFn != nil {
			return to.DialCtxFn(ctx, to.InitAddress[0], d, tlsOpt)
		}
		return d.DialContext(ctx, "tcp", to.InitAddress[0])
	}
	return opt
}

// A failover behind a name: sections are renewed at the new primary, which has the data, and its
// messages wake the waiters. The old one is cut off, so that no message comes through it.
func TestSessionFollowsItsNameToTheNewPrimary(t *testing.T) {
	t.Parallel()
	master, replicas := redistest.NewReplicas(t, 1)
	next := replicas[0]
	var to movedName
	to.leads(master.Option())
	cfg := rlock.Config{Lease: topoLease, PollFloor: time.Minute}
	ses, other := locktest.DialOption(t, to.option(master), cfg), locktest.DialOption(t, to.option(master), cfg)
	ctx := within(t, time.Minute)
	name := redistest.Name(t)
	section, kept, err := rlock.New(ses, name+"kept").Lock(ctx)
	must(t, err)
	_, h, err := rlock.New(other, name).Lock(ctx)
	must(t, err)
	waiter := locktest.BeginLock(ctx, rlock.New(ses, name))
	redistest.Eventually(t, locktest.Patience, "the waiter listens", func() bool {
		return slices.Contains(master.Channels(t), locktest.Channel(name))
	})
	redistest.Eventually(t, locktest.Patience, "the replica has the locks", func() bool {
		return len(next.Keys(t)) == len(master.Keys(t))
	})

	next.Promote(t)
	to.leads(next.Option())
	must(t, master.Do(t, "REPLICAOF", "127.0.0.1", "1").Error())
	redistest.Eventually(t, locktest.Patience, "the waiter listens at the new primary", func() bool {
		return slices.Contains(next.Channels(t), locktest.Channel(name))
	})
	topoStays(t, topoLease+time.Second, section)
	waiter.Waits(t)
	must(t, h.Unlock())
	waiter.Granted(t, locktest.Patience)
	must(t, waiter.Hold.Unlock())
	must(t, kept.Unlock())
	if got := master.Channels(t); len(got) != 0 {
		t.Errorf("still subscribed at the old primary: %q", got)
	}
}

// Whatever a server that is no primary answers, the session leaves it.
func TestSessionLeavesWhatIsNoPrimary(t *testing.T) {
	t.Parallel()
	for _, answer := range []string{"READONLY You can't write", "LOADING Redis is loading", "MASTERDOWN Link with MASTER is down"} {
		t.Run(answer[:8], func(t *testing.T) {
			redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
				old, oldOpt := faulttest.Of(t, s.Option())
				next, nextOpt := faulttest.Of(t, s.Option())
				var to movedName
				to.leads(oldOpt)
				ses := locktest.DialOption(t, to.option(s), rlock.Config{Lease: topoLease})
				ctx := within(t, time.Minute)
				name := redistest.Name(t)
				section, h, err := rlock.New(ses, name).Lock(ctx)
				must(t, err)
				old.RefuseCommand("EVALSHA", answer)
				if strings.HasPrefix(answer, "LOADING") {
					load(old, true) // such a server answers so to all that it is asked
				}
				from := to.dials.Load()
				waiter := locktest.BeginLock(ctx, rlock.New(ses, name+"2"))
				redistest.Eventually(t, locktest.Patience, "it dials anew", func() bool { return to.dials.Load() > from })
				waiter.Waits(t)
				to.leads(nextOpt)
				waiter.Granted(t, locktest.Patience)
				before := locktest.PTTL(t, s, name)
				redistest.Eventually(t, topoLease, "the section is renewed over the new server", func() bool {
					now := locktest.PTTL(t, s, name)
					moved := now > before && locktest.CallsSent(t, next, "renew") > 0
					before = now
					return moved
				})
				if s.IsMini() {
					topoStays(t, topoLease, section)
				}
				must(t, waiter.Hold.Unlock())
				must(t, h.Unlock())
				redistest.Eventually(t, locktest.Patience, "the session listens at the new server", func() bool {
					return next.Count("SUBSCRIBE") > 0
				})
			})
		})
	}
}

// A name that leads to a replica and nowhere else is dialled at a bounded rate, however many callers
// ask. What any server may answer is no reason to dial.
func TestALoneReplicaIsNotStormed(t *testing.T) {
	t.Parallel()
	for answer, leaves := range map[string]bool{"READONLY You can't write": true, "OOM command not allowed": false} {
		t.Run(answer[:8], func(t *testing.T) {
			redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
				p, opt := faulttest.Of(t, s.Option())
				var to movedName
				to.leads(opt)
				ses := locktest.DialOption(t, to.option(s), rlock.Config{})
				name := redistest.Name(t)
				_, _, err := rlock.New(ses, name).Lock(t.Context())
				must(t, err)
				p.RefuseCommand("EVALSHA", answer)
				p.Reset()
				from := to.dials.Load()
				ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
				defer cancel()
				asked := make(chan int, 8)
				for range cap(asked) {
					go func() {
						n := 0
						for ; ctx.Err() == nil; n++ {
							_, _, _ = rlock.New(ses, name+"2").TryLock(ctx)
							time.Sleep(5 * time.Millisecond)
						}
						asked <- n
					}()
				}
				n := 0
				for range cap(asked) {
					n += <-asked
				}
				// It is left 4 times in 3 s, for two connections and those of a subscription that is made
				// twice. A machine that takes longer leaves it more often; without a pause it is hundreds.
				if d := to.dials.Load() - from; leaves && (d < 4 || d > 40) {
					t.Errorf("%d dials for %d attempts, want 4 to 40", d, n)
				}
				if left := p.Count("SUBSCRIBE") > 0; left != leaves {
					t.Errorf("subscribed anew: %v, want %v", left, leaves)
				}
				p.RefuseCommand("EVALSHA", "")
			})
		})
	}
}

// The session cannot close the connections of a client that is not its own, but subscribes where the
// name leads. When the client's connections are closed, all is well.
func TestSessionOfAGivenClientMovesItsSubscriptions(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		old, next := faulttest.New(t, s.Addr), faulttest.New(t, s.Addr)
		var to movedName
		to.leads(old.Option(s.Option()))
		client := s.Client(t, func(opt *rueidis.ClientOption) { opt.DialCtxFn = to.option(s).DialCtxFn })
		ses, err := rlock.NewSession(t.Context(), client, rlock.Config{})
		must(t, err)
		t.Cleanup(func() { _ = ses.Close() })
		ctx, name := within(t, time.Minute), redistest.Name(t)
		old.RefuseCommand("EVALSHA", "READONLY You can't write")
		to.leads(next.Option(s.Option()))
		waiter := locktest.BeginLock(ctx, rlock.New(ses, name))
		redistest.Eventually(t, locktest.Patience, "it listens at the new server", func() bool { return next.Count("SUBSCRIBE") > 0 })
		if _, _, err := rlock.New(ses, name).TryLock(ctx); !errors.Is(err, rlock.ErrUnavailable) {
			t.Errorf("over the client's old connection: %v", err)
		}
		old.Cut()
		waiter.Granted(t, locktest.Patience)
		must(t, waiter.Hold.Unlock())
	})
}

// The name moves after the subscriptions were made anew, and before the next command is sent: they
// follow where the commands are executed.
func TestSubscriptionsFollowTheCommands(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		old, next := faulttest.New(t, s.Addr), faulttest.New(t, s.Addr)
		var to movedName
		to.leads(old.Option(s.Option()))
		ses := locktest.DialOption(t, to.option(s), rlock.Config{Lease: topoLease})
		ctx, name := within(t, time.Minute), redistest.Name(t)
		old.RefuseCommand("EVALSHA", "READONLY You can't write")
		old.Reset()
		if _, _, err := rlock.New(ses, name).TryLock(ctx); !errors.Is(err, rlock.ErrUnavailable) {
			t.Fatal(err)
		}
		redistest.Eventually(t, locktest.Patience, "it listens anew", func() bool { return old.Count("SUBSCRIBE") > 0 })
		to.leads(next.Option(s.Option()))
		_, h, err := rlock.New(ses, name).Lock(ctx)
		must(t, err)
		redistest.Eventually(t, locktest.Patience, "it listens at the new server", func() bool { return next.Count("SUBSCRIBE") > 0 })
		must(t, h.Unlock())
	})
}

// stuckConn is a connection whose Close blocks until it is let go.
type stuckConn struct {
	net.Conn
	letGo <-chan struct{}
}

func (c *stuckConn) Close() error {
	<-c.letGo
	return c.Conn.Close()
}

// The Close of a connection that DialCtxFn has made is code of the caller's, and may block. It holds up
// neither a command whose answer has the session leave the server, nor the end of the session.
func TestAConnectionThatDoesNotCloseHoldsUpNobody(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		p := faulttest.New(t, s.Addr)
		letGo := make(chan struct{})
		opt := s.Option()
		opt.DialCtxFn = func(ctx context.Context, _ string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
			conn, err := d.DialContext(ctx, "tcp", p.Addr())
			if err != nil {
				return nil, err
			}
			return &stuckConn{conn, letGo}, nil
		}
		ses, err := rlock.Dial(within(t, locktest.Patience), opt, rlock.Config{ReleaseTimeout: time.Second})
		must(t, err)
		p.RefuseCommand("EVALSHA", "READONLY You can't write")
		ended := make(chan error, 1)
		go func() {
			_, _, err := rlock.New(ses, "x").TryLock(context.Background())
			ended <- err
		}()
		locktest.Is(t, "TryLock", locktest.Get(t, ended, 10*time.Second, "TryLock"), rlock.ErrUnavailable)
		go func() { ended <- ses.Close() }()
		_ = locktest.Get(t, ended, 10*time.Second, "Close")
		close(letGo)
	})
}
