package redistest

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/redis/rueidis"
)

const (
	sentinels       = 3
	failoverTimeout = 60 * time.Second // measured: 2 s
)

// Sentinel is a fresh master with one replica, watched by three sentinels of
// which two must agree that the master is down, after 500 ms of silence.
type Sentinel struct {
	// MasterName is what the sentinels call the master.
	MasterName string
	// SentinelAddrs are the addresses of the sentinels.
	SentinelAddrs []string

	tb        testing.TB
	servers   []*Server // the master and the replica, as they began
	sentinels []*Server
}

// NewSentinel starts the servers and returns once the replica is in step with
// the master and all sentinels know it and each other, which takes about two
// seconds. Without a server program the test is skipped, or fails; see the
// package comment. With -short it is skipped.
func NewSentinel(tb testing.TB) *Sentinel {
	tb.Helper()
	SkipShort(tb)
	s := &Sentinel{MasterName: "relock-master", tb: tb}
	// The replica comes first: sentinels ask the master for its replicas when
	// they begin, and then every 10 s only.
	master, replicas := NewReplicas(tb, 1)
	s.servers = append([]*Server{master}, replicas...)
	for range sentinels {
		sentinel := s.startSentinel(tb, master.Addr)
		s.sentinels = append(s.sentinels, sentinel)
		s.SentinelAddrs = append(s.SentinelAddrs, sentinel.Addr)
	}
	Eventually(tb, topologyTimeout, "the sentinels agree", func() bool {
		for _, sentinel := range s.sentinels {
			if !s.ready(tb, sentinel) {
				return false
			}
		}
		return true
	})
	return s
}

// startSentinel starts one sentinel that watches the master.
func (s *Sentinel) startSentinel(tb testing.TB, master string) *Server {
	tb.Helper()
	path, dir := binary(tb), syncDir(tb)
	return startReal(tb, func(port int) (*process, error) {
		// A sentinel writes its state into its configuration file, and so takes
		// nothing from the command line.
		conf := filepath.Join(dir, strconv.Itoa(port)+".conf")
		text := fmt.Sprintf(`port %[1]d
bind 127.0.0.1
dir "%[2]s"
sentinel monitor %[3]s 127.0.0.1 %[4]s 2
sentinel down-after-milliseconds %[3]s 500
sentinel failover-timeout %[3]s 2000
sentinel parallel-syncs %[3]s 1
`, port, dir, s.MasterName, portOf(master))
		if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
			return nil, err
		}
		return spawn(path, dir, port, conf, "--sentinel")
	})
}

// ready reports whether the sentinel knows the other two and a healthy replica,
// and would be able to fail over.
func (s *Sentinel) ready(tb testing.TB, sentinel *Server) bool {
	tb.Helper()
	master, err := sentinel.Do(tb, "SENTINEL", "MASTER", s.MasterName).AsStrMap()
	if err != nil || master["flags"] != "master" ||
		master["num-slaves"] != "1" || master["num-other-sentinels"] != strconv.Itoa(sentinels-1) {
		return false
	}
	if sentinel.Do(tb, "SENTINEL", "CKQUORUM", s.MasterName).Error() != nil {
		return false
	}
	replicas, err := sentinel.Do(tb, "SENTINEL", "REPLICAS", s.MasterName).ToArray()
	if err != nil || len(replicas) != 1 {
		return false
	}
	replica, err := replicas[0].AsStrMap()
	return err == nil && replica["flags"] == "slave" && replica["master-link-status"] == "ok"
}

// Option returns options for a client that finds the master by the sentinels.
func (s *Sentinel) Option() rueidis.ClientOption {
	o := option(s.SentinelAddrs...)
	o.Sentinel = rueidis.SentinelOption{MasterSet: s.MasterName}
	return o
}

// Client returns a new client of the master, whichever it is, closed when the
// test ends.
func (s *Sentinel) Client(tb testing.TB, mods ...func(*rueidis.ClientOption)) rueidis.Client {
	tb.Helper()
	return newClient(tb, s.Option(), mods)
}

// Node returns the master or the replica with the given address, to send it a
// command, pause it or restart it; nil when there is none.
func (s *Sentinel) Node(addr string) *Server {
	for _, n := range s.servers {
		if n.Addr == addr {
			return n
		}
	}
	return nil
}

// MasterAddr returns the master's address as the first sentinel that answers
// has it now.
func (s *Sentinel) MasterAddr(tb testing.TB) string {
	tb.Helper()
	for _, sentinel := range s.sentinels {
		if addr := s.master(tb, sentinel); addr != "" {
			return addr
		}
	}
	tb.Fatal("no sentinel knows the master")
	return ""
}

// master returns the master's address as one sentinel has it, or "".
func (s *Sentinel) master(tb testing.TB, sentinel *Server) string {
	tb.Helper()
	addr, err := sentinel.Do(tb, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", s.MasterName).AsStrSlice()
	if err != nil || len(addr) != 2 {
		return ""
	}
	return net.JoinHostPort(addr[0], addr[1])
}

// KillMaster ends the current master at once and returns its address, for
// [Sentinel.WaitFailover].
func (s *Sentinel) KillMaster() string {
	s.tb.Helper()
	addr := s.MasterAddr(s.tb)
	s.Node(addr).Kill()
	return addr
}

// FailOver has the sentinels make the replica the master, as an operator plans it, and the master its replica: that
// answers READONLY from then on. It returns the new master.
func (s *Sentinel) FailOver(tb testing.TB) (now *Server) {
	tb.Helper()
	old := s.MasterAddr(tb)
	must(tb, s.sentinels[0], "SENTINEL", "FAILOVER", s.MasterName)
	now = s.Node(s.WaitFailover(tb, old))
	s.Node(old).Follow(tb, now) // the sentinels take ten seconds
	return now
}

// WaitFailover waits until all sentinels name the same master, which is not
// old and knows that it is the master. It returns its address.
func (s *Sentinel) WaitFailover(tb testing.TB, old string) string {
	tb.Helper()
	var now string
	Eventually(tb, failoverTimeout, "a replica takes over from "+old, func() bool {
		now = s.master(tb, s.sentinels[0])
		if now == "" || now == old {
			return false
		}
		for _, sentinel := range s.sentinels[1:] {
			if s.master(tb, sentinel) != now {
				return false
			}
		}
		role, err := s.Node(now).Do(tb, "ROLE").ToArray()
		if err != nil || len(role) == 0 {
			return false
		}
		name, _ := role[0].ToString()
		return name == "master"
	})
	return now
}
