package topology_test

import (
	"context"
	"crypto/tls"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"relock/internal/test/faulttest"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// leads has connections be made by the options that are set last.
type leads struct {
	to    atomic.Pointer[rueidis.ClientOption]
	dials atomic.Int64
	once  atomic.Pointer[func()] // called by the next dial
}

func (l *leads) option(opt rueidis.ClientOption) rueidis.ClientOption {
	first := opt
	l.to.Store(&first)
	opt.DialCtxFn = func(ctx context.Context, _ string, d *net.Dialer, tc *tls.Config) (net.Conn, error) {
		l.dials.Add(1)
		if fn := l.once.Swap(nil); fn != nil {
			(*fn)()
		}
		to := l.to.Load()
		if to.DialCtxFn == nil {
			return d.DialContext(ctx, "tcp", to.InitAddress[0])
		}
		return to.DialCtxFn(ctx, to.InitAddress[0], d, tc)
	}
	return opt
}

// load has a server answer as one that loads its data; false ends it.
func load(p *faulttest.Proxy, on bool) {
	answer := ""
	if on {
		answer = "LOADING Redis is loading the dataset in memory"
	}
	for _, cmd := range []string{"EVALSHA", "EVAL", "PING", "GET", "SET", "DEL"} {
		p.RefuseCommand(cmd, answer)
	}
}

// A session stays with a server that loads its data, and looks now and then where its name leads. When
// the server has loaded them, all goes on over the connections that there were.
func TestSessionStaysWithAServerThatLoads(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		p, opt := faulttest.Of(t, s.Option())
		var name leads
		ses := locktest.DialOption(t, name.option(opt), rlock.Config{})
		ctx := within(t, time.Hour)
		load(p, true)
		p.Reset()
		from, began := name.dials.Load(), time.Now()
		waiter := locktest.BeginLock(ctx, rlock.New(ses, "x"))
		most := 8 * time.Second
		if s.IsMini() {
			most = 10 * time.Minute
		}
		time.Sleep(most)
		waiter.Waits(t)
		if n := p.Count("SUBSCRIBE"); n != 0 {
			t.Errorf("subscribed anew %d times", n)
		}
		n, took := name.dials.Load()-from, time.Since(began)
		// One every 2 to 4 s, more often at first; the direct connection is dialled as often beside, since
		// each refusal is a doubt.
		if long := int64(took / (4 * time.Second)); n < long || n > 5*long+10 {
			t.Errorf("%d dials in %v, want one or two every 2 to 4 s", n, took)
		}
		// It ends while somebody looks where the name leads, who finds this server, and that it serves.
		loaded := func() { load(p, false) }
		name.once.Store(&loaded)
		waiter.Granted(t, locktest.Patience)
		must(t, waiter.Hold.Unlock())
		if n := p.Count("SUBSCRIBE"); n != 0 {
			t.Errorf("subscribed anew %d times, once it had loaded", n)
		}
		must(t, ses.Close())
	})
}

// A server loads its data as it begins to be a replica, and its name leads to the new primary: the
// session follows.
func TestSessionLeavesAServerThatLoadsWhenItsNameMoves(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		old, opt := faulttest.Of(t, s.Option())
		next, there := faulttest.Of(t, s.Option())
		var name leads
		ses := locktest.DialOption(t, name.option(opt), rlock.Config{})
		ctx := within(t, time.Hour)
		_, h, err := rlock.New(ses, "kept").Lock(ctx)
		must(t, err)
		load(old, true)
		waiter := locktest.BeginLock(ctx, rlock.New(ses, "x"))
		from := name.dials.Load()
		redistest.Eventually(t, locktest.Patience, "it looks where the name leads", func() bool { return name.dials.Load() > from })
		waiter.Waits(t)
		name.to.Store(&there)
		waiter.Granted(t, locktest.Patience)
		redistest.Eventually(t, locktest.Patience, "it listens there", func() bool { return next.Count("SUBSCRIBE") > 0 })
		must(t, waiter.Hold.Unlock())
		must(t, h.Unlock())
		must(t, ses.Close())
	})
}
