package redistest

import (
	"crypto/rand"
	"strings"
	"testing"
	"time"
)

// pollEvery is how often conditions are looked at: short against everything
// that is waited for, and long enough not to starve the servers on small
// machines.
const pollEvery = 2 * time.Millisecond

// Eventually polls cond every few milliseconds until it is true, and ends the
// test with what was waited for when that has not happened within the given
// time. cond is called at least once, by the calling goroutine, which must be
// the test's own.
func Eventually(tb testing.TB, within time.Duration, what string, cond func() bool) {
	tb.Helper()
	if !poll(within, cond) {
		tb.Fatalf("not within %v: %s", within, what)
	}
}

// poll reports whether cond became true in time.
func poll(within time.Duration, cond func() bool) bool {
	deadline := time.Now().Add(within)
	for !cond() {
		if time.Now().After(deadline) {
			return false
		}
		time.Sleep(pollEvery)
	}
	return true
}

// Name returns a fresh unique name for a lock or a key, which tells the test
// it belongs to. It holds letters, digits, "_", "-" and "." only: no braces,
// so it is never taken for a hash tag, and no glob characters.
func Name(tb testing.TB) string {
	clean := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '.':
			return r
		}
		return '-'
	}, tb.Name())
	return clean + "-" + strings.ToLower(rand.Text()[:10])
}
