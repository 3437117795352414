package nemesis

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"relock/torture/proxy"
)

// Crowd makes one fault at a time, of Redis or of workers, with so much quiet behind each that a wait
// which outlasts what the fault costs is seen. What fails next may end such a wait, as all look then.
type Crowd struct {
	*Workers
	Redis *Redis
	Quiet time.Duration
}

// Run makes faults until ctx ends, and leaves everything healed. Like those of Redis it is called by the
// test's own goroutine.
func (c *Crowd) Run(ctx context.Context) {
	r := c.Redis
	r.Watch()
	ofRedis, ofOne, numbers := r.faults(), c.kinds(), slices.Sorted(maps.Keys(c.Processes))
	for wait := time.Second; pause(ctx, wait); wait = c.Quiet + c.upTo(c.Quiet/4) {
		switch n := c.Rnd.IntN(10); {
		case n < 4:
			r.makeOne(ofRedis)
		case n < 8:
			ofOne[c.Rnd.IntN(len(ofOne))](numbers[c.Rnd.IntN(len(numbers))])
		default:
			c.gone(some(c.Rnd, numbers))
		}
	}
	r.Set.Settle()
	r.Look()
}

// some chooses from two of all to half of them.
func some(rnd *rand.Rand, all []int) (chosen []int) {
	for _, i := range rnd.Perm(len(all))[:2+rnd.IntN(len(all)/2-1)] {
		chosen = append(chosen, all[i])
	}
	return chosen
}

// gone makes several workers vanish together, stopped or without a network, as when a host fails.
func (c *Crowd) gone(chosen []int) {
	sessions := 0
	for _, i := range chosen {
		sessions += c.Processes[i].Sessions()
	}
	stopped := c.Rnd.IntN(2) == 0
	f := Fault{Name: "network: all lost, of several workers", Gone: sessions}
	if stopped {
		f.Name, f.Pause = "SIGSTOP of several workers", true
	}
	var notes []*Fault
	for _, i := range chosen {
		f.Worker = i
		notes = append(notes, c.Journal.Begin(f)) // before the first fails, which they do together
	}
	for _, i := range chosen {
		if stopped {
			c.Processes[i].Stop()
		} else {
			c.Processes[i].Network().Set(proxy.Rule{CutUp: true, CutDown: true})
		}
	}
	time.Sleep(c.upTo(6 * time.Second))
	for n, i := range chosen {
		if stopped {
			c.Processes[i].Continue()
		} else {
			c.Processes[i].Network().Set(proxy.Rule{})
		}
		c.Journal.End(notes[n])
	}
}
