package holds_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"relock/internal/holds"
)

// own is a context with a Done of its own.
type own struct {
	context.Context
	done chan struct{}
}

func (c own) Done() <-chan struct{} { return c.done }

// through is a context that has the end of another one, as package context finds it.
type through struct {
	context.Context
	end context.Context
}

func (c through) Done() <-chan struct{} { return c.end.Done() }
func (c through) Err() error            { return c.end.Err() }
func (c through) Value(key any) any {
	if key == holds.CancelKey {
		return c.end.Value(key)
	}
	return c.Context.Value(key)
}

func TestForeign(t *testing.T) {
	type key struct{}
	cancellable, cancel := context.WithCancel(t.Context())
	defer cancel()
	timed, stop := context.WithTimeout(cancellable, time.Hour)
	defer stop()
	strange := own{cancellable, make(chan struct{})}
	for _, c := range []struct {
		name string
		ctx  context.Context
		want bool
	}{
		{"endless", context.Background(), false},
		{"endless with a value", context.WithValue(context.Background(), key{}, 1), false},
		{"cancellable", cancellable, false},
		{"timed", timed, false},
		{"with a value", context.WithValue(timed, key{}, 1), false},
		{"without its parent's end", context.WithoutCancel(strange), false},
		{"derived from an end of its own", through{context.Background(), cancellable}, false},
		{"a Done of its own", strange, true},
		{"a Done of its own, with a value", context.WithValue(strange, key{}, 1), true},
		{"a Done of its own and nothing behind it", own{context.Background(), make(chan struct{})}, true},
	} {
		if got := holds.Foreign(c.ctx); got != c.want {
			t.Errorf("%s: foreign is %v, want %v", c.name, got, c.want)
		}
	}
}

// A context that answers the key has the cause of what it leads to.
func TestCauseFollowsTheKey(t *testing.T) {
	why := errors.New("why")
	end, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	if got := context.Cause(through{context.Background(), end}); got != why {
		t.Errorf("the cause is %v, want that of the context behind it", got)
	}
}
