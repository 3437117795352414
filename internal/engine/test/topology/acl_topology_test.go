package topology_test

import (
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// allow makes the user of the documented ACL on some servers.
func allow(t *testing.T, servers ...*redistest.Server) {
	t.Helper()
	for _, s := range servers {
		topoDo(t, s, redistest.DocumentedACL(t)...)
		topoDo(t, s, "ACL", "LOG", "RESET")
	}
}

// nothingDenied reports what servers have refused since allow.
func nothingDenied(t *testing.T, servers ...*redistest.Server) {
	t.Helper()
	for _, s := range servers {
		denied, err := s.Do(t, "ACL", "LOG").ToArray()
		must(t, err)
		for _, d := range denied {
			entry, _ := d.AsStrMap()
			t.Errorf("%s denied: %v %v", s.Addr, entry["reason"], entry["object"])
		}
	}
}

// A client that finds the master by the sentinels asks it besides whether it is one.
func TestDocumentedACLIsEnoughWithSentinel(t *testing.T) {
	t.Parallel()
	s := redistest.NewSentinel(t)
	master := s.Node(s.MasterAddr(t))
	allow(t, master)
	opt := s.Option()
	opt.Username, opt.Password = "locks", "secret"
	ses := locktest.DialOption(t, opt, rlock.Config{Prefix: "app:"})
	_, h, err := rlock.New(ses, "x").Lock(within(t, time.Minute))
	must(t, err)
	must(t, h.Unlock())
	nothingDenied(t, master)
}

// A key that is on neither node of a slot which is moving is made on the new one, where the client
// has to say that it was sent there.
func TestDocumentedACLIsEnoughWhileASlotMoves(t *testing.T) {
	t.Parallel()
	c := redistest.NewCluster(t)
	var nodes []*redistest.Server
	for _, addr := range c.Addrs {
		nodes = append(nodes, c.Node(addr))
	}
	allow(t, nodes...)
	opt := c.Option()
	opt.Username, opt.Password = "locks", "secret"
	ses := locktest.DialOption(t, opt, rlock.Config{Prefix: "app:"})
	m := topoBegin(t, c, redistest.Slot("app:x"), c.Addrs[1])
	_, h, err := rlock.New(ses, "x").Lock(within(t, time.Minute))
	must(t, err)
	must(t, h.Unlock())
	m.end(t)
	nothingDenied(t, nodes...)
}
