package clienterr_test

import (
	"context"
	"errors"
	"io"
	"testing"

	"relock/internal/clienterr"
	"relock/internal/lockerr"
)

func TestErrorOfTheClientIsMarkedOnce(t *testing.T) {
	once := clienterr.Unavailable(io.EOF)
	if !errors.Is(once, lockerr.ErrUnavailable) || !errors.Is(once, io.EOF) {
		t.Errorf("%v does not match ErrUnavailable and what the client said", once)
	}
	if twice := clienterr.Unavailable(once); twice != once {
		t.Errorf("marked again: %v", twice)
	}
}

// The end of a context that has cut off an attempt says nothing of its own about Redis.
func TestCutOffTellsTheCauseAndTheLastError(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(io.ErrClosedPipe)
	err := clienterr.CutOff(ctx, context.Canceled)
	if want := "context canceled (io: read/write on closed pipe) (rlock: Redis is unavailable: no answer)"; err.Error() != want {
		t.Errorf("got %q, want %q", err, want)
	}
	if !errors.Is(err, context.Canceled) || !errors.Is(err, lockerr.ErrUnavailable) {
		t.Errorf("%v does not match the context's error and ErrUnavailable", err)
	}
	if err := clienterr.CutOff(ctx, io.EOF); !errors.Is(err, io.EOF) {
		t.Errorf("%v does not match the client's error", err)
	}
}
