package quorum_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"relock/quorum"
	"relock/rlock"
)

// Bad input gives an error that says what would be right, and sends nothing.
func TestBadInput(t *testing.T) {
	all := cluster(t, 3, mini)
	ctx := within(t, 20*time.Second)
	sessions := dial(t, all, rlock.Config{})
	good := quorum.New(sessions, "x")
	section, h := lock(t, ctx, good)
	var none *quorum.Mutex
	for what, c := range map[string]struct {
		m    *quorum.Mutex
		ctx  context.Context
		opts []rlock.LockOption
		want error
		text string
	}{
		"nil mutex":     {none, ctx, nil, rlock.ErrArgument, "make one with New"},
		"zero mutex":    {new(quorum.Mutex), ctx, nil, rlock.ErrArgument, "make one with New"},
		"no sessions":   {quorum.New(nil, "x"), ctx, nil, rlock.ErrArgument, "no sessions"},
		"nil session":   {quorum.New([]*rlock.Session{sessions[0], nil}, "x"), ctx, nil, rlock.ErrArgument, "nil"},
		"one twice":     {quorum.New([]*rlock.Session{sessions[0], sessions[0]}, "x"), ctx, nil, rlock.ErrArgument, "twice"},
		"no name":       {quorum.New(sessions, ""), ctx, nil, rlock.ErrName, "empty"},
		"nil ctx":       {good, nil, nil, rlock.ErrArgument, "context.Background()"},
		"bad Wait":      {good, ctx, []rlock.LockOption{rlock.Wait(-1)}, rlock.ErrArgument, "Wait"},
		"long Lease":    {good, ctx, []rlock.LockOption{rlock.Lease(31 * time.Second)}, rlock.ErrArgument, "at most"},
		"AtLeast":       {good, ctx, []rlock.LockOption{rlock.AtLeast(time.Second)}, rlock.ErrArgument, "AtLeast"},
		"a named owner": {good, rlock.WithOwner(ctx, "job"), nil, rlock.ErrArgument, "WithoutOwner"},
		"re-entry":      {quorum.New([]*rlock.Session{sessions[2], sessions[0], sessions[1]}, "x"), section, nil, rlock.ErrArgument, "not re-entrant"},
	} {
		got, hold, err := c.m.Lock(c.ctx, c.opts...)
		if is(t, what, err, c.want); got != c.ctx || hold != nil || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v, %v, %v", what, got, hold, err)
		}
	}
	is(t, "Do(nil)", good.Do(ctx, nil), rlock.ErrArgument)
	var nilHold *quorum.Hold
	is(t, "nil Hold", nilHold.Unlock(), rlock.ErrNotHeld)
	is(t, "zero Hold", new(quorum.Hold).Unlock(), rlock.ErrNotHeld)
	if nilHold.Votes() != 0 || nilHold.Remaining() != 0 {
		t.Error("a nil hold has votes")
	}
	must(t, h.Unlock())
	over, cancel := context.WithCancel(ctx)
	cancel()
	_, _, err := good.Lock(over)
	if is(t, "ctx done", err, context.Canceled); errors.Is(err, rlock.ErrNotAcquired) {
		t.Errorf("ctx was done before, and the error is %v", err)
	}
	free(t, ctx, quorum.New(sessions[:1], "one node"))
}
