package simulate

import (
	"fmt"
	"sync"
	"time"
)

// A want is what a caller waits for, or has: the name of a lock, and how much of it.
type want struct {
	kind       string
	name       string
	reads      bool
	n          int // permits; 0: it is a lock
	limit      int
	leased     bool // for a fixed time, which may end inside
	downgrades bool // a writer: it becomes a reader before it leaves
}

// A caller is one acquisition, from its call on.
type caller struct {
	want
	id        int
	host      *host
	called    time.Time
	givesUp   time.Time // when it leaves: others may come in while Redis hears of that
	disturbed bool      // something went wrong with its host, or with Redis, while it waited
}

// A ledger knows from outside who waits for which lock and who is inside, and judges that:
//
//   - No two are inside whom the lock excludes, and no more permits are taken than there are.
//   - A fair lock is served in the order of arrival, but for callers whose network was disturbed, and for those who
//     came so shortly one after the other that the network may have changed their order.
//   - While nothing is disturbed, a lock that comes free, and that somebody waits for, is taken at once.
//   - While nothing is disturbed, nobody loses what they hold.
//
// Of a lock that is forced or deleted nothing of this is judged until those who had it must have heard of that, or have
// come to the end of their trust. Then nobody may be inside beside another.
type ledger struct {
	mu      sync.Mutex
	next    int
	waiting map[*caller]bool
	inside  map[*caller]bool
	freed   map[string]time.Time // since when a lock is free; not in it if it may stand in Redis without a holder
	calm    time.Time            // since when nothing is disturbed; zero: something is
	active  int                  // how many disturbances go on
	dead    map[*host]bool       // the processes that have died
	forced  map[string]bool      // the locks that were forced or deleted a moment ago
	slack   time.Duration        // within which arrivals may change their order
	prompt  time.Duration        // within which a free lock is taken
	faults  []string             // what must not be
	entered int
	longest time.Duration // that somebody undisturbed has waited
}

func newLedger() *ledger {
	return &ledger{waiting: map[*caller]bool{}, inside: map[*caller]bool{}, freed: map[string]time.Time{}, dead: map[*host]bool{}, forced: map[string]bool{},
		calm: time.Now().Add(-settled), slack: 100 * time.Millisecond, prompt: 600 * time.Millisecond}
}

// fault notes what must not be. mu is held.
func (l *ledger) fault(format string, args ...any) {
	if len(l.faults) < 5 {
		l.faults = append(l.faults, fmt.Sprintf(format, args...))
	}
}

// settled is how long after a disturbance all is as if there had been none: connections are made again, looks have
// been answered, and what stood in Redis in vain has ended.
const settled = 12 * time.Second

// calmFor reports whether nothing was disturbed since a moment, nor shortly before. mu is held.
func (l *ledger) calmFor(since time.Time) bool {
	return !l.calm.IsZero() && l.calm.Add(settled).Before(since)
}

// disturb says that something is disturbed: of one host, or of all if that is nil.
func (l *ledger) disturb(h *host, begins bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.waiting {
		if h == nil || c.host == h {
			c.disturbed = true
		}
	}
	l.calm = time.Time{}
	if begins {
		l.active++
	} else if l.active--; l.active == 0 {
		l.calm = time.Now()
	}
}

// dies notes that a process ends in the middle of whatever it does.
func (l *ledger) dies(h *host) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dead[h] = true
	for _, all := range []map[*caller]bool{l.waiting, l.inside} {
		for c := range all {
			if c.host == h {
				delete(all, c)
				delete(l.freed, c.name)
			}
		}
	}
}

// calls notes that a caller begins to wait.
func (l *ledger) calls(h *host, w want, patience time.Duration) *caller {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.next++
	c := &caller{want: w, id: l.next, host: h, called: time.Now(), givesUp: time.Now().Add(patience), disturbed: l.forced[w.name] || !l.calmFor(time.Now())}
	l.waiting[c] = true
	return c
}

// leavesLine notes that a caller waits no more.
func (l *ledger) leavesLine(c *caller) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.waiting, c)
}

// enters notes that a caller is inside. It returns false if its process has died.
func (l *ledger) enters(c *caller) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.waiting, c)
	if l.dead[c.host] {
		return false
	}
	taken := c.n
	for other := range l.inside {
		if other.name != c.name {
			continue
		}
		taken += other.n
		l.judge(c, other)
	}
	if taken > c.limit {
		l.fault("%d permits of %q are taken, of %d, with those of %s", taken, c.name, c.limit, c)
	}
	for other := range l.waiting {
		stays := !other.disturbed && time.Now().Before(other.givesUp)
		if c.kind == "fair" && other.name == c.name && stays && other.called.Add(l.slack).Before(c.called) {
			l.fault("%s of the fair lock %q has overtaken %s", c, c.name, other)
		}
	}
	if since, ok := l.freed[c.name]; ok && l.calmFor(since) && !c.disturbed && c.called.Add(l.slack).Before(since) {
		if took := time.Since(since); took > l.prompt {
			l.fault("%q was free for %v while %s waited", c.name, took, c)
		}
	}
	if !c.disturbed {
		l.longest = max(l.longest, time.Since(c.called))
	}
	l.inside[c] = true
	delete(l.freed, c.name)
	l.entered++
	return true
}

// judge faults two that are inside of one lock and whom it excludes. mu is held.
func (l *ledger) judge(c, other *caller) {
	if c.n == 0 && !(c.reads && other.reads) && !l.forced[c.name] {
		l.fault("%s is inside %q, and so is %s", c, c.name, other)
	}
}

// forces says that a lock is going to be forced or deleted, so that those who have it are wrong about that for a while.
// It may just have been given to one that waits, which then loses its place.
func (l *ledger) forces(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forced[name] = true
	delete(l.freed, name)
	for c := range l.waiting {
		c.disturbed = c.disturbed || c.name == name
	}
}

// trusts says that this has come to an end.
func (l *ledger) trusts(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.forced, name)
	for c := range l.inside {
		for other := range l.inside {
			if c.id > other.id && c.name == name && other.name == name {
				l.judge(c, other)
			}
		}
	}
}

// readsOn notes that a writer is going to be a reader from here on.
func (l *ledger) readsOn(c *caller) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c.reads = true
}

// leaves notes that a caller is inside no more: it releases, or it has lost what it had.
func (l *ledger) leaves(c *caller, lost error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.inside[c] {
		return // its process has died
	}
	delete(l.inside, c)
	if lost != nil && !c.leased && !l.forced[c.name] && !l.calm.IsZero() && time.Since(l.calm) > settled {
		l.fault("%s has lost %q although nothing was disturbed: %v", c, c.name, lost)
	}
	for other := range l.inside {
		if other.name == c.name {
			return
		}
	}
	if lost == nil && !l.forced[c.name] {
		l.freed[c.name] = time.Now()
	}
}

// someInside returns the host of the caller that has come in last of those that are inside; nil if none is.
func (l *ledger) someInside() *host {
	l.mu.Lock()
	defer l.mu.Unlock()
	var last *caller
	for c := range l.inside {
		if last == nil || c.id > last.id {
			last = c
		}
	}
	if last == nil {
		return nil
	}
	return last.host
}

// unknown says that what a caller had may stand in Redis for a while.
func (l *ledger) unknown(c *caller) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.freed, c.name)
}

func (c *caller) String() string {
	what := ""
	if c.reads {
		what = ", a reader"
	}
	return fmt.Sprintf("caller %d of host %d%s (since %v)", c.id, c.host.number, what, c.called.Format("04:05.000"))
}
