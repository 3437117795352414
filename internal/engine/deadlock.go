package engine

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"relock/internal/deadlock"
)

// A suspect is a Lock that waits inside of open sections: it may be part of a deadlock. All other
// Locks are of no interest here, and cost nothing.
type suspect struct {
	wait     deadlock.Wait
	a        *acquisition // not to be looked at once over is set, since it is reused
	lock     *lock
	sections []*section // that the caller's context lies in, of whatever session
	over     bool       // guarded by the lock's mutex

	// Guarded by the mutex of the watch.
	seekAt time.Duration
	pause  time.Duration // between this look and the next
}

// A deadlockWatch is what a session knows of deadlocks. Its mutex is taken alone.
type deadlockWatch struct {
	chaser *deadlock.Chaser
	begun  uint64 // waits

	mu     sync.Mutex
	waits  map[string]*suspect          // of this session, and those that lie in its sections
	inside map[*claim]map[*suspect]bool // that lie in a section of a claim of this session
	sought map[side]time.Duration       // when the session has just sought for a lock
	due    time.Duration                // when it seeks next
	jobs   []func()                     // messages and searches, done one after the other
	busy   bool
}

// A side is what is sought for once for all who wait for it.
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
	// lookTimeout bounds one question to Redis, or one message.
	lookTimeout = 500 * time.Millisecond
	// maxHolders is how many holders of a lock are followed at a time.
	maxHolders = 64
)

func (s *Session) watchDeadlocks() {
	s.deadlocks = deadlockWatch{
		chaser: deadlock.New((*host)(s)), due: never,
		waits: map[string]*suspect{}, inside: map[*claim]map[*suspect]bool{}, sought: map[side]time.Duration{},
	}
}

// Keeps is for a Lock of a caller who gives up, when the wait lasts, what it holds beyond the
// sections of ctx: only those make it a part of a deadlock.
func Keeps(ctx context.Context) LockOption { return func(o *lockOptions) { o.keeps = ctx } }

// actsIn returns the open sections that ctx lies in, those of named owners excepted, and those
// outside of WithOwner and WithoutOwner. It runs code of the caller's contexts.
func actsIn(ctx context.Context) (sections []*section) {
	for {
		x, ok := ctx.Value(ownerKey{}).(*section)
		if !ok {
			return sections
		}
		if x.claim.num != 0 && !x.over() {
			sections = append(sections, x)
		}
		ctx = x.parent
	}
}

// mayBlock notes that the caller waits, if it does so inside of open sections, and looks for a
// deadlock. No mutex may be held.
func (a *acquisition) mayBlock() {
	ctx := a.ctx
	if a.opts.keeps != nil {
		ctx = a.opts.keeps
	}
	sections := actsIn(ctx)
	if sections == nil || a.prim.Kind().Permits {
		return
	}
	a.unblocked()
	s := a.lock.s
	w, at := &s.deadlocks, onGrid(s.now()+seekAfter)
	x := &suspect{a: a, lock: a.lock, sections: sections, seekAt: at, pause: seekAfter}
	w.mu.Lock()
	w.begun++
	x.wait = deadlock.Wait{ID: deadlock.ID(time.Now(), s.id, w.begun), Session: s.id, Key: a.lock.Key(), Side: a.prim.Kind().name(), Label: s.cfg.Label}
	w.mu.Unlock()
	a.suspect = x
	for _, of := range x.watches() {
		of.deadlocks.add(x)
	}
	if w.arm(at) {
		s.schedule.wakeAt(at)
	}
	w.chaser.Begun(x.wait)
}

// unblocked notes that the caller waits no more. No mutex may be held.
func (a *acquisition) unblocked() {
	x := a.suspect
	if x == nil {
		return
	}
	a.suspect = nil
	x.lock.mu.Lock()
	x.over = true
	x.lock.mu.Unlock()
	for _, of := range x.watches() {
		of.deadlocks.remove(x)
	}
}

// watches returns the sessions that have to know of the suspect.
func (x *suspect) watches() []*Session {
	all := []*Session{x.lock.s}
	for _, in := range x.sections {
		if s := in.claim.lock.s; !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	return all
}

func (w *deadlockWatch) add(x *suspect) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waits[x.wait.ID] = x
	for _, in := range x.sections {
		if c := in.claim; &c.lock.s.deadlocks == w {
			if w.inside[c] == nil {
				w.inside[c] = map[*suspect]bool{}
			}
			w.inside[c][x] = true
		}
	}
}

func (w *deadlockWatch) remove(x *suspect) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.waits, x.wait.ID)
	for _, in := range x.sections {
		if delete(w.inside[in.claim], x); len(w.inside[in.claim]) == 0 {
			delete(w.inside, in.claim)
		}
	}
	if len(w.waits) == 0 {
		clear(w.sought)
		w.due = never
	}
}

// arm has the session seek at a time, and reports whether the watchdog must be told: nothing else
// is due here before.
func (w *deadlockWatch) arm(at time.Duration) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if at >= w.due {
		return false
	}
	w.due = at
	return true
}

// next returns when the watchdog has to call seek.
func (w *deadlockWatch) next() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.due
}

func onGrid(at time.Duration) time.Duration { return (at + seekGrid - 1).Truncate(seekGrid) }

// seekDue looks for cycles from the waits that have lasted for long: once for each side of a lock
// and second, whatever the number of its waiters.
func (s *Session) seekDue(now time.Duration) {
	w := &s.deadlocks
	var seek []deadlock.Wait
	w.mu.Lock()
	w.due = never
	maps.DeleteFunc(w.sought, func(_ side, at time.Duration) bool { return now-at >= seekAfter })
	for _, x := range w.waits {
		if x.lock.s != s {
			continue
		}
		if x.seekAt <= now {
			of := side{x.wait.Key, x.wait.Side}
			last, just := w.sought[of]
			switch {
			case !just:
				w.sought[of] = now
				seek = append(seek, x.wait)
				fallthrough
			case last == now:
				x.seekAt, x.pause = onGrid(now+x.pause), min(2*x.pause, seekAtMost)
			default:
				x.seekAt = onGrid(last + seekAfter)
			}
		}
		w.due = min(w.due, x.seekAt)
	}
	w.mu.Unlock()
	for _, wait := range seek {
		s.look(func() { w.chaser.Seek(wait) })
	}
}

// heardOfDeadlock takes a message of another session.
func (s *Session) heardOfDeadlock(payload string) {
	m, err := deadlock.Parse(payload)
	if err != nil {
		s.notify(func() { s.cfg.Logger.Warn("relock: bad message on the session's channel", "error", err) })
		return
	}
	s.look(func() { s.deadlocks.chaser.Handle(&m) })
}

// look has a job done in the background, after those before it.
func (s *Session) look(job func()) {
	w := &s.deadlocks
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.jobs) >= maxJobs || s.life.closing.Err() != nil {
		return
	}
	w.jobs = append(w.jobs, job)
	if !w.busy {
		w.busy = true
		s.life.background.Go(s.doLooks)
	}
}

func (s *Session) doLooks() {
	w := &s.deadlocks
	for {
		w.mu.Lock()
		if len(w.jobs) == 0 || s.life.closing.Err() != nil {
			w.jobs, w.busy = nil, false
			w.mu.Unlock()
			return
		}
		job := w.jobs[0]
		w.jobs = w.jobs[1:]
		w.mu.Unlock()
		job()
	}
}

// isDeadlockMessage reports whether a message of the session's channel is one of package deadlock.
func isDeadlockMessage(payload string) bool { return strings.HasPrefix(payload, deadlock.Prefix) }
