package rlock_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"

	"relock/internal/test/locktest"
	"relock/rlock"
)

// A stopped context is one of the caller's own that waits, once it is told to, where it is asked
// whether it has ended, and where a context that was made of it is cancelled.
type stoppedContext struct {
	context.Context
	inErr, inDone atomic.Pointer[chan struct{}]
}

func stopAt(at *atomic.Pointer[chan struct{}]) {
	if c := at.Swap(nil); c != nil {
		<-*c
	}
}

func (c *stoppedContext) Err() error {
	stopAt(&c.inErr)
	return c.Context.Err()
}

func (c *stoppedContext) Done() <-chan struct{} {
	stopAt(&c.inDone)
	return c.Context.Done()
}

// A lock is handed over while it is renewed: the session asks whether the section wants that, the
// section ends, and the renewal finds none. What the next one is given is renewed.
func TestHandOverDuringARenewal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := miniredis.NewMiniRedis()
		server.ClockTTL(true)
		defer server.Close()
		ses := locktest.DialBubble(t, server, rlock.Config{Lease: 30 * time.Second})
		defer ses.Close()
		m := rlock.New(ses, "x")
		parent, end := context.WithCancel(context.Background())
		defer end()
		ctx := &stoppedContext{Context: parent}
		section, h, err := m.Lock(ctx)
		must(t, err)
		ses.Unhurried("x")
		renewal, cancelling := make(chan struct{}), make(chan struct{})
		ctx.inErr.Store(&renewal)
		time.Sleep(11 * time.Second)
		if ctx.inErr.Load() != nil {
			t.Fatal("no renewal was due")
		}
		section.Done() // from now on there is something to be cancelled
		next := faultGoLock(m, context.Background())
		synctest.Wait()
		ctx.inDone.Store(&cancelling)
		unlocked := faultGo(h.Unlock)
		synctest.Wait()
		if ctx.inDone.Load() != nil {
			t.Fatal("the section was not cancelled")
		}
		close(renewal)
		synctest.Wait()
		close(cancelling)
		must(t, <-unlocked)
		l := <-next
		must(t, l.err)
		if l.hold.Owner() != h.Owner() {
			t.Fatal("the lock was not handed over")
		}
		time.Sleep(time.Minute)
		if l.ctx.Err() != nil {
			t.Errorf("the lock was lost: %v", context.Cause(l.ctx))
		}
		must(t, l.hold.Unlock())
	})
}
