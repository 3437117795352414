package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"relock/examples/internal/demo"
	"relock/internal/test/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// No money is lost, no key is left, and a request costs two commands without Keep and next to none with it.
func TestRun(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		var text bytes.Buffer
		redis := &demo.Redis{Option: s.Option(), Text: "test", Prefix: "relock-keep:test:", Close: func() {}}
		err := run(t.Context(), redis, &text)
		t.Log("\n" + text.String())
		if err != nil {
			t.Fatal(err)
		}
		for name, most := range map[string]float64{"without Keep": 3, "with Keep": 0.5} {
			_, row, _ := strings.Cut(text.String(), "  "+name)
			var before, after float64
			if _, err := fmt.Sscan(row, &before, &after); err != nil {
				t.Fatalf("no figures of %s: %v", name, err)
			}
			if before > most || after > most || name == "without Keep" && before < 1 {
				t.Errorf("%s: %v and %v commands a request, want at most %v", name, before, after, most)
			}
		}
		for _, key := range s.Keys(t) {
			t.Errorf("%s is left behind", key)
		}
	})
}

func TestLostMoneyIsAnError(t *testing.T) {
	if check(0) != nil || check(1) == nil {
		t.Error("the sum is not checked")
	}
}

// An account moves to the new instance or stays where it is.
func TestInstanceOf(t *testing.T) {
	moved := 0
	for a := range 1000 {
		before, after := instanceOf(a, few), instanceOf(a, many)
		if before != after {
			moved++
			if after != many-1 {
				t.Errorf("account %d moves from %d to %d", a, before, after)
			}
		}
	}
	if moved < 200 || moved > 300 {
		t.Errorf("%d of 1000 accounts move, want about a quarter", moved)
	}
}
