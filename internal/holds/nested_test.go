package holds_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"relock/internal/holds"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type (
	ownKey  struct{}
	userKey struct{}
)

var errEnd = errors.New("the end")

func ends(t *testing.T, what string, ctx context.Context, cause error) {
	t.Helper()
	select {
	case <-ctx.Done():
	default:
		t.Errorf("%s has not ended", what)
		return
	}
	if err := ctx.Err(); !errors.Is(err, context.Canceled) || context.Cause(ctx) != cause {
		t.Errorf("%s ended with %v, caused by %v, want %v", what, err, context.Cause(ctx), cause)
	}
}

// A context has the values of the one that it was derived from, but for one.
func TestValues(t *testing.T) {
	var c holds.Contexts
	ctx, cancel := context.WithTimeout(context.WithValue(t.Context(), userKey{}, "user's"), time.Hour)
	defer cancel()
	ctx = context.WithValue(ctx, ownKey{}, "outer")
	got := c.Derive(ctx, ownKey{}, "own")
	if got.Value(userKey{}) != "user's" || got.Value(ownKey{}) != "own" || got.Value("none") != nil {
		t.Errorf("values %v, %v, %v", got.Value(userKey{}), got.Value(ownKey{}), got.Value("none"))
	}
	at, ok := got.Deadline()
	if want, _ := ctx.Deadline(); !ok || at != want || got.Err() != nil {
		t.Errorf("deadline %v, %v; error %v", at, ok, got.Err())
	}
}

// It ends with End or with what it was derived from, with the cause of that; so do its children.
func TestContextsEnd(t *testing.T) {
	var c holds.Contexts
	ctx, cancel := context.WithCancelCause(t.Context())
	other, cancelOther := context.WithCancel(t.Context())
	defer cancelOther()
	first, second := c.Derive(ctx, ownKey{}, nil), c.Derive(other, ownKey{}, nil)
	child, end := context.WithCancel(second)
	defer end()

	errOwn := errors.New("its own")
	cancel(errOwn)
	ends(t, "the one whose parent ended", first, errOwn)
	if second.Err() != nil {
		t.Errorf("the other has ended: %v", second.Err())
	}
	c.End(errEnd, holds.AtOnce)
	c.End(errors.New("later"), holds.AtOnce)
	ends(t, "the other", second, errEnd)
	ends(t, "its child", child, errEnd)
	ends(t, "the first", first, errOwn)
	ends(t, "one that comes later", c.Derive(other, ownKey{}, nil), errEnd)
}

// Contexts with the same Done share one that can be cancelled.
func TestSharing(t *testing.T) {
	var c holds.Contexts
	ctx, cancel := context.WithCancel(t.Context())
	first := c.Derive(ctx, ownKey{}, nil)
	for i := range 10 {
		next := c.Derive(context.WithValue(ctx, userKey{}, i), ownKey{}, nil)
		if next.Done() != first.Done() || next.Value(userKey{}) != i {
			t.Errorf("the one with the value %d does not share the end", i)
		}
	}
	cancel()
	if again := c.Derive(ctx, ownKey{}, nil); again.Err() == nil {
		t.Error("a context that has ended leads to one that has not")
	}
	other, end := context.WithCancel(t.Context())
	defer end()
	if n := testing.AllocsPerRun(100, func() { c.Derive(other, ownKey{}, nil) }); n > 1 {
		t.Errorf("another one of the same Done takes %v allocations", n)
	}
}

// Contexts that are derived while End runs end all the same.
func TestEndWhileContextsAreDerived(t *testing.T) {
	for range 200 {
		var c holds.Contexts
		var all sync.WaitGroup
		var got [4]context.Context
		for i := range got {
			all.Go(func() {
				ctx := context.WithValue(t.Context(), userKey{}, fmt.Sprint(i))
				got[i] = c.Derive(ctx, ownKey{}, nil)
			})
		}
		c.End(errEnd, holds.AtOnce)
		all.Wait()
		for i, ctx := range got {
			ends(t, fmt.Sprint("number ", i), ctx, errEnd)
		}
	}
}
