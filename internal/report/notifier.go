package report

import (
	"context"
	"log/slog"

	"relock/internal/life"
)

// A Notifier runs functions in a goroutine of its own, in order. One that blocks costs its own
// messages and nothing else: neither the watchdog nor Close waits for it.
type Notifier struct{ queue *life.Queue[func()] }

// NewNotifier returns a Notifier that has nothing to run.
func NewNotifier() Notifier { return Notifier{life.OneByOne(func(fn func()) { go fn() })} }

// Most bounds what is kept for a Logger or hooks that block; what comes then is dropped.
const Most = 1000

// Add has fn run soon, and reports whether it was not dropped.
func (n Notifier) Add(fn func()) bool { return n.queue.Offer(fn, Most) }

// AddSurely is Add for what must not be dropped, since it ends what began. Of that there is
// little: an end for each hold, the loss of each lock, and a few changes a second of a subscription.
func (n Notifier) AddSurely(fn func()) { n.queue.Add(fn) }

// Told returns a channel that is closed when all that was added so far has run.
func (n Notifier) Told() <-chan struct{} {
	told := make(chan struct{})
	n.AddSurely(func() { close(told) })
	return told
}

// Handler hands records to the caller's handler by way of the notifier: for code that logs
// where the caller's must not run, as the hub does under its mutex.
func (n Notifier) Handler(to slog.Handler) slog.Handler { return handler{n, to} }

type handler struct {
	by Notifier
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
