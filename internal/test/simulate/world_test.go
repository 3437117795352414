package simulate

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/rueidis"

	"relock/internal/test/redistest"
	"relock/rlock"
)

// A world is one simulated run.
type world struct {
	t      *testing.T
	seed   uint64
	kind   string
	mini   *miniredis.Miniredis
	ledger *ledger
	cfg    rlock.Config
	think  time.Duration // between two acquisitions of a goroutine, on average
	hold   time.Duration // of one section, on average
	end    time.Time
	locks  int // how many there are of each kind

	mu      sync.Mutex // guards what follows
	hosts   []*host    // that live
	all     []*host
	workers sync.WaitGroup
}

// rng is the source of one part of a run, by its number: what one part draws does not depend on the others.
func (w *world) rng(part int) *rand.Rand { return rand.New(rand.NewPCG(w.seed, uint64(part))) }

// newWorld draws how busy a run of so many hosts is.
func newWorld(t *testing.T, seed uint64, kind string, sessions int, length time.Duration) *world {
	m := miniredis.NewMiniRedis()
	m.ClockTTL(true)
	t.Cleanup(m.Close)
	w := &world{t: t, seed: seed, kind: kind, mini: m, ledger: newLedger(), end: time.Now().Add(length), locks: 1 + sessions/50}
	rng := w.rng(0)
	w.think = time.Duration(200+rng.IntN(6000)) * time.Millisecond * time.Duration(1+sessions/200)
	w.hold = time.Duration(1+rng.IntN(200)) * time.Millisecond
	w.cfg = rlock.Config{Lease: []time.Duration{2 * time.Second, 5 * time.Second, 10 * time.Second}[rng.IntN(3)],
		ReleaseTimeout: 2 * time.Second, Logger: slog.New(slog.DiscardHandler)}
	return w
}

// begin starts a process, with one or two goroutines that take locks.
func (w *world) begin() {
	w.mu.Lock()
	number := len(w.all) + 1
	w.mu.Unlock()
	rng := w.rng(number)
	h := &host{number: number, world: w, link: newLink(w.mini, w.rng(1_000_000+number))}
	h.ctx, h.die = context.WithCancel(context.Background())
	cfg := w.cfg
	cfg.ID = fmt.Sprint("host", number)
	ses, err := rlock.Dial(h.ctx, h.link.option(), cfg)
	if err != nil {
		w.t.Errorf("host %d: %v", number, err)
		return
	}
	h.ses = ses
	w.mu.Lock()
	w.hosts, w.all = append(w.hosts, h), append(w.all, h)
	w.mu.Unlock()
	for i := range 1 + rng.IntN(2) {
		w.workers.Go(func() { h.work(w.rng(2_000_000 + 10*number + i)) })
	}
}

// wants draws what a caller takes.
func (w *world) wants(rng *rand.Rand) want {
	kind := w.kind
	if kind == "mix" {
		kind = kinds[rng.IntN(len(kinds)-1)]
	}
	what := want{kind: kind, name: fmt.Sprintf("%s-%d", kind, rng.IntN(w.locks))}
	switch kind {
	case "rw":
		what.reads = rng.IntN(3) > 0
		what.downgrades = !what.reads && rng.IntN(2) == 0
	case "semaphore":
		what.n, what.limit = 1+rng.IntN(2), 3
	}
	return what
}

// kinds are those of locks that runs are about; the last one is all of them.
var kinds = []string{"plain", "fair", "rw", "semaphore", "mix"}

// finish waits until all that wait have got in, ends the processes, and looks what they have left.
func (w *world) finish() {
	done := make(chan struct{})
	go func() { w.workers.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(time.Until(w.end) + 10*time.Minute): // the faults may have ended long before the run does, if there are any
		w.ledger.mu.Lock()
		for c := range w.ledger.waiting {
			w.ledger.fault("%s waits for %q for ever", c, c.name)
		}
		w.ledger.mu.Unlock()
	}
	for _, h := range w.all {
		h.link.refuse(w.ledger.dead[h])
		_ = h.ses.Close()
		h.die()
	}
	<-done
	time.Sleep(5 * time.Minute) // what the dead have left ends
	for _, key := range redistest.LockKeys(w.mini.Keys()) {
		if value, err := w.mini.Get(key); strings.HasPrefix(key, "semaphore-") && err == nil && value == "3" {
			continue // its permits are all back
		}
		w.ledger.fault("the key %q is left", key)
	}
	for _, h := range w.all {
		h.link.cut()
	}
}

// admin runs a command at Redis itself.
func (w *world) admin(cmd ...string) {
	c, err := rueidis.NewClient(newLink(w.mini, w.rng(3)).option())
	if err != nil {
		w.t.Error(err)
		return
	}
	defer c.Close()
	if err := c.Do(context.Background(), c.B().Arbitrary(cmd...).Build()).Error(); err != nil {
		w.t.Error(err)
	}
}

// pick returns a process that lives: half of the time one that is inside of a lock.
func (w *world) pick(rng *rand.Rand) *host {
	inside := w.ledger.someInside()
	w.mu.Lock()
	defer w.mu.Unlock()
	if inside != nil && rng.IntN(2) == 0 {
		return inside
	}
	return w.hosts[rng.IntN(len(w.hosts))]
}

// forget takes one out that dies.
func (w *world) forget(h *host) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hosts = slices.DeleteFunc(w.hosts, func(other *host) bool { return other == h })
}
