package fairlock_test

import (
	"fmt"
	"testing"
	"time"

	"relock/fairlock"
	"relock/internal/test/locktest"
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
	servedBeside(t, ctx, first, served, a, b)
}

// The answer that a caller has the lock is lost with the connection, and the server does not let the client in again, or
// refuses what it asks: Lock returns, and what it has taken is released when the server allows it. It stood for a lease.
func TestAnAttemptWithoutAnAnswerIsReleasedBehindARefusal(t *testing.T) {
	each(t, func(t *testing.T, s *redistest.Server) {
		proxy := newProxy(t, s)
		m := fairlock.New(dialVia(t, s, proxy, rlock.Config{Lease: time.Hour}), "x")
		seen, release := proxy.HoldReply(runs("acquire"))
		defer release()
		refused := goLock(within(t, patience), m)
		locktest.Get(t, seen, patience, "Redis gives the lock")
		proxy.RefuseCommand("EVALSHA", "WRONGPASS invalid username-password pair")
		proxy.Cut()
		is(t, "Lock", locktest.Get(t, refused, patience, "Lock returns").err, rlock.ErrUnavailable)
		proxy.RefuseCommand("EVALSHA", "")
		nothingLeft(t, s)
	})
}
