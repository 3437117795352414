package main

import (
	"bytes"
	"strings"
	"testing"

	"relock/examples/internal/demo"
	"relock/internal/test/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// No money is lost, no clerk waits for ever, and no key is left but requests that expire.
func TestRun(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		var text bytes.Buffer
		redis := &demo.Redis{Option: s.Option(), Text: "test", Prefix: "relock-together:test:", Close: func() {}}
		err := run(t.Context(), redis, &text)
		t.Log("\n" + text.String())
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(text.String(), "sum         4000 after 300 transfers") {
			t.Error("it does not tell the sum")
		}
		for _, key := range s.Keys(t) {
			if !strings.HasPrefix(key, "relock_request:") {
				t.Errorf("%s is left behind", key)
			}
		}
	})
}

func TestLostMoneyIsAnError(t *testing.T) {
	if check(opening*len(names)) != nil || check(opening*len(names)-1) == nil {
		t.Error("the sum is not checked")
	}
}
