// Package nemesis makes Redis, the network and the worker processes fail, and writes down
// what it did and when, so that the checks can tell what a fault explains.
package nemesis

import (
	"sync"
	"time"

	"relock/internal/test/redistest"
	"relock/torture/oracle"
)

// All as a Fault's Worker means that it is about every worker.
const All = -1

// Fault is one thing that was made to fail.
type Fault struct {
	Name       string
	Worker     int      // All, or the number of the one worker process
	Servers    []string // addresses of the servers that failed; nil: any
	Begin, End time.Duration
	Loss       bool // Redis may have lost data that it had acknowledged
	Late       bool // commands may be delivered long after their sender has given up
	Pause      bool // the worker did not run
	Killed     bool // the worker was killed
	Busy       bool // nothing was made to fail: the machine was busy
	// Gone is how many sessions were not heard of from the beginning on, with this worker or with others
	// that failed at the same moment. 0: what the worker said may have come through, or come late.
	Gone int
}

// Journal is what has been done. Its methods are safe for concurrent use.
type Journal struct {
	mu     sync.Mutex
	faults []*Fault
}

// Begin notes that a fault begins now.
func (j *Journal) Begin(f Fault) *Fault {
	j.mu.Lock()
	defer j.mu.Unlock()
	f.Begin = oracle.Now()
	j.faults = append(j.faults, &f)
	return &f
}

// End notes that the fault is over.
func (j *Journal) End(f *Fault) {
	j.mu.Lock()
	defer j.mu.Unlock()
	f.End = oracle.Now()
}

// Hit notes which servers fail.
func (j *Journal) Hit(f *Fault, all []*redistest.Server) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, s := range all {
		f.Servers = append(f.Servers, s.Addr)
	}
}

// Past notes a fault that is over already.
func (j *Journal) Past(f Fault) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.faults = append(j.faults, &f)
}

// Faults returns all of them. One that is not over ends now.
func (j *Journal) Faults() []Fault {
	j.mu.Lock()
	defer j.mu.Unlock()
	all := make([]Fault, len(j.faults))
	for i, f := range j.faults {
		all[i] = *f
		if f.End == 0 {
			all[i].End = oracle.Now()
		}
	}
	return all
}
