package fault_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
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

// A Logger that blocks for ever does not keep the hooks from what they are told (R32).
func TestABlockedLoggerCostsNoHook(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		b := &blocked{hit: make(chan struct{}), free: make(chan struct{})}
		defer close(b.free)
		lost, ended := make(chan locktrace.Lost, 1), make(chan locktrace.HoldEnd, 1)
		ses := dial(t, s, rlock.Config{Logger: slog.New(b), Trace: &rlock.Trace{
			Lost:    func(e locktrace.Lost) { lost <- e },
			HoldEnd: func(_ context.Context, e locktrace.HoldEnd) { ended <- e },
		}})
		must(t, s.Do(t, "PUBLISH", "relock_session:"+ses.ID(), "gibberish").Error()) // which is logged
		locktest.Get(t, b.hit, 10*time.Second, "the Logger")
		m := rlock.New(ses, "x")
		section, _, err := m.Lock(within(t, time.Minute))
		must(t, err)
		found, err := m.ForceUnlock(within(t, time.Minute))
		must(t, err)
		if !found {
			t.Fatal("the lock was not held")
		}
		locktest.Ends(t, section, 10*time.Second, rlock.ErrLost)
		if e := locktest.Get(t, lost, 10*time.Second, "Lost"); e.Name != "x" {
			t.Errorf("Lost: %+v", e)
		}
		if e := locktest.Get(t, ended, 10*time.Second, "HoldEnd"); e.Reason != locktrace.HoldLost {
			t.Errorf("HoldEnd: %+v", e)
		}
	})
}

// Many locks are lost at a time, and the hook Lost is slow: it hears of each of them, as HoldEnd does.
func TestEachLossIsToldToTheHooks(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		const locks = 1100
		goOn := make(chan struct{})
		var lost, ended atomic.Int32
		ses := dial(t, s, rlock.Config{Lease: 3 * time.Second, Logger: slog.New(slog.DiscardHandler), Trace: &rlock.Trace{
			Lost:    func(locktrace.Lost) { <-goOn; lost.Add(1) },
			HoldEnd: func(context.Context, locktrace.HoldEnd) { ended.Add(1) },
		}})
		var sections []context.Context
		for i := range locks {
			section, _, err := rlock.New(ses, fmt.Sprint("lock ", i)).Lock(within(t, time.Minute))
			must(t, err)
			sections = append(sections, section)
		}
		must(t, s.Do(t, "FLUSHALL").Error())
		for _, section := range sections {
			locktest.Ends(t, section, 30*time.Second, rlock.ErrLost)
		}
		close(goOn)
		redistest.Eventually(t, 10*time.Second, "HoldEnd to hear of each", func() bool { return ended.Load() == locks })
		redistest.Eventually(t, 10*time.Second, "Lost to hear of each", func() bool { return lost.Load() == locks })
	})
}
