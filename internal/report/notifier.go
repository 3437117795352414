package report

import (
	"context"
	"log/slog"
	"math"
	"sync"
)

// A Notifier runs functions in a goroutine of its own, in order. One that blocks costs its own
// messages and nothing else: neither the watchdog nor Close waits for it. The zero value is ready
// for use.
type Notifier struct {
	mu      sync.Mutex
	queue   []func()
	running bool
}

// Most bounds what is kept for a Logger that blocks; what comes then is dropped.
const Most = 1000

// Add has fn run soon.
func (n *Notifier) Add(fn func()) { n.add(fn, Most) }

// AddSurely is Add for what must not be dropped, since it ends what began. Of that there is
// little: an end for each hold, and a few changes a second of a subscription.
func (n *Notifier) AddSurely(fn func()) { n.add(fn, math.MaxInt) }

// Told returns a channel that is closed when all that was added so far has run.
func (n *Notifier) Told() <-chan struct{} {
	told := make(chan struct{})
	n.AddSurely(func() { close(told) })
	return told
}

// add has fn run soon, unless there are most or more.
func (n *Notifier) add(fn func(), most int) {
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

func (n *Notifier) run() {
	over := false
	defer func() {
		if !over { // a function has called runtime.Goexit, as a hook of a test that fails
			go n.run()
		}
	}()
	for {
		n.mu.Lock()
		if len(n.queue) == 0 {
			n.queue, n.running, over = nil, false, true
			n.mu.Unlock()
			return
		}
		fn := n.queue[0]
		n.queue = n.queue[1:]
		n.mu.Unlock()
		fn()
	}
}

// Handler hands records to the caller's handler by way of the notifier: for code that logs
// where the caller's must not run, as the hub does under its mutex.
func (n *Notifier) Handler(to slog.Handler) slog.Handler { return handler{n, to} }

type handler struct {
	by *Notifier
	to slog.Handler
}

func (h handler) Enabled(context.Context, slog.Level) bool { return true }

func (h handler) Handle(_ context.Context, r slog.Record) error {
	r = r.Clone()
	h.by.Add(func() {
		if ctx := context.Background(); h.to.Enabled(ctx, r.Level) {
			_ = h.to.Handle(ctx, r)
		}
	})
	return nil
}

func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return handler{h.by, h.to.WithAttrs(attrs)}
}

func (h handler) WithGroup(name string) slog.Handler { return handler{h.by, h.to.WithGroup(name)} }
