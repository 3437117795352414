package api_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"relock/internal/api"
)

// What a caller matches must be in the error, whatever else its text tells.
func TestNotAcquiredMatchesWhatEndedTheWait(t *testing.T) {
	for _, c := range []struct {
		ctx, last error
		text      string
	}{
		{nil, nil, "rlock: not acquired"},
		{context.Canceled, nil, "rlock: not acquired: context canceled"},
		{nil, io.EOF, "rlock: not acquired (last attempt: EOF)"},
		{context.Canceled, io.EOF, "rlock: not acquired: context canceled (last attempt: EOF)"},
	} {
		err := api.NotAcquired(c.ctx, c.last)
		if err.Error() != c.text || !errors.Is(err, api.ErrNotAcquired) {
			t.Errorf("got %q, want %q", err, c.text)
		}
		for _, want := range []error{c.ctx, c.last} {
			if want != nil && !errors.Is(err, want) {
				t.Errorf("%v does not match %v", err, want)
			}
		}
	}
}

func TestLongNameIsCut(t *testing.T) {
	if got := api.Quote(`a"b`); got != `"a\"b"` {
		t.Error(got)
	}
	got := api.Quote(strings.Repeat("x", 1<<20))
	if len(got) > 200 || !strings.HasSuffix(got, "(1048576 bytes)") {
		t.Errorf("%d bytes, ending %q", len(got), got[len(got)-20:])
	}
}

// manyErrors is an error of a type that cannot be compared, as validators have them.
type manyErrors []error

func (manyErrors) Error() string { return "many" }

// An own context has an end that package context knows nothing of.
type ownContext struct {
	context.Context
	errs []error // what Err returns, one after the other, and then the last one
}

func (c *ownContext) Err() error {
	err := c.errs[0]
	if len(c.errs) > 1 {
		c.errs = c.errs[1:]
	}
	return err
}

// A context of the caller's own may end with an error of any type, or take its end back: what is told of
// it is an error, and never nil, which would be a lock that nobody holds.
func TestOfContextOfAnyContext(t *testing.T) {
	caused, cancel := context.WithCancelCause(t.Context())
	cancel(manyErrors{})
	for what, c := range map[string]struct {
		ctx  context.Context
		want string
	}{
		"a cause that cannot be compared":   {caused, "context canceled (many)"},
		"an error that cannot be compared":  {&ownContext{t.Context(), []error{manyErrors{}}}, "many"},
		"an error that is gone for a while": {&ownContext{t.Context(), []error{nil, io.EOF}}, "EOF"},
		"an error that is gone":             {&ownContext{t.Context(), []error{nil}}, "context canceled"},
	} {
		if err := api.OfContext(c.ctx); err == nil || err.Error() != c.want {
			t.Errorf("%s: %v, want %q", what, err, c.want)
		}
	}
}
