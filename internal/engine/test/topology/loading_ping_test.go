package topology_test

import (
	"testing"
	"time"

	"relock/internal/test/faulttest"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// A server that loads its data says so only of commands that the user may use. The session of one who may
// not use PING any more leaves it too, for the server that its name leads to now.
func TestSessionOfAUserWithoutPingLeavesAServerThatLoads(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		old, opt := faulttest.Of(t, s.Option())
		next, there := faulttest.Of(t, s.Option())
		var name leads
		ses := locktest.DialOption(t, name.option(opt), rlock.Config{})
		for _, p := range []*faulttest.Proxy{old, next} {
			p.RefuseCommand("PING", "NOPERM this user has no permissions to run the 'ping' command")
		}
		old.RefuseCommand("EVALSHA", "LOADING Redis is loading the dataset in memory")
		old.RefuseCommand("EVAL", "LOADING Redis is loading the dataset in memory")
		waiter := locktest.BeginLock(within(t, time.Hour), rlock.New(ses, "x"))
		from := name.dials.Load()
		redistest.Eventually(t, locktest.Patience, "it looks where the name leads", func() bool { return name.dials.Load() > from })
		waiter.Waits(t)
		name.to.Store(&there)
		waiter.Granted(t, locktest.Patience)
		must(t, waiter.Hold.Unlock())
		must(t, ses.Close())
	})
}

// As long as the name leads to the server that loads, or to another one that does, the session stays.
func TestSessionOfAUserWithoutPingStaysWithAServerThatLoads(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		p, opt := faulttest.Of(t, s.Option())
		var name leads
		ses := locktest.DialOption(t, name.option(opt), rlock.Config{})
		p.RefuseCommand("PING", "NOPERM this user has no permissions to run the 'ping' command")
		p.RefuseCommand("EVALSHA", "LOADING Redis is loading the dataset in memory")
		p.RefuseCommand("EVAL", "LOADING Redis is loading the dataset in memory")
		p.Reset()
		from := name.dials.Load()
		waiter := locktest.BeginLock(within(t, time.Hour), rlock.New(ses, "x"))
		redistest.Eventually(t, locktest.Patience, "it has looked where the name leads", func() bool { return name.dials.Load() > from+4 })
		waiter.Waits(t)
		if n := p.Count("SUBSCRIBE"); n != 0 {
			t.Errorf("subscribed anew %d times", n)
		}
		p.RefuseCommand("EVALSHA", "")
		p.RefuseCommand("EVAL", "")
		waiter.Granted(t, locktest.Patience)
		must(t, waiter.Hold.Unlock())
		must(t, ses.Close())
	})
}
