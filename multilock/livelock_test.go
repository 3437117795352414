package multilock_test

import (
	"errors"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/multilock"
	"relock/rlock"
)

// Two multi-locks inside of sections of locks that the other one wants, and with one more lock that both want. Whichever gives
// way, the other one has the common lock next: it is a deadlock all the same, and one of them ends.
func TestDeadlockOfTwoThatGiveWay(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, 10*time.Minute)
		ses, other := dial(t, s, slow()), dial(t, s, slow())
		inX, x, err := rlock.New(ses, "x").Lock(ctx)
		must(t, err)
		inY, y, err := rlock.New(other, "y").Lock(ctx)
		must(t, err)
		mine := start(inX, multilock.New(rlock.New(ses, "common"), rlock.New(ses, "y")))
		theirs := start(inY, multilock.New(rlock.New(other, "common"), rlock.New(other, "x")))
		victim, left, outer, rest := taken{}, mine, y, x
		select {
		case victim = <-mine:
			left, outer, rest = theirs, x, y
		case victim = <-theirs:
		case <-time.After(time.Minute):
			t.Fatal("no victim")
		}
		if !errors.Is(victim.err, rlock.ErrDeadlock) {
			t.Fatalf("the first to return: %v", victim.err)
		}
		must(t, outer.Unlock())
		got := locktest.Get(t, left, time.Minute, "the other multi-lock")
		must(t, got.err)
		must(t, got.h.Unlock())
		must(t, rest.Unlock())
	})
}
