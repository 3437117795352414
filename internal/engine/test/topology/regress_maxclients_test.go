package topology_test

import (
	"testing"
	"time"

	"github.com/redis/rueidis"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// A node of a Cluster that has no room for connections says so in other words than a server of its own. A Lock waits
// for room all the same, and what was held is released when there is some.
func TestANodeHasNoRoomForConnections(t *testing.T) {
	t.Parallel()
	c := redistest.NewCluster(t)
	ctx := within(t, time.Minute)
	opt := c.Option()
	opt.ClientSetInfo, opt.DisableCache = rueidis.DisableClientSetInfo, true // else the client tells of an EOF
	trace, failed := locktest.Failed()
	ses := locktest.DialOption(t, opt, rlock.Config{ReleaseTimeout: 300 * time.Millisecond, Trace: trace})
	node := c.Node(c.Addrs[0])
	name := locktest.NameOn(t, c, node.Addr)
	_, h, err := rlock.New(ses, name).Lock(ctx)
	must(t, err)
	must(t, node.Do(t, "CONFIG", "SET", "maxclients", "1").Error())
	must(t, node.Do(t, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes").Error())
	must(t, node.Do(t, "CLIENT", "KILL", "TYPE", "pubsub").Error())
	topoIs(t, "Unlock", h.Unlock(), rlock.ErrUnavailable)
	next := locktest.GoLock(rlock.New(ses, name), ctx)
	locktest.Get(t, failed, locktest.Patience, "an attempt without an answer")
	must(t, node.Do(t, "CONFIG", "SET", "maxclients", "10000").Error())
	got := locktest.Get(t, next, locktest.Patience, "Lock")
	must(t, got.Err)
	must(t, got.Hold.Unlock())
}
