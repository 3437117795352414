package holds_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"relock/internal/api"
	"relock/internal/holds"
)

type key struct{}

func lazyIn(parent context.Context) *holds.Context { return &holds.Context{Parent: parent} }

// A goroutine that asks before or after the end sees it, with its cause.
func TestEnd(t *testing.T) {
	for why, cause := range map[holds.Ending]error{
		holds.Released: api.ErrReleased, holds.Lost: api.ErrLost,
		holds.Closed: api.ErrClosed, holds.LostAndUnlocked: api.ErrLost,
	} {
		early, late, never := lazyIn(t.Context()), lazyIn(t.Context()), lazyIn(t.Context())
		child, cancel := context.WithCancel(early)
		defer cancel()
		if early.Err() != nil || early.Ended() != 0 {
			t.Fatalf("an open one: %v, %v", early.Err(), early.Ended())
		}
		done := early.Done()
		if !early.End(why) || late.End(why) || never.End(why) {
			t.Error("there is something to cancel where nobody has asked, or not where somebody has")
		}
		early.Cancel()
		late.Cancel()
		<-done
		<-late.Done()
		<-child.Done()
		if early.Ended() != why || early.Err() != context.Canceled || context.Cause(early) != cause || context.Cause(child) != cause {
			t.Errorf("asked before: %v, %v, causes %v and %v", early.Ended(), early.Err(), context.Cause(early), context.Cause(child))
		}
		if late.Err() != context.Canceled || context.Cause(late) != cause {
			t.Errorf("asked after: %v, cause %v", late.Err(), context.Cause(late))
		}
		if context.Cause(never) != cause {
			t.Errorf("asked for the cause alone: %v", context.Cause(never))
		}
	}
}

// It ends with its parent, whose values and deadline it has.
func TestParent(t *testing.T) {
	at := time.Now().Add(time.Hour)
	parent, end := context.WithDeadline(context.WithValue(t.Context(), key{}, "value"), at)
	defer end()
	parent, cancel := context.WithCancelCause(parent)
	x, unasked := lazyIn(parent), lazyIn(parent)
	if d, ok := x.Deadline(); !ok || !d.Equal(at) || x.Value(key{}) != "value" || x.Value("other") != nil {
		t.Errorf("deadline %v, %v, value %v", d, ok, x.Value(key{}))
	}
	done := x.Done()
	why := errors.New("why")
	cancel(why)
	<-done
	for what, x := range map[string]*holds.Context{"asked before": x, "asked after": unasked} {
		x.End(holds.Released) // later: the first reason stays the reason
		if x.Err() != context.Canceled && what == "asked before" || context.Cause(x) != why {
			t.Errorf("%s: %v, cause %v", what, x.Err(), context.Cause(x))
		}
	}
}

// Of goroutines that ask at once, while it ends, all get the same, and it ends.
func TestAskedAtOnce(t *testing.T) {
	for range 200 {
		x := lazyIn(t.Context())
		var all sync.WaitGroup
		got := make([]<-chan struct{}, 4)
		for i := range got {
			all.Go(func() { got[i] = x.Done() })
		}
		all.Go(func() {
			x.End(holds.Lost)
			x.Cancel()
		})
		all.Wait()
		for _, done := range got {
			if done != got[0] {
				t.Fatal("two who ask wait for different ends")
			}
			<-done
		}
	}
}
