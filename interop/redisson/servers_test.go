package redisson

import (
	"bytes"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/redis/rueidis"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
)

// An env is a Redis with Java processes on it.
type env struct {
	mode    string             // how Redisson is configured, as Peer.java calls it
	addrs   []string           // of what Redisson is told of
	cluster *redistest.Cluster // nil: there is one master
	single  *redistest.Server  // the master; nil: a Cluster
	opt     rueidis.ClientOption
	admin   rueidis.Client

	dialect
	java3
}

// A dialect is what both sides may be told beside where Redis is.
type dialect struct {
	prefix string // of all names
	resp3  bool   // Redisson speaks RESP3, of which it makes no use unless it is told to
	resp2  bool   // Go speaks RESP2
}

// java3 are three Java processes: two with Redisson's own watchdog, one with a short one.
type java3 struct{ java, other, brisk *peer }

// each runs fn on every kind of deployment, and in every dialect: on a single server; on a master
// with a replica, named or found by sentinels, where Redisson sends what changes a lock in another
// way, with a WAIT; and on a Cluster of three nodes, where messages go by sharded channels. Java
// processes are shared by its subtests.
func each(t *testing.T, fn func(t *testing.T, e *env)) {
	for _, where := range []struct {
		name string
		open func(*testing.T, dialect) *env
		dialect
	}{
		{"single", single, dialect{}},
		{"single-prefix-resp", single, dialect{prefix: "app:", resp3: true, resp2: true}},
		{"replicated", replicated, dialect{}},
		{"sentinel-resp3", sentinel, dialect{resp3: true}},
		{"cluster", cluster, dialect{}},
		{"cluster-prefix-resp3", cluster, dialect{prefix: "app:", resp3: true}},
	} {
		t.Run(where.name, func(t *testing.T) { fn(t, where.open(t, where.dialect).withJava(t)) })
	}
}

func single(t *testing.T, d dialect) *env {
	classPath(t) // skips before servers are started
	s := redistest.Real(t)
	return (&env{mode: "single", single: s, addrs: []string{s.Addr}, opt: s.Option(), dialect: d}).open(t)
}

func replicated(t *testing.T, d dialect) *env {
	classPath(t)
	s := redistest.Real(t, "--repl-diskless-sync-delay", "0")
	host, port, err := net.SplitHostPort(s.Addr)
	locktest.Must(t, err)
	r := redistest.Real(t, "--replicaof", host+" "+port)
	redistest.Eventually(t, answerTimeout, "the replica is online", func() bool {
		info, _ := s.Do(t, "INFO", "replication").ToString()
		return strings.Contains(info, "state=online")
	})
	e := &env{mode: "replicated", single: s, addrs: []string{s.Addr, r.Addr}, opt: s.Option(), dialect: d}
	return e.otherWay(t).open(t)
}

func sentinel(t *testing.T, d dialect) *env {
	classPath(t)
	s := redistest.NewSentinel(t)
	e := &env{mode: "sentinel:" + s.MasterName, addrs: s.SentinelAddrs, opt: s.Option(), dialect: d}
	e.single = s.Node(s.MasterAddr(t))
	return e.otherWay(t).open(t)
}

// otherWay checks at the end that Redisson did use its way for masters with replicas.
func (e *env) otherWay(t *testing.T) *env {
	t.Cleanup(func() {
		if !t.Failed() && e.single.Commands(t)["wait"] == 0 {
			t.Error("Redisson has sent no WAIT: this is no other way")
		}
	})
	return e
}

func cluster(t *testing.T, d dialect) *env {
	classPath(t)
	// rueidis parts with connections five seconds after it has found better ones.
	t.Cleanup(func() {
		redistest.Eventually(t, answerTimeout, "rueidis to close connections", func() bool {
			all := make([]byte, 1<<20)
			return !bytes.Contains(all[:runtime.Stack(all, true)], []byte("clusterClient)._refresh"))
		})
	})
	c := redistest.NewCluster(t)
	return (&env{mode: "cluster", cluster: c, addrs: c.Addrs, opt: c.Option(), dialect: d}).open(t)
}

func (e *env) open(t *testing.T) *env {
	e.opt.AlwaysRESP2 = e.resp2
	client, err := rueidis.NewClient(e.opt)
	locktest.Must(t, err)
	t.Cleanup(client.Close)
	e.admin = client
	return e
}

// withJava starts the Java processes, all at once.
func (e *env) withJava(t *testing.T) *env {
	var wg sync.WaitGroup
	start := func(p **peer, options ...string) {
		wg.Go(func() { *p = startPeer(t, e, options...) })
	}
	start(&e.java)
	start(&e.other)
	start(&e.brisk, "watchdog="+ms(short))
	wg.Wait()
	if e.java == nil || e.other == nil || e.brisk == nil {
		t.Fatal("Java has not come up, see above")
	}
	t.Logf("%s, Redis %s", e.java.version, e.version(t))
	if e.resp3 && e.single != nil {
		clients, err := e.single.Do(t, "CLIENT", "LIST").ToString()
		locktest.Must(t, err)
		if strings.Contains(clients, " resp=") && !strings.Contains(clients, " resp=3") { // Redis 6 does not say
			t.Error("no client speaks RESP3")
		}
	}
	return e
}

// options are what a Java process is told of all this.
func (e *env) options() []string {
	protocol := "RESP2"
	if e.resp3 {
		protocol = "RESP3"
	}
	mode, master, _ := strings.Cut(e.mode, ":")
	return []string{"nodes=" + strings.Join(e.addrs, ","), "mode=" + mode, "master=" + master,
		"prefix=" + e.prefix, "protocol=" + protocol}
}

// key returns the key of a lock in Redis.
func (e *env) key(name string) string { return e.prefix + name }

func (e *env) version(t testing.TB) string {
	t.Helper()
	info, err := e.admin.Do(t.Context(), e.admin.B().Info().Section("server").Build()).ToString()
	locktest.Must(t, err)
	return field(info, "redis_version:")
}
