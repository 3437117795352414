package engine

import (
	"context"
	"log/slog"
	"sync"
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
	n := &s.notes
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.queue) == maxNotes {
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
