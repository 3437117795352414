package claim_test

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// A warnings is a slog.Handler that keeps what it is told.
type warnings struct {
	mu    sync.Mutex
	lines []string
}

func (w *warnings) Enabled(context.Context, slog.Level) bool { return true }
func (w *warnings) WithAttrs([]slog.Attr) slog.Handler       { return w }
func (w *warnings) WithGroup(string) slog.Handler            { return w }
func (w *warnings) Handle(_ context.Context, r slog.Record) error {
	if r.Level < slog.LevelWarn {
		return nil
	}
	line := r.Message
	r.Attrs(func(a slog.Attr) bool { line += " " + a.String(); return true })
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lines = append(w.lines, line)
	return nil
}

func (w *warnings) all() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Join(w.lines, "\n")
}

// What Unlock would return goes to the Logger and the hooks.
func TestUnlockAsyncTellsOfALoss(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		var logged warnings
		tr := locktest.NewTracing(t, s, rlock.Config{Logger: slog.New(&logged)})
		m := rlock.New(tr.Session, "x")
		_, h, err := m.Lock(tr.Ctx)
		must(t, err)
		s.Do(t, "DEL", "x")
		h.UnlockAsync()
		tr.Told("acquire mutex x try false", "acquired mutex redis nested false", "hold mutex x",
			"release mutex", "released "+rlock.ErrLost.Error(), "lost mutex")
		if n := tr.Ledger.Count("lost"); n != 1 {
			t.Errorf("%d losses were told", n)
		}
		redistest.Eventually(t, 5*time.Second, "the Logger to hear of the loss", func() bool { return logged.all() != "" })
		if got := logged.all(); !strings.Contains(got, "lock lost") || strings.Count(got, "\n") != 0 {
			t.Errorf("the Logger heard %q", got)
		}
		h.UnlockAsync()
		redistest.Eventually(t, 5*time.Second, "the Logger to hear of the second call", func() bool {
			return strings.Contains(logged.all(), rlock.ErrNotHeld.Error())
		})
		tr.Closed()
	})
}

func TestUnlockAsyncTraced(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		tr := locktest.NewTracing(t, s, rlock.Config{})
		m := rlock.New(tr.Session, "x")
		section, h, err := m.Lock(tr.Ctx)
		must(t, err)
		_, in, err := m.TryLock(section)
		must(t, err)
		in.UnlockAsync()
		tr.Told("acquire mutex x try false", "acquired mutex redis nested false", "hold mutex x",
			"acquire mutex x try true", "acquired mutex redis nested true", "hold mutex x",
			"release mutex", "released <nil>", "released mutex")
		h.UnlockAsync()
		tr.Told("release mutex", "released <nil>", "released mutex")
		tr.Closed()
	})
}
