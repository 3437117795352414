package report

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"relock/internal/api"
)

// OutagePause is between two messages of one kind at least, where the same may be said again: short enough
// for two reminders before the locks of a default lease are lost.
const OutagePause = 10 * time.Second

// A Watch sees the outages of one session, as Locks that wait do. Its mutex is the last in order, but
// for the notifier's.
type Watch struct {
	On atomic.Bool // there is one: the Logger was told that it began. The Watch sets it

	teller

	mu      sync.Mutex // guards what follows, and changes of On
	stuck   int        // Locks that wait and whose last attempt has failed
	began   time.Duration
	cause   error // that of the Lock with which it began
	refused int   // Locks that were denied and not told of
	denials limit
}

// A teller is how a session speaks to its Logger.
type teller struct {
	clock func() time.Duration
	log   *slog.Logger // in no caller's way, as that of a Notifier
}

// A limit is of messages that say the same.
type limit struct{ next time.Duration }

// passes reports whether a message may be told at a time, and counts it as told.
func (l *limit) passes(now time.Duration) bool {
	if now < l.next {
		return false
	}
	l.next = now + OutagePause
	return true
}

// NewWatch returns the Watch of a session. log is called under its mutex, and must not block.
func NewWatch(clock func() time.Duration, log *slog.Logger) *Watch {
	return &Watch{teller: teller{clock: clock, log: log}}
}

// Enter counts a Lock of a name that waits and whose last attempt has failed with err, unless it is counted
// already: stuck says so.
func (w *Watch) Enter(stuck *bool, name string, err error) {
	if *stuck {
		return
	}
	*stuck = true
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stuck++; w.On.Load() {
		return
	}
	w.began, w.cause = w.clock(), err
	w.On.Store(true)
	w.log.Warn("relock: Redis cannot serve; locks wait for it", "name", api.Shown(name), "error", err)
}

// Cause returns why Redis does not serve other Locks, as far as the Logger was told; nil if it does.
func (w *Watch) Cause() error {
	if !w.On.Load() {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stuck == 0 {
		return nil
	}
	return w.cause
}

// Leave takes a Lock off the count, if it is counted: it was answered, or gives up.
func (w *Watch) Leave(stuck *bool) {
	if *stuck {
		*stuck = false
		w.mu.Lock()
		defer w.mu.Unlock()
		w.stuck--
	}
}

// Denied notes that Redis does not allow a Lock of a name to this user, by err. The Lock does not
// wait for that, so it is no outage. Redis may allow other locks meanwhile, so nothing ends it either.
func (w *Watch) Denied(name string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.refused++; !w.denials.passes(w.clock()) {
		return
	}
	w.log.Warn("relock: Redis refuses this user; Lock returns at once", "name", api.Shown(name), "refused", w.refused, "error", err)
	w.refused = 0
}

// Answered notes that Redis has answered. As long as it does not answer others, as where a part of a
// Cluster is down, the outage goes on.
func (w *Watch) Answered() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stuck > 0 || !w.On.Load() {
		return
	}
	w.On.Store(false)
	w.log.Info("relock: Redis serves again", "after", w.clock()-w.began)
}
