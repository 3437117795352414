package engine

import (
	"context"
	"log/slog"
	"math"
	"sync"
	"time"
)

// The notifier runs the caller's Logger, and the hooks that concern no call, in a goroutine of
// its own, in order. One that blocks costs its own messages and nothing else: neither the
// watchdog nor Close waits for it.
type notifier struct {
	mu      sync.Mutex
	queue   []func()
	running bool
}

// maxNotes bounds what is kept for a Logger that blocks; what comes then is dropped.
const maxNotes = 1000

// notify has fn run soon.
func (s *Session) notify(fn func()) {
	s.notes.add(fn, maxNotes)
}

// notifySurely is notify for what must not be dropped, since it ends what began. Of that there is
// little: an end for each hold, and a few changes a second of a subscription.
func (s *Session) notifySurely(fn func()) { s.notes.add(fn, math.MaxInt) }

// tellAll waits until all notes so far are told, for a time at most.
func (s *Session) tellAll(atMost time.Duration) {
	told := make(chan struct{})
	s.notifySurely(func() { close(told) })
	timer := time.NewTimer(atMost)
	defer timer.Stop()
	s.await(told, timer)
}

// add has fn run soon, unless there are most or more.
func (n *notifier) add(fn func(), most int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.queue) >= most {
		return
	}
	n.queue = append(n.queue, fn)
	if !n.running {
		n.running = true
		go n.run()
	}
}

func (n *notifier) run() {
	for {
		n.mu.Lock()
		if len(n.queue) == 0 {
			n.queue, n.running = nil, false
			n.mu.Unlock()
			return
		}
		fn := n.queue[0]
		n.queue = n.queue[1:]
		n.mu.Unlock()
		fn()
	}
}

// noteHandler hands records to the caller's handler by way of the notifier: for code that logs
// where the caller's must not run, as the hub does under its mutex.
type noteHandler struct {
	s  *Session
	to slog.Handler
}

func (n noteHandler) Enabled(context.Context, slog.Level) bool { return true }

func (n noteHandler) Handle(_ context.Context, r slog.Record) error {
	r = r.Clone()
	n.s.notify(func() {
		if ctx := context.Background(); n.to.Enabled(ctx, r.Level) {
			_ = n.to.Handle(ctx, r)
		}
	})
	return nil
}

func (n noteHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return noteHandler{n.s, n.to.WithAttrs(attrs)}
}

func (n noteHandler) WithGroup(name string) slog.Handler {
	return noteHandler{n.s, n.to.WithGroup(name)}
}
