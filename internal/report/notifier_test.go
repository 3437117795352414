package report_test

import (
	"bytes"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"relock/internal/report"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// What blocks costs notes that may be dropped, and no others; the order stays.
func TestBlockedNoteCostsOnlyWhatMayBeDropped(t *testing.T) {
	n := report.NewNotifier()
	entered, resume := make(chan struct{}), make(chan struct{})
	n.Add(func() { close(entered); <-resume })
	wait(t, entered)
	var got, want []int
	for i := range 2 * report.Most {
		n.Add(func() { got = append(got, i) })
		if i < report.Most {
			want = append(want, i)
		}
	}
	for i := range 10 {
		n.AddSurely(func() { got = append(got, -i) })
		want = append(want, -i)
	}
	told := n.Told()
	select {
	case <-told:
		t.Error("told while the first one blocks")
	default:
	}
	close(resume)
	wait(t, told)
	if !slices.Equal(got, want) {
		t.Errorf("%d ran, want %d, in order", len(got), len(want))
	}
	wait(t, n.Told()) // it begins anew when it had nothing to do
}

// A function that ends its goroutine costs no other: else nothing would be told any more, and all of it kept.
func TestNoteThatEndsItsGoroutine(t *testing.T) {
	n := report.NewNotifier()
	entered, resume := make(chan struct{}), make(chan struct{})
	n.Add(func() {
		close(entered)
		<-resume
		runtime.Goexit()
	})
	wait(t, entered)
	told := n.Told() // behind it
	close(resume)
	wait(t, told)
	n.Add(runtime.Goexit)
	wait(t, n.Told())
}

// The caller's handler decides what it takes, and knows nothing of the detour.
func TestHandlerHandsOn(t *testing.T) {
	n := report.NewNotifier()
	var out bytes.Buffer
	log := slog.New(n.Handler(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelInfo})))
	log.Debug("not wanted")
	log.With("a", 1).WithGroup("g").Info("wanted", "b", 2)
	wait(t, n.Told())
	if text := out.String(); strings.Contains(text, "not wanted") || !strings.Contains(text, "msg=wanted a=1 g.b=2") {
		t.Errorf("logged %q", text)
	}
}

func wait(t *testing.T, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Fatal("not told within 10 s")
	}
}
