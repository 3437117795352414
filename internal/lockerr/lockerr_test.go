package lockerr_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"relock/internal/lockerr"
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
		err := lockerr.NotAcquired(c.ctx, c.last)
		if err.Error() != c.text || !errors.Is(err, lockerr.ErrNotAcquired) {
			t.Errorf("got %q, want %q", err, c.text)
		}
		for _, want := range []error{c.ctx, c.last} {
			if want != nil && !errors.Is(err, want) {
				t.Errorf("%v does not match %v", err, want)
			}
		}
	}
}

func TestErrorOfTheClientIsMarkedOnce(t *testing.T) {
	once := lockerr.Unavailable(io.EOF)
	if !errors.Is(once, lockerr.ErrUnavailable) || !errors.Is(once, io.EOF) {
		t.Errorf("%v does not match ErrUnavailable and what the client said", once)
	}
	if twice := lockerr.Unavailable(once); twice != once {
		t.Errorf("marked again: %v", twice)
	}
}

// The end of a context that has cut off an attempt says nothing of its own about Redis.
func TestCutOffTellsTheCauseAndTheLastError(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(io.ErrClosedPipe)
	err := lockerr.CutOff(ctx, context.Canceled)
	if want := "context canceled (io: read/write on closed pipe) (rlock: Redis is unavailable: no answer)"; err.Error() != want {
		t.Errorf("got %q, want %q", err, want)
	}
	if !errors.Is(err, context.Canceled) || !errors.Is(err, lockerr.ErrUnavailable) {
		t.Errorf("%v does not match the context's error and ErrUnavailable", err)
	}
	if err := lockerr.CutOff(ctx, io.EOF); !errors.Is(err, io.EOF) {
		t.Errorf("%v does not match the client's error", err)
	}
}

func TestLongNameIsCut(t *testing.T) {
	if got := lockerr.Quote(`a"b`); got != `"a\"b"` {
		t.Error(got)
	}
	got := lockerr.Quote(strings.Repeat("x", 1<<20))
	if len(got) > 200 || !strings.HasSuffix(got, "(1048576 bytes)") {
		t.Errorf("%d bytes, ending %q", len(got), got[len(got)-20:])
	}
}
