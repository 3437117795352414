package main

import (
	"strings"
	"testing"

	"github.com/redis/rueidis"

	"relock/internal/keyname"
)

// What stands in Redis may be anything: what is taken for an entry of a line or for a name is a part of it.
func FuzzNames(f *testing.F) {
	f.Add("g0001250000500000002S1:1", 1.7e15)
	f.Add("relock_line1:{x}", 0.0)
	f.Add("{a{b}c}:timeout", -1.0)
	f.Fuzz(func(t *testing.T, text string, score float64) {
		if session, life, ok := entryOf(rueidis.ZScore{Member: text, Score: score}); ok && (session == "" || life > 9999999 || !strings.Contains(text, session)) {
			t.Errorf("%q: session %q, %d ms", text, session, life)
		}
		if name := lineName(text); !strings.Contains(text, name) {
			t.Errorf("%q: the line of %q", text, name)
		}
		if name := semaphoreName(text); !strings.Contains(text, name) {
			t.Errorf("%q: permits of %q", text, name)
		}
		checkVersion(facts{"redis_version": text})
	})
}

// The line of {x} is another one than that of x.
func TestLineNameTellsBracesApart(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"x", "{x}", "{x}:", "{x}::", "{x}:y", "y{x}:"} {
		if got := lineName(keyname.Style{}.Prefix(keyname.Line, name)); got != name {
			t.Errorf("the line of %q is taken for that of %q", name, got)
		}
	}
}
