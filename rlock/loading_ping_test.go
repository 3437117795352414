package rlock_test

import (
	"testing"
	"time"

	"relock/internal/test/faulttest"
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
		ses := topoDial(t, name.option(opt), rlock.Config{})
		for _, p := range []*faulttest.Proxy{old, next} {
			p.RefuseCommand("PING", "NOPERM this user has no permissions to run the 'ping' command")
		}
		old.RefuseCommand("EVALSHA", "LOADING Redis is loading the dataset in memory")
		old.RefuseCommand("EVAL", "LOADING Redis is loading the dataset in memory")
		waiter := topoLock(within(t, time.Hour), rlock.New(ses, "x"))
		from := name.dials.Load()
		redistest.Eventually(t, topoPatience, "it looks where the name leads", func() bool { return name.dials.Load() > from })
		waiter.waits(t)
		name.to.Store(&there)
		waiter.granted(t, topoPatience)
		must(t, waiter.hold.Unlock())
		must(t, ses.Close())
	})
}

// As long as the name leads to the server that loads, or to another one that does, the session stays.
func TestSessionOfAUserWithoutPingStaysWithAServerThatLoads(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		p, opt := faulttest.Of(t, s.Option())
		var name leads
		ses := topoDial(t, name.option(opt), rlock.Config{})
		p.RefuseCommand("PING", "NOPERM this user has no permissions to run the 'ping' command")
		p.RefuseCommand("EVALSHA", "LOADING Redis is loading the dataset in memory")
		p.RefuseCommand("EVAL", "LOADING Redis is loading the dataset in memory")
		p.Reset()
		from := name.dials.Load()
		waiter := topoLock(within(t, time.Hour), rlock.New(ses, "x"))
		redistest.Eventually(t, topoPatience, "it has looked where the name leads", func() bool { return name.dials.Load() > from+4 })
		waiter.waits(t)
		if n := p.Count("SUBSCRIBE"); n != 0 {
			t.Errorf("subscribed anew %d times", n)
		}
		p.RefuseCommand("EVALSHA", "")
		p.RefuseCommand("EVAL", "")
		waiter.granted(t, topoPatience)
		must(t, waiter.hold.Unlock())
		must(t, ses.Close())
	})
}
