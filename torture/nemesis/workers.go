package nemesis

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"relock/torture/proxy"
)

// Process is a worker process as the nemesis sees it.
type Process interface {
	Kill()    // with SIGKILL
	Respawn() // in place of one that was killed
	Stop()    // with SIGSTOP
	Continue()
	Network() *proxy.Proxy
	Lease() time.Duration
	Sessions() int // how many it has
	Inside() bool  // a section that lasts long, so that what fails now shows
}

// Workers makes worker processes and their network fail, one fault at a time. Several of them
// may share the processes out among them.
type Workers struct {
	Processes map[int]Process // by number
	Journal   *Journal
	Rnd       *rand.Rand
	Quiet     time.Duration // the longest time without a fault
}

// Run makes faults until ctx ends, and leaves everything healed.
func (w *Workers) Run(ctx context.Context) {
	kinds := w.kinds()
	numbers := slices.Sorted(maps.Keys(w.Processes))
	// The hardest one first, for a short run may have few.
	if pause(ctx, time.Second) {
		w.slowThenCut(numbers[0])
	}
	for pause(ctx, w.upTo(w.Quiet)) {
		kind, first := kinds[w.Rnd.IntN(len(kinds))], w.Rnd.IntN(len(numbers))
		kind(w.victim(numbers, first))
	}
}

// kinds are the faults, those that come more often more than once.
func (w *Workers) kinds() []func(i int) {
	return []func(i int){
		w.kill, w.kill, w.stop, w.stop, w.slow, w.cut, w.cut, w.slowThenCut, w.slowThenCut, w.slowThenCut,
		w.oneWay, w.reset, w.reset, w.late, w.late, w.refuse,
	}
}

// victim returns the next worker that is inside a long section, the first one if none is.
func (w *Workers) victim(numbers []int, first int) int {
	for i := range numbers {
		if n := numbers[(first+i)%len(numbers)]; w.Processes[n].Inside() {
			return n
		}
	}
	return numbers[first]
}

func (w *Workers) upTo(d time.Duration) time.Duration { return upTo(w.Rnd, d) }

func upTo(rnd *rand.Rand, d time.Duration) time.Duration {
	return time.Duration(rnd.Int64N(int64(max(d, 1))))
}

// during notes a fault, and ends it after d and what heals it.
func (w *Workers) during(f Fault, d time.Duration, heal func()) {
	note := w.Journal.Begin(f)
	time.Sleep(d)
	heal()
	w.Journal.End(note)
}

func (w *Workers) kill(i int) {
	note := w.Journal.Begin(Fault{Name: "kill -9 of a worker", Worker: i, Killed: true, Gone: w.Processes[i].Sessions()})
	w.Processes[i].Kill()
	time.Sleep(w.upTo(500 * time.Millisecond))
	w.Journal.End(note)
	w.Processes[i].Respawn()
}

// stop lasts longer than a lease half of the times.
func (w *Workers) stop(i int) {
	p := w.Processes[i]
	d := w.upTo(min(2*p.Lease(), 6*time.Second))
	// The fault begins before the signal, and ends after it.
	note := w.Journal.Begin(Fault{Name: "SIGSTOP of a worker", Worker: i, Pause: true, Gone: p.Sessions()})
	p.Stop()
	time.Sleep(d)
	p.Continue()
	w.Journal.End(note)
}

func (w *Workers) network(name string, i int, r proxy.Rule, d time.Duration) {
	n, f := w.Processes[i].Network(), Fault{Name: name, Worker: i}
	if r.CutUp {
		f.Gone = w.Processes[i].Sessions()
	}
	note := w.Journal.Begin(f)
	n.Set(r)
	time.Sleep(d)
	n.Set(proxy.Rule{})
	w.Journal.End(note)
}

func (w *Workers) slow(i int) {
	r := proxy.Rule{Up: w.upTo(400 * time.Millisecond), Down: w.upTo(400 * time.Millisecond)}
	w.network("network: delay", i, r, w.upTo(2*time.Second))
}

func (w *Workers) cut(i int) {
	r := proxy.Rule{CutUp: true, CutDown: true}
	w.network("network: all lost", i, r, w.upTo(min(2*w.Processes[i].Lease(), 6*time.Second)))
}

// slowThenCut lets answers come late and then not at all: what counts trust from an answer
// trusts too long.
func (w *Workers) slowThenCut(i int) {
	p := w.Processes[i]
	if p.Lease() > 4*time.Second {
		w.cut(i) // it would take too long
		return
	}
	note := w.Journal.Begin(Fault{Name: "network: late answers, then all lost", Worker: i})
	p.Network().Set(proxy.Rule{Down: p.Lease()/8 + w.upTo(p.Lease()/8)})
	time.Sleep(p.Lease()/2 + w.upTo(p.Lease()/2))
	p.Network().Set(proxy.Rule{CutUp: true, CutDown: true})
	time.Sleep(p.Lease() + p.Lease()/4)
	p.Network().Set(proxy.Rule{})
	w.Journal.End(note)
}

func (w *Workers) oneWay(i int) {
	r := proxy.Rule{CutUp: w.Rnd.IntN(2) == 0}
	r.CutDown = !r.CutUp
	name := "network: answers lost"
	if r.CutUp {
		name = "network: commands lost"
	}
	w.network(name, i, r, w.upTo(min(w.Processes[i].Lease(), 4*time.Second)))
}

func (w *Workers) reset(i int) {
	w.during(Fault{Name: "network: reset", Worker: i}, 0, w.Processes[i].Network().Reset)
}

// late holds back what a worker sends, ends its connection, and delivers the commands when the
// worker has long sent them again.
func (w *Workers) late(i int) {
	n := w.Processes[i].Network()
	note := w.Journal.Begin(Fault{Name: "network: commands delivered late", Worker: i, Late: true})
	d := 300*time.Millisecond + w.upTo(3*time.Second)
	n.Set(proxy.Rule{Up: d})
	time.Sleep(20*time.Millisecond + w.upTo(200*time.Millisecond))
	n.Set(proxy.Rule{})
	n.Forsake()
	time.Sleep(d) // the last of them has arrived by then
	w.Journal.End(note)
}

func (w *Workers) refuse(i int) {
	n := w.Processes[i].Network()
	note := w.Journal.Begin(Fault{Name: "network: no new connections", Worker: i, Gone: w.Processes[i].Sessions()})
	n.Set(proxy.Rule{Refuse: true})
	n.Reset()
	time.Sleep(w.upTo(2 * time.Second))
	n.Set(proxy.Rule{})
	w.Journal.End(note)
}
