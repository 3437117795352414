package worker

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/redis/rueidis"

	"relock/rlock"
	"relock/torture/proxy"
)

// Kind is a kind of lock.
type Kind string

// The kinds of lock.
const (
	Mutex     Kind = "mutex"
	Fenced    Kind = "fenced"
	Fair      Kind = "fair"
	FairToken Kind = "fair+fenced"
	RW        Kind = "rw"
	Semaphore Kind = "semaphore"
	Counter   Kind = "counter"
	Quorum    Kind = "quorum"
)

// Named reports whether locks of this kind can be taken by a named owner, and again inside of
// their own sections.
func (k Kind) Named() bool { return k != Semaphore && k != Quorum }

// Lock is one lock that all workers use.
type Lock struct {
	Kind  Kind
	Name  string
	Limit int // of a semaphore; what a counter begins with
	// Long: sections that last about as long as leases. A goroutine of each worker takes
	// no others, so that some worker is always inside and others always wait.
	Long bool
	// Kept: sessions keep the lock, or its write side, for a quarter of a lease.
	Kept bool
	// Home: in a rush, callers of this worker, from 1 on, pass it on in memory, and others visit it. 0: it
	// belongs to all alike.
	Home int
}

// Job is what one worker process does.
type Job struct {
	Seed uint64
	Process
	Deployment
	Options
	Callers
	Locks      []Lock
	Log        string        // path of the oracle's file
	Set        string        // path of the oracle's sets
	Invariants bool          // assert the machine's invariants at each step
	ProbeWait  time.Duration // bound of an attempt after the faults
}

// Process says which one of the round it is.
type Process struct {
	Session string // the session's id, by which Redis's content is attributed
	Number  int    // of this worker, from 0 on
	Life    int    // number of this process among all of the round
}

// Deployment is where its Redis is.
type Deployment struct {
	Proxy      string // where all connections go through
	Servers    []string
	MasterName string // of Sentinel; "" without
	Standalone bool
	Several    bool // each server is all by itself; a session for each, and quorums of all
}

// Options are those of its sessions, see [rlock.Config].
type Options struct {
	Lease      time.Duration
	HandOver   int // Config.HandOverLimit
	PollFloor  time.Duration
	QueueLease time.Duration
	Replicas   int // that acknowledge each acquisition
}

// Callers are who takes the locks.
type Callers struct {
	Sessions   int // of the process, if the servers are not Several; 0: one
	Goroutines int
	Crowd      bool // each session has a caller for each lock, which does nothing else
	Rush       bool // callers of each lock pass it on as fast as that goes
}

// Option returns the client options of a job, for some of the servers.
func (j *Job) Option(servers []string) rueidis.ClientOption {
	o := rueidis.ClientOption{
		InitAddress:       servers,
		DialCtxFn:         proxy.Dialer(j.Proxy),
		ForceSingleClient: j.Standalone || j.Several,
	}
	if j.MasterName != "" {
		o.Sentinel = rueidis.SentinelOption{MasterSet: j.MasterName}
	}
	return o
}

// config is that of the session i. What comes behind the point does not matter to the checks.
func (j *Job) config(i int) rlock.Config {
	id := j.Session
	if i > 0 {
		id = fmt.Sprintf("%s.%d", id, i)
	}
	return rlock.Config{
		ID: id, Lease: j.Lease, HandOverLimit: j.HandOver,
		PollFloor: j.PollFloor, QueueLease: j.QueueLease, ReleaseTimeout: 3 * time.Second,
		Replicas: j.Replicas,
	}
}

const jobVariable = "RELOCK_TORTURE_JOB"

// Command returns the command that runs the job in a process of its own: this program again.
func (j *Job) Command(ctx context.Context) (*exec.Cmd, error) {
	text, err := json.Marshal(j)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self)
	cmd.Env = append(os.Environ(), jobVariable+"="+string(text))
	return cmd, nil
}

// Child makes this process a worker if it was started as one, and does not return then.
func Child() {
	text := os.Getenv(jobVariable)
	if text == "" {
		return
	}
	var j Job
	err := json.Unmarshal([]byte(text), &j)
	if err == nil {
		err = j.run()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "worker:", err)
		os.Exit(3)
	}
	os.Exit(0)
}
