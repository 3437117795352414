// Package outage tells the Logger of the times in which Redis does not serve Locks that wait: when
// one begins and when it ends, however many Locks wait and however often they ask.
package outage

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// A Watch sees the outages of one session. Its mutex is the last in order, but for the notifier's.
type Watch struct {
	On atomic.Bool // there is one: the Logger was told that it began. The Watch sets it

	clock  func() time.Duration
	notify func(fn func()) // runs what logs, soon and in order
	log    *slog.Logger

	mu    sync.Mutex // guards what follows, and changes of On
	stuck int        // Locks that wait and whose last attempt has failed
	began time.Duration
}

// New returns the Watch of a session. notify runs what logs, soon and in order, in no caller's way.
func New(clock func() time.Duration, notify func(fn func()), log *slog.Logger) *Watch {
	return &Watch{clock: clock, notify: notify, log: log}
}

// Enter counts a Lock of a name that waits and whose last attempt has failed with err.
func (w *Watch) Enter(name string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stuck++; w.On.Load() {
		return
	}
	w.began = w.clock()
	w.On.Store(true)
	w.notify(func() { w.log.Warn("relock: Redis cannot serve; locks wait for it", "name", name, "error", err) })
}

// Leave takes a Lock off the count: it was answered, or gives up.
func (w *Watch) Leave() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stuck--
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
	lasted := w.clock() - w.began
	w.notify(func() { w.log.Info("relock: Redis serves again", "after", lasted) })
}
