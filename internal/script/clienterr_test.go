package script_test

import (
	"context"
	"errors"
	"io"
	"testing"

	"relock/internal/api"
	"relock/internal/script"
)

func TestErrorOfTheClientIsMarkedOnce(t *testing.T) {
	once := script.AsUnavailable(io.EOF)
	if !errors.Is(once, api.ErrUnavailable) || !errors.Is(once, io.EOF) {
		t.Errorf("%v does not match ErrUnavailable and what the client said", once)
	}
	if twice := script.AsUnavailable(once); twice != once {
		t.Errorf("marked again: %v", twice)
	}
}

// The end of a context that has cut off an attempt says nothing of its own about Redis.
func TestCutOffTellsTheCauseAndTheLastError(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(io.ErrClosedPipe)
	err := script.CutOff(ctx, context.Canceled)
	if want := "context canceled (io: read/write on closed pipe) (rlock: Redis is unavailable: no answer)"; err.Error() != want {
		t.Errorf("got %q, want %q", err, want)
	}
	if !errors.Is(err, context.Canceled) || !errors.Is(err, api.ErrUnavailable) {
		t.Errorf("%v does not match the context's error and ErrUnavailable", err)
	}
	if err := script.CutOff(ctx, io.EOF); !errors.Is(err, io.EOF) {
		t.Errorf("%v does not match the client's error", err)
	}
}
