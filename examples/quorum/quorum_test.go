package main

import (
	"bytes"
	"strings"
	"testing"

	"relock/internal/test/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// The lock works with two Redises down, is lost with the third, and works again when one is back.
func TestRun(t *testing.T) {
	var text bytes.Buffer
	err := run(t.Context(), &text)
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
