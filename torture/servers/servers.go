// Package servers has the Redis deployments of the torture test: one server with an
// append-only file, a master with a replica and three sentinels, a cluster of three masters
// with a replica each, several servers that know nothing of each other.
package servers

import (
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"relock/internal/test/redistest"
)

// The topologies.
const (
	Standalone = "standalone"
	Sentinel   = "sentinel"
	Replicas   = "replicas" // as Sentinel, and each acquisition waits for the replica
	Cluster    = "cluster"
	Several    = "several"
)

// Topologies are all of them.
var Topologies = []string{Standalone, Replicas, Sentinel, Cluster, Several}

// settleTimeout bounds the wait for a healthy deployment after a fault.
const settleTimeout = 90 * time.Second

// Set is one deployment.
type Set struct {
	Topology string
	Nodes    []*redistest.Server // all that keep data
	Clients  []string            // addresses that a client begins with
	Sentinel *redistest.Sentinel // nil if there is none
	Cluster  *redistest.Cluster  // nil if there is none

	tb testing.TB
}

// Start starts a deployment, which ends with the test.
func Start(tb testing.TB, topology string) *Set {
	tb.Helper()
	s := &Set{Topology: topology, tb: tb}
	switch topology {
	case Standalone:
		// Each write is on disk before its answer is sent: nothing is lost with the process.
		s.alone(1)
	case Several:
		s.alone(5)
	case Sentinel, Replicas:
		s.Sentinel = redistest.NewSentinel(tb)
		master := s.Sentinel.MasterAddr(tb)
		s.Nodes, s.Clients = []*redistest.Server{s.Sentinel.Node(master)}, s.Sentinel.SentinelAddrs
		s.Nodes = append(s.Nodes, s.Sentinel.Node(s.replicaOf(master)))
	case Cluster:
		s.Cluster = redistest.NewCluster(tb)
		for _, addr := range slices.Clone(s.Cluster.Addrs) {
			s.Cluster.AddReplica(tb, addr)
		}
		for _, addr := range s.Cluster.Addrs {
			s.Nodes = append(s.Nodes, s.Cluster.Node(addr))
		}
		s.Clients = s.Cluster.Addrs
	default:
		tb.Fatalf("topology %q; it must be one of %s", topology, strings.Join(Topologies, ", "))
	}
	s.Settle()
	return s
}

// alone starts n servers of which each is all by itself.
func (s *Set) alone(n int) {
	for range n {
		node := redistest.Real(s.tb, "--appendonly", "yes", "--appendfsync", "always")
		s.Nodes, s.Clients = append(s.Nodes, node), append(s.Clients, node.Addr)
	}
}

// Minority is how many of the servers may fail at the same time without harm to a quorum.
func (s *Set) Minority() int { return (len(s.Nodes) - 1) / 2 }

// replicaOf returns the address of the master's only replica.
func (s *Set) replicaOf(master string) string {
	info, _ := s.Sentinel.Node(master).Do(s.tb, "INFO", "replication").ToString()
	for line := range strings.Lines(info) {
		if rest, ok := strings.CutPrefix(line, "slave0:ip="); ok {
			ip, rest, _ := strings.Cut(rest, ",port=")
			port, _, _ := strings.Cut(rest, ",")
			return ip + ":" + port
		}
	}
	s.tb.Fatalf("the master %s has no replica: %s", master, info)
	return ""
}

// Masters returns the nodes that take writes.
func (s *Set) Masters() []*redistest.Server {
	var all []*redistest.Server
	for _, n := range s.Nodes {
		if field(s.tb, n, "role") == "master" {
			all = append(all, n)
		}
	}
	return all
}

// Leaders returns the addresses of the masters, as the deployment itself sees them.
func (s *Set) Leaders() string {
	if s.Sentinel != nil {
		return s.Sentinel.MasterAddr(s.tb)
	}
	var all []string
	for _, n := range s.Masters() {
		all = append(all, n.Addr)
	}
	return strings.Join(all, " ")
}

// Settle waits until all nodes serve and all replicas are in step, and makes a master that has
// come back a replica where Sentinel would take its time.
func (s *Set) Settle() {
	s.tb.Helper()
	redistest.Eventually(s.tb, settleTimeout, "the deployment is healthy", s.healthy)
}

func (s *Set) healthy() bool {
	master := ""
	if s.Sentinel != nil {
		master = s.Sentinel.MasterAddr(s.tb)
	}
	for _, n := range s.Nodes {
		switch role := field(s.tb, n, "role"); {
		case role == "":
			return false
		case role == "slave":
			if field(s.tb, n, "master_link_status") != "up" {
				return false
			}
		case master != "" && n.Addr != master:
			host, port, _ := strings.Cut(master, ":")
			_ = n.Do(s.tb, "REPLICAOF", host, port).Error() // asked again if it fails
			return false
		}
		if s.Cluster == nil {
			continue
		}
		info, _ := n.Do(s.tb, "CLUSTER", "INFO").ToString()
		if !strings.Contains(info, "cluster_state:ok") || !strings.Contains(info, "cluster_slots_ok:16384") {
			return false
		}
	}
	return s.Cluster == nil || len(s.Masters()) == len(s.Nodes)/2
}

// field returns one line of INFO replication, "" if the node does not answer.
func field(tb testing.TB, n *redistest.Server, name string) string {
	info, err := n.Do(tb, "INFO", "replication").ToString()
	if err != nil {
		return ""
	}
	for line := range strings.Lines(info) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// Replica returns a replica of the master, nil if there is none.
func (s *Set) Replica(master *redistest.Server) *redistest.Server {
	_, port, _ := strings.Cut(master.Addr, ":")
	for _, n := range s.Nodes {
		if field(s.tb, n, "role") == "slave" && field(s.tb, n, "master_port") == port {
			return n
		}
	}
	return nil
}

// Forget kills the node and deletes what it has on disk, so that it comes back empty.
func (s *Set) Forget(n *redistest.Server) {
	s.tb.Helper()
	dir, err := n.Do(s.tb, "CONFIG", "GET", "dir").AsStrMap()
	if err != nil {
		s.tb.Fatalf("CONFIG GET dir: %v", err)
	}
	n.Kill()
	if err := os.RemoveAll(filepath.Join(dir["dir"], "appendonlydir")); err != nil {
		s.tb.Fatal(err)
	}
}

// Keys yields all keys of all masters with the node that has them.
func (s *Set) Keys() iter.Seq2[string, *redistest.Server] {
	return func(yield func(string, *redistest.Server) bool) {
		for _, n := range s.Masters() {
			for _, k := range n.Keys(s.tb) {
				if !yield(k, n) {
					return
				}
			}
		}
	}
}

// Ordinary makes the nodes of a Cluster refuse sharded channels, as those before Redis 7 do, until what it
// returns is called. A node that was restarted knows them again.
func (s *Set) Ordinary() (sharded func()) {
	s.tb.Helper()
	rules := func(rules ...string) {
		for _, n := range s.Nodes {
			if err := n.Do(s.tb, append([]string{"ACL", "SETUSER", "default"}, rules...)...).Error(); err != nil {
				s.tb.Fatalf("%s: ACL SETUSER: %v", n.Addr, err)
			}
		}
	}
	rules("-ssubscribe", "-spublish", "-pubsub|shardnumsub")
	return func() { rules("+@all") }
}
