package topology_test

import (
	"testing"
	"time"

	"relock/internal/test/faulttest"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// The one message of a planned failover does not reach a session, and the old master, a replica now, serves its
// connections: the session finds the new master all the same, for its commands and for the messages to its waiters.
func TestASessionThatMissesTheNewsOfAFailoverFollows(t *testing.T) {
	t.Parallel() // it is idle most of the time
	s := redistest.NewSentinel(t)
	news := faulttest.New(t, s.SentinelAddrs[0])
	o := s.Option()
	o.InitAddress = []string{news.Addr()}
	a, b := locktest.DialOption(t, o, topoFailover()), locktest.DialOption(t, s.Option(), topoFailover())
	news.DropMessages(true)
	master := s.FailOver(t)
	w := locktest.BeginLock(within(t, time.Minute), rlock.New(a, redistest.Name(t)))
	w.Granted(t, 2*locktest.Patience)
	must(t, w.Hold.Unlock())
	topoWakes(t, b, a, master)
}
