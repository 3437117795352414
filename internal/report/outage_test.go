package report_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"relock/internal/report"
)

func TestOutageBeginsAndEndsOnce(t *testing.T) {
	var text bytes.Buffer
	now := time.Hour
	w := report.NewWatch(func() time.Duration { return now }, slog.New(slog.NewTextHandler(&text, nil)))
	// says asserts what the Logger has heard since, and whether there is an outage.
	says := func(when string, on bool, lines ...string) {
		t.Helper()
		got := strings.Split(strings.TrimSpace(text.String()), "\n")
		text.Reset()
		if got[0] == "" {
			got = nil
		}
		ok := len(got) == len(lines) && w.On.Load() == on
		for i := range lines {
			ok = ok && strings.Contains(got[i], lines[i])
		}
		if !ok {
			t.Errorf("%s: on %v, logged %q; want %v, %q", when, w.On.Load(), got, on, lines)
		}
	}

	var first, second bool
	noServer := errors.New("no server")
	w.Answered()
	says("an answer without an outage", false)
	w.Enter(&first, "first", noServer)
	says("the first", true, `level=WARN msg="relock: Redis cannot serve; locks wait for it" name=first error="no server"`)
	w.Enter(&second, "second", noServer)
	w.Enter(&second, "second", noServer) // it counts once
	says("the second", true)
	now += time.Minute
	w.Leave(&first)
	w.Leave(&first)
	w.Answered()
	says("an answer to one of two", true)
	w.Leave(&second)
	says("the last gives up", true)
	w.Enter(&first, "third", noServer)
	says("another before an answer", true)
	w.Leave(&first)
	w.Answered()
	says("an answer to all", false, `level=INFO msg="relock: Redis serves again" after=1m0s`)
	w.Answered()
	says("a second answer", false)
	now += time.Hour
	w.Enter(&first, "fourth", noServer)
	w.Leave(&first)
	now += time.Second
	w.Answered()
	says("the next outage", false, "name=fourth", "after=1s")
}

// Locks that Redis refuses do not wait: that is no outage. It is told once in a while, with how many.
func TestDenialsAreNoOutage(t *testing.T) {
	var text bytes.Buffer
	now := time.Hour
	w := report.NewWatch(func() time.Duration { return now }, slog.New(slog.NewTextHandler(&text, nil)))
	denied := func(when string, lines ...string) {
		t.Helper()
		w.Denied("job", errors.New("NOPERM"))
		w.Answered() // another lock is allowed
		got := heard(&text)
		ok := len(got) == len(lines) && !w.On.Load()
		for i := range lines {
			ok = ok && strings.HasSuffix(got[i], lines[i])
		}
		if !ok {
			t.Errorf("%s: on %v, logged %q; want %q", when, w.On.Load(), got, lines)
		}
	}
	const message = `level=WARN msg="relock: Redis refuses this user; Lock returns at once" name=job `
	denied("the first", message+`refused=1 error=NOPERM`)
	denied("the second")
	now += report.OutagePause - 1
	denied("the third")
	now++
	denied("after the pause", message+`refused=3 error=NOPERM`)
	now += report.OutagePause
	denied("later", message+`refused=1 error=NOPERM`)
}
