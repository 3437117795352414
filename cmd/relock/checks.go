package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"relock/internal/script"
)

const (
	pings       = 50                    // enough for a median that one hiccup does not move
	slowPing    = 20 * time.Millisecond // each lock and each unlock takes a round trip
	oldestMajor = 6                     // Redis 6.2 is the oldest that is supported
	oldestMinor = 2
)

// facts is what INFO says of one node.
type facts map[string]string

func (f facts) number(key string) int64 {
	n, _ := strconv.ParseInt(f[key], 10, 64)
	return n
}

// checkNode makes the checks that are about one server.
func checkNode(ctx context.Context, n node, mode rueidis.ClientMode) []Finding {
	findings := []Finding{checkLatency(ctx, n)}
	if mode == rueidis.ClientModeCluster {
		findings = append(findings, checkAsking(ctx, n)) // needs no INFO
	}
	// One section at a time: older servers take only one.
	f := facts{}
	for _, section := range []string{"server", "replication", "memory", "persistence", "stats", "clients"} {
		text, err := n.Do(ctx, n.B().Info().Section(section).Build()).ToString()
		if err != nil {
			return append(findings, warn("info", "version, role, eviction and persistence are not known: "+err.Error(),
				"run doctor as a user that may call INFO (+info)"))
		}
		for key, value := range info(text) {
			f[key] = value
		}
	}
	findings = append(findings, checkVersion(f), checkRole(f, mode), checkEviction(f), checkPersistence(f), checkConnections(f))
	if mode == rueidis.ClientModeCluster {
		findings = append(findings, checkCluster(ctx, n))
	}
	return findings
}

// checkLatency measures round trips.
func checkLatency(ctx context.Context, n node) Finding {
	took := make([]time.Duration, 0, pings)
	for range pings {
		began := time.Now()
		err := n.Do(ctx, n.B().Ping().Build()).Error()
		if script.Denied(err) {
			return fail("latency", "PING is refused: "+err.Error(), "allow PING (+ping)")
		}
		if err != nil {
			return fail("latency", "no answer to PING: "+err.Error(), "look whether the server is up, and the network to it")
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	median, most := took[len(took)/2].Round(time.Microsecond), took[len(took)-1].Round(time.Microsecond)
	text := fmt.Sprintf("a round trip takes %v (median of %d), at most %v", median, pings, most)
	if median > slowPing {
		return warn("latency", text, "place clients nearer to Redis; each lock and each unlock takes a round trip")
	}
	return ok("latency", "%s", text)
}

func checkVersion(f facts) Finding {
	if v := f["valkey_version"]; v != "" {
		return ok("version", "Valkey %s", v)
	}
	version := f["redis_version"]
	var major, minor int
	if _, err := fmt.Sscanf(version, "%d.%d", &major, &minor); err != nil {
		return warn("version", fmt.Sprintf("the server says %q", version), "use Redis 6.2 or later, or Valkey")
	}
	if major < oldestMajor || major == oldestMajor && minor < oldestMinor {
		return fail("version", "Redis "+version, "upgrade to Redis 6.2 or later, or Valkey")
	}
	return ok("version", "Redis %s", version)
}

// checkRole looks whether the node can be written to, and how many replicas follow it.
func checkRole(f facts, mode rueidis.ClientMode) Finding {
	replicas := f.number("connected_slaves")
	switch {
	case f["role"] == "slave" && mode == rueidis.ClientModeCluster:
		return ok("role", "replica of %s:%s", f["master_host"], f["master_port"])
	case f["role"] == "slave":
		return fail("role", fmt.Sprintf("a replica of %s:%s, which refuses to write", f["master_host"], f["master_port"]),
			"give --redis the master, or the Sentinels with ?master_set=")
	case replicas > 0:
		return ok("role", "master with %s; a failover can lose what was locked just before", count(replicas, "replica", "replicas"))
	}
	return ok("role", "master without replicas")
}

// checkEviction looks whether Redis may throw locks away. All locks have an expiry, so the
// policies for keys with one are no better than the others.
func checkEviction(f facts) Finding {
	policy, limit, used := f["maxmemory_policy"], f.number("maxmemory"), f.number("used_memory")
	const remedy = "set maxmemory-policy to noeviction, or keep locks in a Redis of their own"
	switch {
	case policy == "noeviction" && limit > 0 && used > limit/10*9:
		return warn("eviction", fmt.Sprintf("%d %% of maxmemory are in use; when it is full new locks are refused", 100*used/limit),
			"raise maxmemory, or keep locks in a Redis of their own")
	case policy == "noeviction":
		return ok("eviction", "maxmemory-policy is noeviction")
	case f.number("evicted_keys") > 0:
		return fail("eviction", fmt.Sprintf("maxmemory-policy is %s, and %s keys were evicted: locks can be among them", policy, f["evicted_keys"]), remedy)
	case limit > 0:
		return warn("eviction", fmt.Sprintf("maxmemory-policy is %s: when memory is full, locks can be evicted", policy), remedy)
	}
	return ok("eviction", "maxmemory-policy is %s, but there is no maxmemory", policy)
}

// checkPersistence looks what a restart of Redis would leave of the locks.
func checkPersistence(f facts) Finding {
	switch {
	case f["loading"] == "1":
		return fail("persistence", "the server is loading its data, and serves nothing yet", "wait, and run doctor again")
	case f["aof_last_write_status"] == "err":
		return fail("persistence", "the last write to the AOF failed: Redis refuses writes", "look at the server's log, and at its disk")
	case f["rdb_last_bgsave_status"] == "err":
		return fail("persistence", "the last snapshot failed: Redis may refuse writes", "look at the server's log, and at its disk")
	case f["aof_enabled"] == "1":
		return ok("persistence", "AOF is on; what its last fsync missed is lost in a crash")
	}
	return warn("persistence", "there is no AOF: a server that restarts within a lease has forgotten who holds what",
		"set appendonly to yes; or see to it that a restart takes longer than the longest lease")
}

func checkConnections(f facts) Finding {
	if n := f.number("rejected_connections"); n > 0 {
		return warn("connections", fmt.Sprintf("%s refused since the server started, for lack of room (maxclients %s)", count(n, "connection was", "connections were"), f["maxclients"]),
			"raise maxclients; a session needs two connections to each node that it uses")
	}
	return ok("connections", "%s of %s in use, none was refused", f["connected_clients"], f["maxclients"])
}

// checkAsking looks whether the user may follow a slot that moves. The trials do not show that:
// only then does a client send ASKING.
func checkAsking(ctx context.Context, n node) Finding {
	// PING uses up the mark that ASKING leaves for the next command of the connection.
	replies := n.DoMulti(ctx, n.B().Asking().Build(), n.B().Ping().Build())
	switch err := replies[0].Error(); {
	case script.Denied(err):
		return warn("asking", "a lock whose slot is on the move can be neither taken nor released: "+err.Error(), "allow ASKING (+asking)")
	case err != nil:
		return warn("asking", "it is not known whether ASKING is allowed: "+err.Error(), "look at the error, and at the server's log")
	}
	return ok("asking", "clients may follow a slot that is on the move")
}

// checkCluster looks whether all slots are served, as the node sees it.
func checkCluster(ctx context.Context, n node) Finding {
	text, err := n.Do(ctx, n.B().ClusterInfo().Build()).ToString()
	if err != nil {
		return warn("cluster", "its state is not known: "+err.Error(), "run doctor as a user that may call CLUSTER INFO")
	}
	f := facts(info(text))
	if f["cluster_state"] != "ok" || f["cluster_slots_ok"] != "16384" {
		return fail("cluster", fmt.Sprintf("the state is %q, and %s of 16384 slots are served", f["cluster_state"], f["cluster_slots_ok"]),
			"bring the missing masters back, or give their slots to others (redis-cli --cluster fix)")
	}
	return ok("cluster", "all slots are served by %s", count(f.number("cluster_size"), "master", "masters"))
}
