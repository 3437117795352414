package main

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"
)

const (
	// samplesAtOnce is how many looks at each lock make a refresh. A lock that changes its
	// owner in between more than once counts as one change.
	samplesAtOnce = 4

	// scansAtOnce is how many SCANs a refresh sends to each node. A pass over all keys is
	// spread over as many refreshes as it takes.
	scansAtOnce = 10

	// fading is what is left of earlier refreshes in the rates: about the last five count.
	fading = 0.8

	// forgetAfter is how many refreshes a free lock that nobody waits for is kept in view.
	forgetAfter = 5
)

// Watched is a lock that top follows.
type Watched struct {
	Lock
	Held    float64 `json:"held_ratio"`         // share of the samples in which it was held
	Changes float64 `json:"changes_per_second"` // of its owner; at least so many
	Seen    int64   `json:"seen_held_ms"`       // for how long top has seen the owner that it has

	last  string // the owners at the last sample that had some
	since int64  // Redis's time when it was first seen held by them without a break; 0: it is not held

	changes float64
	heldIn  float64
	idle    int // refreshes since it was held or waited for

}

// Totals are what a refresh says of the whole.
type Totals struct {
	Time     time.Time `json:"time"`
	Locks    int       `json:"locks"`               // in view
	Found    int       `json:"found"`               // names that were found so far
	Scripts  float64   `json:"scripts_per_second"`  // of all clients, on all nodes
	Commands float64   `json:"commands_per_second"` // that top itself sends
	Top      []Watched `json:"top"`
}

// A sampler follows the locks of a deployment. It finds them by SCAN, a bounded piece at each
// refresh, and by the channels that waiters subscribe to; a lock that is only waited for, by its line. It subscribes to none itself: a
// further subscriber would count as a waiting session, and hold up those that hand over.
type sampler struct {
	*server
	match   func(name string) bool
	track   int // at most so many locks are looked at
	scans   []*scan
	found   map[string]bool
	watched map[string]*Watched
	sent    int // commands since the last refresh

	refreshed time.Time
	elapsed   float64 // seconds, faded like the rates
	samples   float64
	scripts   int64 // at the last refresh
}

func newSampler(ctx context.Context, s *server, pattern string, track int) *sampler {
	p := &sampler{
		server: s, match: glob(pattern).matches, track: track,
		found: map[string]bool{}, watched: map[string]*Watched{}, refreshed: time.Now(), scripts: -1,
	}
	for _, n := range masters(ctx, s.client) {
		p.scans = append(p.scans, newScan(n, pattern, true))
	}
	return p
}

// refresh finds locks, looks at them samplesAtOnce times within the interval, and returns
// what there is to see.
func (p *sampler) refresh(ctx context.Context, interval time.Duration) (*Totals, error) {
	p.labels.forget()
	if err := p.discover(ctx); err != nil {
		return nil, err
	}
	for _, w := range p.watched {
		w.changes *= fading
		w.heldIn *= fading
	}
	p.samples *= fading
	ticker := time.NewTicker(max(interval/samplesAtOnce, time.Millisecond))
	defer ticker.Stop()
	for range samplesAtOnce {
		if err := p.sample(ctx); err != nil {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-ticker.C:
		}
	}
	return p.totals(ctx)
}

// sample looks at each lock in view once.
func (p *sampler) sample(ctx context.Context) error {
	names := make([]string, 0, len(p.watched))
	for name := range p.watched {
		names = append(names, name)
	}
	for part := range slices.Chunk(names, readAtOnce) {
		locks, err := p.read(ctx, part)
		if err != nil {
			return err
		}
		p.sent += perLock*len(part) + 1
		for _, l := range locks {
			if l.Kind == kindSemaphore {
				p.sent += 2
			}
			p.watched[l.Name].saw(l)
		}
	}
	p.samples++
	return nil
}

// saw counts what one sample shows.
func (w *Watched) saw(l *Lock) {
	held := l.held()
	if held {
		w.heldIn++
		now := l.signature()
		if w.last != "" && now != w.last {
			w.changes++
		}
		if now != w.last || w.since == 0 {
			w.since = l.now
		}
		w.last = now
		l.seen = l.now - w.since
	} else {
		w.since = 0
	}
	if l.Kind == "" { // free: what it was is still true of it
		l.Kind = w.Kind
	}
	if l.Kind == kindLatch {
		l.asLatch()
	}
	l.Wait, l.Line, l.Fair = w.Wait, w.Line, w.Fair
	w.Lock, w.Seen = *l, l.seen
}

// totals counts the waiters, drops what is over, and sorts.
func (p *sampler) totals(ctx context.Context) (*Totals, error) {
	var locks []*Lock
	for _, w := range p.watched {
		if w.Kind != "" {
			locks = append(locks, &w.Lock)
		}
	}
	for _, ask := range []func(context.Context, []*Lock) (int, error){p.elections, p.countWaiters} {
		sent, err := ask(ctx, locks)
		p.sent += sent
		if err != nil {
			return nil, err
		}
	}
	now := time.Now()
	passed := now.Sub(p.refreshed).Seconds()
	p.refreshed = now
	p.elapsed = p.elapsed*fading + passed
	p.label(ctx, locks)
	t := &Totals{Time: now, Found: len(p.found), Top: []Watched{}}
	for name, w := range p.watched {
		w.Held, w.Changes = w.heldIn/p.samples, w.changes/p.elapsed
		w.idle++
		if w.Count > 0 || w.waiters() > 0 || w.changes > 1 {
			w.idle = 0
		}
		switch {
		case w.idle > forgetAfter:
			delete(p.watched, name)
		case w.Kind != "":
			t.Top = append(t.Top, *w) // a copy: it is shown while the next samples come in
		}
	}
	t.Locks = len(t.Top)
	t.Scripts = p.scriptRate(ctx, passed)
	t.Commands = float64(p.sent) / passed
	p.sent = 0
	return t, nil
}

// scriptRate asks all nodes how many scripts they have run, and returns how many a second
// that is since the last time.
func (p *sampler) scriptRate(ctx context.Context, passed float64) float64 {
	all := nodes(p.client)
	calls := make([]int64, len(all))
	_ = onNodes(all, func(i int, n node) error {
		text, err := n.Do(ctx, n.B().Info().Section("commandstats").Build()).ToString()
		calls[i] = scriptCalls(info(text))
		return err
	})
	p.sent += len(all)
	var sum int64
	for _, c := range calls {
		sum += c
	}
	before := p.scripts
	p.scripts = sum
	if before < 0 || sum < before { // the first time, or a server was restarted
		return 0
	}
	return float64(sum-before) / passed
}

// The orders in which top can show locks.
var orders = map[string]func(a, b *Watched) int{
	"waiting": func(a, b *Watched) int { return cmp.Compare(b.waiters(), a.waiters()) },
	"changes": func(a, b *Watched) int { return cmp.Compare(b.Changes, a.Changes) },
	"held":    func(a, b *Watched) int { return cmp.Compare(b.Held, a.Held) },
}

// orderNames are the keys of orders, as the key "s" goes through them.
var orderNames = []string{"waiting", "changes", "held"}

// sort puts the locks in order: by the one that is asked for, then by the others.
func (t *Totals) sort(order string) {
	slices.SortFunc(t.Top, func(a, b Watched) int {
		first := orders[order](&a, &b)
		return cmp.Or(first, orders["waiting"](&a, &b), orders["changes"](&a, &b), orders["held"](&a, &b), strings.Compare(a.Name, b.Name))
	})
}
