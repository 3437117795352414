package main_test

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"relock/internal/test/redistest"
)

// clusterLocks are how many locks holders has, without the semaphore.
const clusterLocks = 12

// holders has commands hold locks on all nodes, lock:0 and so on, and lock:s, a semaphore.
func holders(t *testing.T, cluster *redistest.Cluster, c cli) (held []*running, sem *running) {
	t.Helper()
	for i := range clusterLocks {
		held = append(held, c.start("run", fmt.Sprintf("lock:%d", i), "--", "sh", "-c", "echo in; sleep 1000"))
	}
	nodes := map[string]bool{}
	for i, r := range held {
		r.expect("in")
		nodes[cluster.SlotOwner(t, redistest.Slot(fmt.Sprintf("lock:%d", i)))] = true
	}
	if len(nodes) < 3 {
		t.Fatalf("the locks are on %d nodes", len(nodes))
	}
	sem = c.start("run", "--permits", "1", "--limit", "1", "lock:s", "--", "sh", "-c", "echo in; sleep 1000")
	sem.expect("in")
	return held, sem
}

// In a Cluster all commands work on all nodes, and a lock is listed once.
func TestCluster(t *testing.T) {
	t.Parallel()
	cluster := redistest.NewCluster(t)
	c := cli{t, "redis://" + cluster.Addrs[0]}
	held, sem := holders(t, cluster, c)
	waiter := c.start("run", "lock:7", "--", "echo", "next")
	settles(t, "13 locks, 1 waiting", func() string {
		var waiting int
		all := decode[[]lock](c, "ls", "lock:*")
		for _, l := range all {
			waiting += l.Line
		}
		return fmt.Sprintf("%d locks, %d waiting", len(all), waiting)
	})
	if l := decode[lock](c, "show", "lock:7"); !l.Held || l.Line != 1 {
		t.Errorf("lock:7 is %+v", l)
	}
	last := refreshes(c, "-n", "2", "--interval", "200ms")
	if len(last.Top) != clusterLocks+1 || last.Top[0].Name != "lock:7" || last.Top[0].Line != 1 {
		t.Errorf("top has %d locks, first %+v", len(last.Top), last.Top)
	}
	c.want(0, "force", "lock:7")
	waiter.expect("next")
	if code := held[7].wait(); code != 79 {
		t.Errorf("exit code %d, want 79", code)
	}
	held[7] = sem
	for _, r := range held {
		r.signal(syscall.SIGTERM)
	}
	for _, r := range held {
		if code := r.wait(); code != 143 {
			t.Errorf("exit code %d, want 143", code)
		}
	}
	doctorOfACluster(t, cluster, c)
}

// doctorOfACluster checks that doctor looks at each node, and finds that one is gone.
func doctorOfACluster(t *testing.T, cluster *redistest.Cluster, c cli) {
	t.Helper()
	all, versions := examine(c, 0), 0
	for _, f := range all {
		if f.Check == "version" {
			versions++
		}
	}
	if l, text := level(t, all, "cluster"); versions != 3 || l != "ok" {
		t.Errorf("doctor has seen %d nodes: %s %s", versions, l, text)
	}
	if l, text := level(t, all, "messages"); l != "ok" {
		t.Errorf("messages: %s %s", l, text)
	}
	cluster.KillNode(cluster.Addrs[2])
	eventually(t, "the loss of a node to be found", func() bool {
		r := c.run("doctor", "--json")
		return r.code == 1 && strings.Contains(r.out, `"check": "cluster"`) && strings.Contains(r.out, "of 16384 slots")
	})
}

// With a URL of Sentinels the commands find the master, also after a failover.
func TestSentinel(t *testing.T) {
	t.Parallel()
	s := redistest.NewSentinel(t)
	addrs := s.SentinelAddrs
	c := cli{t, "redis://" + addrs[0] + "?addr=" + addrs[1] + "&addr=" + addrs[2] + "&master_set=" + s.MasterName}
	r := c.start("run", "x", "--", "sh", "-c", "echo in; sleep 1000")
	r.expect("in")
	if all := decode[[]lock](c, "ls"); len(all) != 1 || all[0].Name != "x" {
		t.Errorf("ls has %+v", all)
	}
	if l, text := level(t, examine(c, 0), "role"); l != "ok" || !strings.Contains(text, "1 replica;") {
		t.Errorf("role: %s %s", l, text)
	}
	s.WaitFailover(t, s.KillMaster())
	c.want(0, "run", "y", "--", "true")
}
