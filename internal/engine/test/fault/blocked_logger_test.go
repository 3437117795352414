package fault_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/locktrace"
	"relock/rlock"
)

// blocked is a Logger whose sink takes nothing, as a full pipe, until the test is over.
type blocked struct {
	slog.Handler
	first sync.Once
	hit   chan struct{}
	free  chan struct{}
}

func (b *blocked) Enabled(context.Context, slog.Level) bool { return true }

func (b *blocked) Handle(context.Context, slog.Record) error {
	b.first.Do(func() { close(b.hit) })
	<-b.free
	return nil
}

// A Logger and hooks that block for ever cost their messages only: locks are renewed, ended
// when they are lost, and passed on; Close returns.
func TestBlockedLoggerStopsNothing(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		lease := s.Slowed(time.Second)
		b := &blocked{hit: make(chan struct{}), free: make(chan struct{})}
		defer close(b.free)
		trace := &rlock.Trace{
			Renewed: func(locktrace.Renewed) { <-b.free },
			Lost:    func(locktrace.Lost) { <-b.free },
		}
		ses, p := locktest.DialProxy(t, s, rlock.Config{Lease: lease, Logger: slog.New(b), Trace: trace, PollFloor: time.Minute})
		ctx := within(t, 30*time.Second)
		name := redistest.Name(t)
		m := rlock.New(ses, name)
		section, _, err := rlock.New(ses, name+"kept").Lock(ctx)
		must(t, err)
		lost, _, err := rlock.New(ses, name+"lost").Lock(ctx)
		must(t, err)
		must(t, s.Do(t, "PUBLISH", "relock_session:"+ses.ID(), "gibberish").Error()) // which is logged
		select {
		case <-b.hit:
		case <-time.After(3 * time.Second): // a hook may have blocked the notifier before
		}
		p.Cut() // the hub and the renewals have something to say as well
		must(t, s.Do(t, "DEL", name+"lost").Error())
		locktest.Ends(t, lost, lease+s.Slack(), rlock.ErrLost)
		locktest.Stays(t, section, 2*lease)
		other := dial(t, s, rlock.Config{})
		_, theirs, err := rlock.New(other, name).Lock(ctx)
		must(t, err)
		waiter := locktest.GoLock(m, ctx) // it needs the hub, which has had something to say too
		redistest.Eventually(t, 5*time.Second, "the waiter to listen", func() bool {
			return len(s.Channels(t)) == 3
		})
		must(t, theirs.Unlock())
		got := locktest.Get(t, waiter, 10*time.Second, "Lock")
		must(t, got.Err)
		must(t, got.Hold.Unlock())
		must(t, m.Do(ctx, func(context.Context) error { return nil }))
		closed := locktest.Go(ses.Close)
		must(t, locktest.Get(t, closed, 5*time.Second, "Close"))
		locktest.Ends(t, section, s.Slack(), rlock.ErrClosed)
	})
}
