package redistest

import (
	"strings"
	"testing"
)

// NewReplicas starts a master with n replicas, which no sentinel watches, and returns once they
// are in step with it. Without a server program the test is skipped, or fails; see the package
// comment. With -short it is skipped.
func NewReplicas(tb testing.TB, n int) (master *Server, replicas []*Server) {
	tb.Helper()
	SkipShort(tb)
	// By default a master waits 5 s for more replicas before it sends its data.
	master = realSyncing(tb, "--repl-diskless-sync-delay", "0")
	for range n {
		replicas = append(replicas, realSyncing(tb, "--repl-diskless-sync-delay", "0", "--replicaof", "127.0.0.1", portOf(master.Addr)))
	}
	inStep(tb, master, replicas)
	return master, replicas
}

// inStep waits until the master has these replicas, and they its data.
func inStep(tb testing.TB, master *Server, replicas []*Server) {
	tb.Helper()
	Eventually(tb, topologyTimeout, "the replicas are online", func() bool {
		for _, r := range replicas {
			if text, _ := r.Do(tb, "INFO", "replication").ToString(); !strings.Contains(text, "master_link_status:up") {
				return false
			}
		}
		text, _ := master.Do(tb, "INFO", "replication").ToString()
		return strings.Count(text, "state=online") == len(replicas)
	})
}

// Promote makes a replica a master with the data that it has.
func (s *Server) Promote(tb testing.TB) { tb.Helper(); must(tb, s, "REPLICAOF", "NO", "ONE") }

// Follow makes the server a replica, with the data of the master.
func (s *Server) Follow(tb testing.TB, master *Server) {
	tb.Helper()
	must(tb, s, "REPLICAOF", "127.0.0.1", portOf(master.Addr))
}

// FailOver hands the master's part over to a replica as an operator plans it, without a loss: it
// returns when the replica is the master, and the server its replica and in step. Connections to the
// server stay open, and what is subscribed there hears what the new master publishes.
func (s *Server) FailOver(tb testing.TB, replica *Server) {
	tb.Helper()
	must(tb, s, "FAILOVER", "TO", "127.0.0.1", portOf(replica.Addr))
	Eventually(tb, topologyTimeout, "the replica is the master", func() bool {
		text, _ := replica.Do(tb, "INFO", "replication").ToString()
		return strings.Contains(text, "role:master")
	})
	inStep(tb, replica, []*Server{s})
}
