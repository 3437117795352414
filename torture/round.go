package torture

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"relock/internal/test/redistest"
	"relock/torture/check"
	"relock/torture/nemesis"
	"relock/torture/oracle"
	"relock/torture/proxy"
	"relock/torture/servers"
	"relock/torture/worker"
)

// round is a round that runs.
type round struct {
	Plan
	tb      testing.TB
	set     *servers.Set
	journal *nemesis.Journal
	locks   []worker.Lock
	procs   []*process
	dir     string // of what the workers write down

	mu    sync.Mutex
	fails []string
}

// failed notes what is wrong apart from what the checks find.
func (r *round) failed(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fails = append(r.fails, fmt.Sprintf(format, args...))
}

// Outcome is what a round has found.
type Outcome struct {
	Plan   Plan
	Result check.Result
	Faults []nemesis.Fault
	Fails  []string
}

// Run runs one round on the servers of set, which are healthy before and afterwards and have
// no keys that matter.
func Run(tb testing.TB, set *servers.Set, p Plan) *Outcome {
	tb.Helper()
	r := &round{Plan: p, tb: tb, set: set, journal: new(nemesis.Journal), locks: p.locks()}
	for _, m := range set.Masters() {
		m.FlushAll(tb)
	}
	r.dir = tb.TempDir()
	defer os.RemoveAll(r.dir) // a long run has many rounds
	if p.Ordinary {
		defer set.Ordinary()()
	}
	defer func() {
		for _, w := range r.procs {
			w.end()
		}
	}()
	defer r.pulses()()
	calm := time.Duration(0)
	if r.start() {
		redis := r.chaos()
		calm = oracle.Now()
		r.calm()
		redis.Look() // a busy machine may have had a failover since
	}
	o := &Outcome{Plan: p, Fails: r.fails}
	in := check.Round{Locks: r.locks, Faults: r.journal.Faults(), MaxLease: p.maxLease(), CalmFrom: calm, Minority: set.Minority(), Costs: p.costs(), Histories: p.Rush}
	for _, w := range r.procs {
		all, err := w.read()
		if err != nil {
			r.failed("read the oracle: %v", err)
		}
		in.Processes = append(in.Processes, all...)
	}
	in.Counters = r.counters()
	sets, err := oracle.OpenSet(filepath.Join(r.dir, "set"), len(r.locks))
	if err != nil {
		r.failed("open the sets: %v", err)
	}
	for i := range r.locks {
		in.Heads = append(in.Heads, sets.Head(i))
	}
	r.leftovers(&in)
	o.Result, o.Faults, o.Fails = check.Run(&in), in.Faults, r.fails
	return o
}

// pulses watches all servers, until what it returns is called.
func (r *round) pulses() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for _, n := range r.set.Nodes {
		wg.Go(func() { nemesis.Pulse(ctx, n.Addr, r.journal) })
	}
	return func() {
		cancel()
		wg.Wait()
	}
}

// start starts the workers, and makes the counters.
func (r *round) start() bool {
	for i, l := range r.locks {
		if l.Kind != worker.Counter {
			continue
		}
		m := r.owner(l.Name)
		if err := m.Do(r.tb, "SET", r.locks[i].Name, fmt.Sprint(l.Limit)).Error(); err != nil {
			r.tb.Fatalf("SET: %v", err)
		}
	}
	for i := range r.Workers {
		w, err := newProcess(i, r.job(i), r.dir, r.failed)
		if err != nil {
			r.tb.Fatal(err)
		}
		r.procs = append(r.procs, w)
		w.Respawn()
	}
	for _, w := range r.procs {
		if w.life == nil {
			return false
		}
		if _, ok := w.await(worker.Ready, startWithin); !ok {
			return false
		}
	}
	return true
}

// job is that of a worker.
func (r *round) job(i int) worker.Job {
	leases := r.leases()
	job := worker.Job{
		Seed:    r.Seed + uint64(i),
		Process: worker.Process{Number: i},
		Deployment: worker.Deployment{Servers: r.set.Clients,
			Standalone: r.set.Topology == servers.Standalone, Several: r.set.Topology == servers.Several},
		Options: worker.Options{Lease: leases[i%len(leases)], HandOver: r.handOver(i),
			PollFloor: r.pollFloor(), QueueLease: r.queueLease(), Replicas: r.replicas()},
		Callers: worker.Callers{Sessions: r.sessions(i), Goroutines: r.Each, Crowd: r.Crowd > 0, Rush: r.Rush},
		Locks:   r.locks, Set: filepath.Join(r.dir, "set"),
		Invariants: (r.Seed+uint64(i))%2 == 0, ProbeWait: r.probeWait(),
	}
	if r.set.Sentinel != nil {
		job.MasterName = r.set.Sentinel.MasterName
	}
	return job
}

// owner returns the node that has the key.
func (r *round) owner(key string) *redistest.Server {
	if r.set.Cluster != nil {
		return r.set.Cluster.Node(r.set.Cluster.SlotOwner(r.tb, redistest.Slot(key)))
	}
	return r.set.Masters()[0]
}

// chaos lets the nemeses work, and returns that of Redis.
func (r *round) chaos() *nemesis.Redis {
	ctx, stop := context.WithTimeout(context.Background(), r.Chaos)
	defer stop()
	redis := r.redis()
	if r.Crowd > 0 {
		r.crowd(redis).Run(ctx)
	} else {
		r.disorder(ctx, redis)
	}
	// The last fault refuses every renewal once. What the sessions hold they have to keep all
	// the same, since nothing fails afterwards.
	redis.RefuseWrites(r.maxLease()/3 + 200*time.Millisecond)
	return redis
}

// redis returns what makes the servers fail.
func (r *round) redis() *nemesis.Redis {
	redis := nemesis.NewRedis(r.tb, r.set, r.journal, rand.New(rand.NewPCG(r.Seed, 0)))
	redis.Loss, redis.Lease = r.Loss, r.maxLease()
	redis.Holder, redis.Quiet = r.holder, 2*r.quietOfWorkers()
	for _, l := range r.locks {
		redis.Slots = append(redis.Slots, redistest.Slot(l.Name))
	}
	return redis
}

// disorder lets servers and workers fail at the same time.
func (r *round) disorder(ctx context.Context, redis *nemesis.Redis) {
	var wg sync.WaitGroup
	lanes := r.lanes()
	for lane := range lanes {
		n := &nemesis.Workers{
			Processes: map[int]nemesis.Process{},
			Journal:   r.journal, Rnd: rand.New(rand.NewPCG(r.Seed, uint64(lane)+1)),
			Quiet: r.quietOfWorkers(),
		}
		for i := lane; i < len(r.procs); i += lanes {
			n.Processes[i] = r.procs[i]
		}
		wg.Go(func() { n.Run(ctx) })
	}
	redis.Run(ctx)
	wg.Wait()
}

// holder returns the network of a worker that is inside a long section, nil if none is.
func (r *round) holder() *proxy.Proxy {
	for _, w := range r.procs {
		if w.Inside() {
			return w.Network()
		}
	}
	return nil
}

// calm lets each worker get each lock, and ends the workers.
func (r *round) calm() {
	for _, w := range r.procs {
		w.tell(worker.Calm)
	}
	time.Sleep(r.calmFor())
	for _, w := range r.procs {
		w.await(worker.Tried, time.Duration(len(r.locks))*r.probeWait())
	}
	for _, w := range r.procs {
		w.tell(worker.Stop)
	}
	for _, w := range r.procs {
		line, ok := w.await(worker.Ended, endWithin)
		if !ok {
			continue
		}
		if !strings.HasSuffix(line, "<nil>") {
			r.failed("Close of %s: %s", w.life.job.Session, line)
		}
		select {
		case <-w.life.gone:
			if w.life.err != nil {
				r.failed("worker %s: %v", w.life.job.Session, w.life.err)
			}
		case <-time.After(10 * time.Second):
			r.failed("worker %s did not exit", w.life.job.Session)
		}
	}
}

func (r *round) counters() map[int]int64 {
	values := map[int]int64{}
	for i, l := range r.locks {
		if l.Kind == worker.Counter {
			n, err := r.owner(l.Name).Do(r.tb, "GET", l.Name).AsInt64()
			if err != nil {
				r.failed("GET %s: %v", l.Name, err)
			}
			values[i] = n
		}
	}
	return values
}
