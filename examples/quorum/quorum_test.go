package main

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"

	"relock/internal/test/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// The lock works with two Redises down, is lost with the third, and works again when one is back. In a
// bubble the leases pass in no time.
func TestRun(t *testing.T) {
	t.Run("bubble", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			play(t, func() (server, error) { return inBubble{redistest.BubbleMini(t), t}, nil })
		})
	})
	t.Run("embedded", func(t *testing.T) {
		redistest.SkipShort(t)
		play(t, embedded)
	})
}

// inBubble is a Redis in the bubble of a test.
type inBubble struct {
	*redistest.Server
	t *testing.T
}

func (s inBubble) Close() { s.Kill() }

func (s inBubble) Restart() error {
	s.Server.Restart(s.t)
	return nil
}

func play(t *testing.T, start func() (server, error)) {
	t.Helper()
	var text bytes.Buffer
	err := run(t.Context(), &text, start)
	t.Log("\n" + text.String())
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"five of five Redises:", "counted to 60", "rlock: lock lost", "ErrUnavailable: true"} {
		if !strings.Contains(text.String(), part) {
			t.Errorf("it does not tell %q", part)
		}
	}
}

func TestTwoInsideIsAnError(t *testing.T) {
	if check(20, 20) != nil || check(19, 20) == nil {
		t.Error("the count is not checked")
	}
}
