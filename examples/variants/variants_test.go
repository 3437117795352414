package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"relock/examples/internal/demo"
	"relock/internal/test/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

func TestRun(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		var text bytes.Buffer
		redis := &demo.Redis{Option: s.Option(), Text: "test", Prefix: "relock-variants:test:", Close: func() {}}
		err := run(t.Context(), redis, s.Slowed(time.Second), &screen{w: &text})
		t.Log("\n" + text.String())
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(text.String()) {
			if line = strings.TrimSuffix(line, "\n"); len(line) > 79 || line != strings.TrimRight(line, " ") {
				t.Errorf("%d columns or spaces at the end: %q", len(line), line)
			}
		}
		if keys := s.Keys(t); len(keys) > 0 {
			t.Errorf("keys left behind: %q", keys)
		}
	})
}

func TestViolationsAreErrors(t *testing.T) {
	inOrder := []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}
	swapped := []int{1, 3, 2, 4, 5, 6, 7, 8, 9, 10, 11, 12}
	const lease = time.Second
	good := reading{together: 2, reads: 1, entered: time.Millisecond}
	for name, err := range map[string]error{
		"overtaken":            serviceOrder{fair: swapped}.check(),
		"somebody not served":  serviceOrder{fair: inOrder[:11]}.check(),
		"writer not alone":     reading{together: 2, reads: 1, mixed: true}.check(),
		"readers one by one":   reading{together: 1, reads: 1}.check(),
		"writer starved":       reading{together: 2, entered: readUntil}.check(),
		"writer in by chance":  reading{together: 2, reads: 1, entered: 2 * inTurn}.check(),
		"too many":             limited{together: permits + 1}.check(),
		"too few":              limited{together: permits - 1}.check(),
		"permits did not come": crashed{lease: lease, free: 1, died: 1, entered: 10 * lease}.check(),
		"permits came at once": crashed{lease: lease, free: 1, died: 1, entered: 2}.check(),
		"permits came back":    crashed{lease: lease, free: 3, died: 1, entered: lease}.check(),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	for _, err := range []error{
		serviceOrder{fair: inOrder, plain: swapped}.check(), good.check(), limited{together: permits}.check(),
		crashed{lease: lease, free: 1, died: lease / 4, entered: lease + lease/4}.check(),
	} {
		if err != nil {
			t.Error(err)
		}
	}
	if n := overtaken(swapped); n != 1 {
		t.Errorf("%d overtaken", n)
	}
}
