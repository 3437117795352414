package nemesis

import (
	"context"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"relock/internal/test/redistest"
	"relock/torture/oracle"
	"relock/torture/proxy"
	"relock/torture/servers"
)

// Redis makes servers fail, one fault at a time.
type Redis struct {
	Set     *servers.Set
	Journal *Journal
	Rnd     *rand.Rand
	Slots   []int               // of the locks, for migrations
	Loss    bool                // faults that lose data are among them
	Lease   time.Duration       // of the votes on several servers
	Holder  func() *proxy.Proxy // the network of a worker in a long section, nil if there is none
	Quiet   time.Duration       // the longest time without a fault

	tb      testing.TB
	masters string        // as they were at
	looked  time.Duration // this time
}

// NewRedis returns a nemesis for the servers of set. Its methods are called by the test's own
// goroutine.
func NewRedis(tb testing.TB, set *servers.Set, j *Journal, rnd *rand.Rand) *Redis {
	return &Redis{Set: set, Journal: j, Rnd: rnd, tb: tb}
}

// fault is one kind of fault, with how often it is chosen.
type fault struct {
	name   string
	weight int
	run    func(f *Fault)
	loss   bool
	moves  bool // changes which nodes are masters
}

// Run makes faults until ctx ends, and leaves everything healed.
func (r *Redis) Run(ctx context.Context) {
	faults := r.faults()
	r.Watch()
	// The hardest one first, for a short run may have few.
	if r.Set.Topology == servers.Several && pause(ctx, 2*r.Lease) {
		r.make(faults[len(faults)-1])
	}
	for pause(ctx, 300*time.Millisecond+r.upTo(r.Quiet)) {
		r.makeOne(faults)
	}
	r.Set.Settle()
	r.Look()
}

// Watch begins to watch out for a failover that nobody asked for.
func (r *Redis) Watch() { r.masters, r.looked = r.Set.Leaders(), oracle.Now() }

// Look notes one that has been since Watch, or since it was called last.
func (r *Redis) Look() { r.look(false) }

// makeOne makes one of the faults, by their weights.
func (r *Redis) makeOne(faults []fault) {
	total := 0
	for _, f := range faults {
		total += f.weight
	}
	n := r.Rnd.IntN(total)
	for _, f := range faults {
		if n -= f.weight; n < 0 {
			r.make(f)
			return
		}
	}
}

// make makes one fault.
func (r *Redis) make(f fault) {
	note := r.Journal.Begin(Fault{Name: f.name, Worker: All, Loss: f.loss})
	f.run(note)
	r.Journal.End(note)
	r.look(f.moves)
}

// look notes a failover that nobody asked for: on a busy machine a server may be silent for
// too long.
func (r *Redis) look(asked bool) {
	masters := r.Set.Leaders()
	if masters != r.masters && !asked {
		r.Journal.Past(Fault{
			Name: "failover that the machine caused", Worker: All, Loss: true, Begin: r.looked, End: oracle.Now(),
		})
	}
	r.masters, r.looked = masters, oracle.Now()
}

// pause waits, and reports whether ctx still lives.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

func (r *Redis) faults() []fault {
	all := []fault{
		{name: "SIGSTOP of Redis", weight: 3, run: r.stop},
		{name: "CLIENT PAUSE", weight: 3, run: r.clientPause},
		{name: "CLIENT KILL TYPE normal", weight: 3, run: r.each("CLIENT", "KILL", "TYPE", "normal")},
		{name: "CLIENT KILL TYPE pubsub", weight: 2, run: r.each("CLIENT", "KILL", "TYPE", "pubsub")},
		{name: "SCRIPT FLUSH", weight: 2, run: r.each("SCRIPT", "FLUSH")},
		{name: "OOM (maxmemory)", weight: 2, run: r.setting("maxmemory", "1", "0")},
		{name: "NOREPLICAS (min-replicas-to-write)", weight: 2, run: r.setting("min-replicas-to-write", "9", "0")},
	}
	switch r.Set.Topology {
	case servers.Standalone:
		all = append(all, fault{name: "kill and restart with AOF", weight: 4, run: r.restart})
		if r.Loss {
			all = append(all, fault{name: "kill and restart without AOF", weight: 2, run: r.forget, loss: true})
		}
	case servers.Several:
		// What a quorum has lost is not lost: a server that comes back empty gives no votes.
		all = append(all,
			fault{name: "kill and restart with AOF", weight: 4, run: r.restart},
			fault{name: "kill and restart without AOF", weight: 3, run: r.forget},
			fault{name: "SIGSTOP of two, then a third without AOF", weight: 4, run: r.another})
	case servers.Sentinel, servers.Replicas:
		if r.Loss {
			all = append(all,
				fault{name: "Sentinel failover: master killed", weight: 4, run: r.failover, loss: true, moves: true})
		}
	case servers.Cluster:
		all = append(all,
			fault{name: "slot migration", weight: 4, run: r.migrate},
			fault{name: "slot migration that stood still", weight: 4, run: r.migrateHalf},
			fault{name: "CLUSTER FAILOVER (in step)", weight: 3, run: r.handOver, moves: true})
		if r.Loss {
			all = append(all,
				fault{name: "Cluster failover: master killed", weight: 3, run: r.failover, loss: true, moves: true})
		}
	}
	return all
}

// patience is for how long servers may be silent without a failover.
func (r *Redis) patience() time.Duration {
	switch r.Set.Topology {
	case servers.Sentinel, servers.Replicas:
		return 250 * time.Millisecond
	case servers.Cluster:
		return 700 * time.Millisecond
	}
	return 3 * time.Second
}

func (r *Redis) upTo(d time.Duration) time.Duration { return upTo(r.Rnd, d) }

func (r *Redis) master() *redistest.Server {
	all := r.Set.Masters()
	if len(all) == 0 {
		r.tb.Fatal("no node is a master")
	}
	return all[r.Rnd.IntN(len(all))]
}

func (r *Redis) stop(f *Fault) {
	all := r.victims(f)
	for _, s := range all {
		s.Pause()
	}
	time.Sleep(50*time.Millisecond + r.upTo(r.patience()))
	for _, s := range all {
		s.Resume()
	}
}

func (r *Redis) clientPause(f *Fault) {
	d := 50*time.Millisecond + r.upTo(r.patience())
	mode := "ALL"
	if r.Rnd.IntN(2) == 0 {
		mode = "WRITE"
	}
	for _, s := range r.victims(f) {
		r.command(s, "CLIENT", "PAUSE", strconv.FormatInt(d.Milliseconds(), 10), mode)
	}
	time.Sleep(d)
}

// each sends a command to all masters.
func (r *Redis) each(args ...string) func(*Fault) {
	return func(*Fault) {
		for _, m := range r.Set.Masters() {
			r.command(m, args...)
		}
	}
}

// command may fail: CLIENT KILL, for one, may end the connection that it came over.
func (r *Redis) command(s *redistest.Server, args ...string) {
	if err := s.Do(r.tb, args...).Error(); err != nil {
		r.tb.Logf("%s %v: %v", s.Addr, args, err)
	}
}

// setting changes a configuration of all masters for a while.
func (r *Redis) setting(name, bad, good string) func(*Fault) {
	return func(*Fault) {
		masters := r.Set.Masters()
		for _, m := range masters {
			r.command(m, "CONFIG", "SET", name, bad)
		}
		time.Sleep(100*time.Millisecond + r.upTo(2500*time.Millisecond))
		for _, m := range masters {
			r.command(m, "CONFIG", "SET", name, good)
		}
	}
}

// RefuseWrites has Redis refuse all writes for a while.
func (r *Redis) RefuseWrites(d time.Duration) {
	note := r.Journal.Begin(Fault{Name: "NOREPLICAS at the end", Worker: All})
	masters := r.Set.Masters()
	for _, m := range masters {
		r.command(m, "CONFIG", "SET", "min-replicas-to-write", "9")
	}
	time.Sleep(d)
	for _, m := range masters {
		r.command(m, "CONFIG", "SET", "min-replicas-to-write", "0")
	}
	r.Journal.End(note)
	r.Look()
}

// failover kills a master, waits for its replica to take over, and starts the old one again,
// which becomes the replica.
func (r *Redis) failover(*Fault) {
	old := r.master()
	if r.Set.Sentinel != nil {
		addr := r.Set.Sentinel.KillMaster()
		r.Set.Sentinel.WaitFailover(r.tb, addr)
		old = r.Set.Sentinel.Node(addr)
	} else {
		replica := r.Set.Replica(old)
		old.Kill()
		r.becomesMaster(replica)
	}
	time.Sleep(r.upTo(time.Second))
	old.Restart(r.tb)
	r.Set.Settle()
}

// handOver makes a replica the master after it has caught up. Nothing is lost.
func (r *Redis) handOver(*Fault) {
	replica := r.Set.Replica(r.master())
	if replica == nil {
		return
	}
	r.command(replica, "CLUSTER", "FAILOVER")
	r.becomesMaster(replica)
	r.Set.Settle()
}

func (r *Redis) becomesMaster(n *redistest.Server) {
	redistest.Eventually(r.tb, time.Minute, "the replica takes over", func() bool {
		role, err := n.Do(r.tb, "ROLE").ToArray()
		if err != nil || len(role) == 0 {
			return false
		}
		name, _ := role[0].ToString()
		return name == "master"
	})
}
