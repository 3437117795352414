package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"relock/examples/internal/demo"
	"relock/internal/test/redistest"
)

func TestMain(m *testing.M) {
	if name := os.Getenv(candidateEnv); name != "" { // this is one of the processes
		if err := candidate(name); err != nil {
			fmt.Fprintln(os.Stderr, name+":", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	redistest.Main(m)
}

// The three leaders follow each other, one of them killed, and nothing is left behind.
func TestRun(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		var text bytes.Buffer
		redis := &demo.Redis{Option: s.Option(), Text: "test", Prefix: "relock-election:test:", Close: func() {}}
		lease := s.Slowed(time.Second)
		if testing.Short() { // not for a busy machine
			lease = time.Second
		}
		err := run(t.Context(), redis, s.Addr, lease, &text)
		t.Log("\n" + text.String())
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(text.String()) {
			if line = strings.TrimSuffix(line, "\n"); len(line) > 79 || line != strings.TrimRight(line, " ") {
				t.Errorf("%d columns or spaces at the end: %q", len(line), line)
			}
		}
		for _, want := range []string{"term 1 is led by ada, working", "term 2 is led by grace, working", "term 3 is led by barbara, working"} {
			if !strings.Contains(text.String(), want) {
				t.Errorf("it does not say %q", want)
			}
		}
		if keys := s.Keys(t); len(keys) > 0 {
			t.Errorf("keys left behind: %q", keys)
		}
	})
}

func TestViolationsAreErrors(t *testing.T) {
	const lease = time.Second
	for name, err := range map[string]error{
		"two lead at once":         check(lease, lease/10, 0),
		"the crash was long":       check(lease, 4*lease, 0),
		"the resignation was long": check(lease, lease, lease),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if err := check(lease, lease, lease/100); err != nil {
		t.Error(err)
	}
}
