package fairlock_test

import (
	"fmt"
	"testing"

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
	servedBeside(t, ctx, first, served, a, b)
}
