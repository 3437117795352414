package deadlock

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"relock/internal/clock"
	"relock/internal/life"
)

// A Suspect is one Lock that waits inside of open sections, and so may be part of a deadlock. Its
// methods are called without any mutex, also after the wait is over.
type Suspect interface {
	// LiesIn reports whether the wait lasts, and the Lock lies in an open section of c.
	LiesIn(c Claim) bool
	// Holders returns the claims of its session that keep it out now, and what tells which owners
	// in the lock's hash do: nil if no other session has the lock, or if what keeps the Lock out is
	// no claim of a session. It reports whether the wait lasts.
	Holders() (here []Claim, blockers func(fields map[string]string) []string, lasts bool)
	// End ends the wait, if it still lasts.
	End(c Cycle)
}

// Config is what a Watch needs of its session. All fields must be set.
type Config struct {
	life.Env        // its WakeAt has Seek called
	Session  string // its id
	Label    string // what the text of a cycle calls it

	// Deaf says that the session cannot be told anything. Then it asks no other either.
	Deaf func() bool
	// Fields returns the hash that stands under a key.
	Fields func(ctx context.Context, key string) (map[string]string, error)
	// Tell sends the text of a message to a session. It may be lost: the next search makes up for it.
	Tell func(ctx context.Context, session, text string) error
}

// A Watch is what one session knows of waits that may be part of a deadlock, and its part in
// finding those. Its mutex is taken alone.
type Watch struct {
	cfg    Config
	chaser *chaser
	begun  atomic.Uint64       // waits
	jobs   *life.Queue[func()] // messages and searches

	mu     sync.Mutex
	waits  map[string]*Waiting         // of the session, and those that lie in its sections
	inside map[Claim]map[*Waiting]bool // that lie in a section of a claim of the session
	sought map[side]time.Duration      // when the session has just sought for a lock
	due    time.Duration               // when it seeks next
}

// A Waiting is a wait that is watched.
type Waiting struct {
	wait    Wait
	of      Suspect
	in      []Claim
	watches []*Watch // that know of it; the first is that of its session

	// Guarded by the mutex of that one.
	seekAt time.Duration
	pause  time.Duration // between this look and the next
}

// A side is what is sought for once for all that wait for it.
type side struct{ key, name string }

const (
	// seekAfter is for how long a wait has lasted before it is followed to other sessions.
	seekAfter = time.Second
	// seekAtMost is the longest pause between two looks, which double: messages may be lost.
	seekAtMost = 16 * time.Second
	// seekGrid is what the times of looks are rounded up to, for the many waits that there may be.
	seekGrid = 50 * time.Millisecond
	// maxJobs bounds what waits to be done while Redis is slow.
	maxJobs = 1000
)

// NewWatch returns the Watch of a session.
func NewWatch(cfg Config) *Watch {
	w := &Watch{cfg: cfg, due: clock.Never, jobs: life.OneByOne(cfg.Background.Go),
		waits: map[string]*Waiting{}, inside: map[Claim]map[*Waiting]bool{}, sought: map[side]time.Duration{}}
	w.chaser = newChaser((*watchHost)(w))
	return w
}

// Begin watches a wait of the session for a side of the lock of a key, and ends what deadlock it
// makes within the session. in are the claims in whose sections it lies, and others the watches of
// the sessions of these, as far as they are in this process.
func (w *Watch) Begin(of Suspect, key, sideName string, in []Claim, others []*Watch) *Waiting {
	at := onGrid(w.cfg.Clock() + seekAfter)
	x := &Waiting{
		wait: Wait{ID: waitID(time.Now(), w.cfg.Session, w.begun.Add(1)), Session: w.cfg.Session, Key: key, Side: sideName, Label: w.cfg.Label},
		of:   of, in: in, watches: []*Watch{w}, seekAt: at, pause: seekAfter,
	}
	for _, o := range others {
		if !slices.Contains(x.watches, o) {
			x.watches = append(x.watches, o)
		}
	}
	for _, o := range x.watches {
		o.add(x)
	}
	w.mu.Lock()
	sooner := at < w.due
	w.due = min(w.due, at)
	w.mu.Unlock()
	if sooner { // else the session is woken before
		w.cfg.WakeAt(at)
	}
	w.chaser.Begun(x.wait)
	return x
}

// Over ends the watch over a wait.
func (x *Waiting) Over() {
	for _, w := range x.watches {
		w.remove(x)
	}
}

func (w *Watch) add(x *Waiting) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waits[x.wait.ID] = x
	for _, c := range x.in {
		if c.Session == w.cfg.Session {
			if w.inside[c] == nil {
				w.inside[c] = map[*Waiting]bool{}
			}
			w.inside[c][x] = true
		}
	}
}

func (w *Watch) remove(x *Waiting) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.waits, x.wait.ID)
	for _, c := range x.in {
		if delete(w.inside[c], x); len(w.inside[c]) == 0 {
			delete(w.inside, c)
		}
	}
	if len(w.waits) == 0 {
		clear(w.sought)
		w.due = clock.Never
	}
}

// Len returns how many waits are watched.
func (w *Watch) Len() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.waits)
}

func onGrid(at time.Duration) time.Duration { return (at + seekGrid - 1).Truncate(seekGrid) }

// Seek looks for cycles from the waits that have lasted for long, if any are due: once for each
// side of a lock and second, whatever the number of its waiters. It returns when to call it again.
func (w *Watch) Seek(now time.Duration) (next time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if now < w.due {
		return w.due
	}
	w.due = clock.Never
	maps.DeleteFunc(w.sought, func(_ side, at time.Duration) bool { return now-at >= seekAfter })
	for _, x := range w.waits {
		if x.watches[0] != w {
			continue
		}
		if x.seekAt <= now {
			of := side{x.wait.Key, x.wait.Side}
			last, just := w.sought[of]
			switch {
			case !just:
				w.sought[of] = now
				w.look(func() { w.chaser.Seek(x.wait) })
				fallthrough
			case last == now:
				x.seekAt, x.pause = onGrid(now+x.pause), min(2*x.pause, seekAtMost)
			default:
				x.seekAt = onGrid(last + seekAfter)
			}
		}
		w.due = min(w.due, x.seekAt)
	}
	return w.due
}

// Hear takes the text of a message of another session, which begins with [inbox.Deadlock].
func (w *Watch) Hear(text string) error {
	m, ok := parse(text)
	if !ok {
		return fmt.Errorf("deadlock: a message that makes no sense: %.100q", text)
	}
	w.look(func() { w.chaser.Handle(&m) })
	return nil
}

// look has a job done in the background, after those before it, unless the session ends before.
func (w *Watch) look(job func()) {
	w.jobs.Offer(func() {
		if w.cfg.Context.Err() == nil {
			job()
		}
	}, maxJobs)
}
