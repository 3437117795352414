package redistest

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
)

const (
	clusterNodes = 3
	slots        = 16384

	// topologyTimeout bounds the wait until nodes or sentinels agree, which
	// takes about two seconds on an idle machine.
	topologyTimeout = 60 * time.Second
)

// Cluster is a fresh Redis Cluster of three masters without replicas, which
// share all 16384 slots. A node that dies takes its slots with it, and the
// others go on serving theirs (cluster-require-full-coverage is off).
type Cluster struct {
	// Addrs are the nodes' addresses. The first slots are the first one's.
	Addrs []string

	nodes []*Server // in the order of Addrs
}

// NewCluster starts a cluster and returns once every node knows the owner of
// every slot and has a link to each other one, which takes about two seconds.
// Without a server program the test is skipped, or fails; see the package
// comment. With -short it is skipped.
//
// A node without a link to another one sends it no message, without telling
// anybody, and the owners of the slots can be known before there is one. It
// gives up its link to a node that has been silent for half of
// cluster-node-timeout, which is Redis's own 15 s here: with less, a busy
// machine loses messages to the tests that count on them.
func NewCluster(tb testing.TB) *Cluster {
	tb.Helper()
	SkipShort(tb)
	c := &Cluster{}
	for range clusterNodes {
		s := realSyncing(tb,
			"--cluster-enabled", "yes",
			"--cluster-config-file", "nodes.conf",
			"--cluster-require-full-coverage", "no")
		c.nodes = append(c.nodes, s)
		c.Addrs = append(c.Addrs, s.Addr)
	}
	for i, s := range c.nodes {
		// Different epochs from the start: equal ones collide and are sorted
		// out by renumbering, which takes time.
		must(tb, s, "CLUSTER", "SET-CONFIG-EPOCH", strconv.Itoa(i+1))
		add := []string{"CLUSTER", "ADDSLOTS"}
		for slot := i * slots / clusterNodes; slot < (i+1)*slots/clusterNodes; slot++ {
			add = append(add, strconv.Itoa(slot))
		}
		must(tb, s, add...)
	}
	for _, s := range c.nodes[1:] {
		must(tb, c.nodes[0], "CLUSTER", "MEET", "127.0.0.1", portOf(s.Addr))
	}
	Eventually(tb, topologyTimeout, "the cluster forms", func() bool {
		for _, s := range c.nodes {
			info, _ := s.Do(tb, "CLUSTER", "INFO").ToString()
			if !strings.Contains(info, "cluster_state:ok") ||
				!strings.Contains(info, fmt.Sprintf("cluster_slots_ok:%d", slots)) ||
				!linked(tb, s) {
				return false
			}
		}
		return true
	})
	c.awaitMessages(tb)
	return c
}

// awaitMessages waits until each node hears what is published at each other one. CLUSTER NODES calls a
// link connected as soon as a node tries to connect, and the node at its other end throws messages away
// as long as it does not know who sends them.
func (c *Cluster) awaitMessages(tb testing.TB) {
	tb.Helper()
	const channel = "redistest"
	for _, to := range c.nodes {
		conn, err := net.Dial("tcp", to.Addr)
		if err != nil {
			tb.Fatal(err)
		}
		defer conn.Close()
		if _, err := io.WriteString(conn, command("SUBSCRIBE", channel)); err != nil {
			tb.Fatal(err)
		}
		var heard []byte
		for _, from := range c.nodes {
			Eventually(tb, topologyTimeout, to.Addr+" hears what is published at "+from.Addr, func() bool {
				must(tb, from, "PUBLISH", channel, "from "+from.Addr+".")
				_ = conn.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
				some := make([]byte, 4096)
				n, _ := conn.Read(some)
				heard = append(heard, some[:n]...)
				return bytes.Contains(heard, []byte("from "+from.Addr+"."))
			})
		}
	}
}

// linked reports whether the node has a link to every other one.
func linked(tb testing.TB, s *Server) bool {
	tb.Helper()
	// A line for each node: id, address, flags, master, two times, epoch, link, slots.
	nodes, _ := s.Do(tb, "CLUSTER", "NODES").ToString()
	return strings.Count(nodes, " connected") == clusterNodes && !strings.Contains(nodes, "handshake")
}

// must runs a command on the server and ends the test when it fails.
func must(tb testing.TB, s *Server, args ...string) rueidis.RedisResult {
	tb.Helper()
	r := s.Do(tb, args...)
	if err := r.Error(); err != nil {
		tb.Fatalf("%s: %s: %v", s.Addr, strings.Join(args[:min(len(args), 6)], " "), err)
	}
	return r
}

// Option returns options for a client of the cluster.
func (c *Cluster) Option() rueidis.ClientOption { return option(c.Addrs...) }

// Client returns a new client of the cluster, closed when the test ends.
func (c *Cluster) Client(tb testing.TB, mods ...func(*rueidis.ClientOption)) rueidis.Client {
	tb.Helper()
	return newClient(tb, c.Option(), mods)
}

// NodeClient returns a new client of one node alone, which follows no
// redirection, closed when the test ends.
func (c *Cluster) NodeClient(tb testing.TB, addr string) rueidis.Client {
	tb.Helper()
	return c.Node(addr).Client(tb)
}

// Node returns the node with the given address, to send it a command, pause it
// or restart it; nil when there is none. A node that has been restarted still
// knows the cluster and its slots.
func (c *Cluster) Node(addr string) *Server {
	for _, s := range c.nodes {
		if s.Addr == addr {
			return s
		}
	}
	return nil
}

// KillNode ends the node with the given address at once. Its slots have no
// owner from then on.
func (c *Cluster) KillNode(addr string) { c.Node(addr).Kill() }

// AddReplica starts a node that follows the master with the given address, and returns once
// it is in step and can take over. From then on a node that is silent for two seconds counts as dead.
func (c *Cluster) AddReplica(tb testing.TB, master string) *Server {
	tb.Helper()
	s := realSyncing(tb,
		"--cluster-enabled", "yes",
		"--cluster-config-file", "nodes.conf",
		"--cluster-node-timeout", "2000",
		"--cluster-require-full-coverage", "no",
		"--repl-diskless-sync-delay", "0")
	must(tb, s, "CLUSTER", "MEET", "127.0.0.1", portOf(master))
	masterID := id(tb, c.Node(master))
	Eventually(tb, topologyTimeout, "the replica follows its master", func() bool {
		return s.Do(tb, "CLUSTER", "REPLICATE", masterID).Error() == nil
	})
	Eventually(tb, topologyTimeout, "the replica is in step", func() bool {
		info, _ := s.Do(tb, "INFO", "replication").ToString()
		return strings.Contains(info, "master_link_status:up")
	})
	for _, s := range c.nodes {
		must(tb, s, "CONFIG", "SET", "cluster-node-timeout", "2000")
	}
	c.nodes = append(c.nodes, s)
	c.Addrs = append(c.Addrs, s.Addr)
	return s
}
