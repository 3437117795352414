package fairlock_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"relock/fairlock"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// A session loses the right to subscribe while a caller of it waits: the caller has its turn all the same.
func TestAWaiterThatHearsNothingAnyMoreIsServed(t *testing.T) {
	t.Parallel()
	for _, named := range []bool{false, true} {
		t.Run(fmt.Sprintf("named owner %v", named), func(t *testing.T) {
			t.Parallel()
			hearsNothingAnyMore(t, named)
		})
	}
}

func hearsNothingAnyMore(t *testing.T, named bool) {
	s := redistest.Real(t)
	ctx := within(t, patience)
	owner := ctx
	if named {
		owner = rlock.WithOwner(ctx, "ann")
	}
	proxy := newProxy(t, s)
	m := fairlock.New(dialVia(t, s, proxy, short(s)), "x")
	a, b := fairlock.New(dial(t, s, short(s)), "x"), fairlock.New(dial(t, s, short(s)), "x")
	first := lock(t, ctx, a)
	served := goQueued(t, owner, m, 1)
	proxy.RefuseCommand("SUBSCRIBE", "NOPERM no channels for you")
	must(t, s.Do(t, "CLIENT", "KILL", "TYPE", "pubsub").Error())
	others, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	for _, m := range []*fairlock.Mutex{a, a, b, b} {
		go func() {
			for others.Err() == nil {
				_ = m.Do(others, func(context.Context) error { pause(20 * time.Millisecond); return nil })
			}
			done <- struct{}{}
		}()
	}
	queued(t, a, 5)
	unlock(t, first)
	began := time.Now()
	select {
	case l := <-served:
		must(t, l.err)
		unlock(t, l)
		t.Logf("served after %v", time.Since(began))
	case <-time.After(patience / 2):
		t.Error("not served")
	}
	stop()
	for range 4 {
		<-done
	}
}
