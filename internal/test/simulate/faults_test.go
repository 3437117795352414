package simulate

import (
	"context"
	"math/rand/v2"
	"strings"
	"time"

	"relock/fairlock"
	"relock/rlock"
	"relock/rwlock"
)

// Faults strike from the first quarter of a run to its last; a third of the seeds have none.
func (w *world) harm(length time.Duration) {
	rng := w.rng(1)
	if rng.IntN(3) == 0 {
		return
	}
	time.Sleep(length / 4)
	for until := time.Now().Add(length / 2); time.Now().Before(until); {
		w.strike(rng)
		time.Sleep(time.Duration(rng.IntN(4000)) * time.Millisecond)
	}
}

// strike is one fault, from its beginning to its end.
func (w *world) strike(rng *rand.Rand) {
	h := w.pick(rng)
	ms := func(least, most int) time.Duration {
		return time.Duration(least+rng.IntN(most-least)) * time.Millisecond
	}
	switch rng.IntN(15) {
	case 0: // the network between a host and Redis
		w.during(h, func() { h.link.shut(); time.Sleep(ms(20, 8000)); h.link.open() })
	case 1, 2: // the same, again and again: what a reply says is old when it comes
		w.during(h, func() {
			for range 2 + rng.IntN(5) {
				h.link.shut()
				time.Sleep(ms(100, 2500))
				h.link.open()
				time.Sleep(ms(1, 400))
			}
		})
	case 3: // its connections
		w.during(h, h.link.cut)
	case 4: // far away for a while
		w.during(h, func() { h.link.slowed(float64(10 + rng.IntN(200))); time.Sleep(ms(500, 6000)); h.link.slowed(1) })
	case 8, 9, 10: // what Redis replies comes late, and then not at all, for longer than that can be trusted
		lease := w.cfg.Lease
		w.during(h, func() {
			h.link.delays(lease * time.Duration(10+rng.IntN(15)) / 100)
			time.Sleep(lease * time.Duration(20+rng.IntN(80)) / 100)
			h.link.shut()
			time.Sleep(lease * 3 / 2)
			h.link.delays(0)
			h.link.open()
		})
	case 5: // Redis is stopped
		w.during(nil, func() { w.each((*link).shut); time.Sleep(ms(10, 3000)); w.each((*link).open) })
	case 6: // Redis restarts, with its data
		w.during(nil, func() {
			w.each(func(l *link) { l.refuse(true); l.crash() })
			time.Sleep(ms(1, 1500))
			w.admin("SCRIPT", "FLUSH")
			w.each(func(l *link) { l.refuse(false) })
		})
	case 11, 12: // an operator forces a lock
		w.without(w.lockName(rng), rng, func(ctx context.Context, name string) { w.force(ctx, h, name) })
	case 13, 14: // somebody deletes its key
		w.without(w.lockName(rng), rng, func(_ context.Context, name string) { w.admin("DEL", name) })
	default: // a process dies, and another one begins
		w.during(h, func() {
			w.ledger.dies(h)
			w.forget(h)
			h.link.refuse(true)
			h.die()
			h.link.cut()
		})
		w.begin()
	}
}

// without has a lock taken from those who have it, a few times in a row, and lets go by for how long they may be wrong
// about that: what they have heard last from Redis counts for a lease.
func (w *world) without(name string, rng *rand.Rand, take func(ctx context.Context, name string)) {
	if name == "" {
		return
	}
	w.ledger.forces(name)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for range 1 + rng.IntN(50) {
		take(ctx, name)
		time.Sleep(time.Duration(rng.IntN(100)) * time.Millisecond)
	}
	time.Sleep(w.cfg.Lease + w.cfg.ReleaseTimeout)
	w.ledger.trusts(name)
}

// force is what a host of a lock's kind does to it.
func (w *world) force(ctx context.Context, h *host, name string) {
	force := rlock.New(h.ses, name).ForceUnlock
	switch kind, _, _ := strings.Cut(name, "-"); kind {
	case "fair":
		force = fairlock.New(h.ses, name).ForceUnlock
	case "rw":
		force = rwlock.New(h.ses, name).ForceUnlock
	}
	if _, err := force(ctx); err != nil {
		w.t.Errorf("force %q by host %d: %v", name, h.number, err)
	}
}

// lockName draws the name of a lock; "" where there are permits only.
func (w *world) lockName(rng *rand.Rand) string {
	if w.kind == "semaphore" {
		return ""
	}
	for {
		if what := w.wants(rng); what.kind != "semaphore" {
			return what.name
		}
	}
}

// during runs a fault, of a host or, if that is nil, of Redis.
func (w *world) during(h *host, fault func()) {
	w.ledger.disturb(h, true)
	fault()
	w.ledger.disturb(h, false)
}

// each does something with the links of all that live.
func (w *world) each(do func(*link)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, h := range w.hosts {
		do(h.link)
	}
}
