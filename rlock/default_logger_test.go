package rlock_test

import (
	"log/slog"
	"testing"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// A session without a Logger tells slog.Default of what is wrong, and of nothing else.
func TestWarningsGoToTheDefaultLogger(t *testing.T) {
	var log locktest.Journal
	former := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	defer slog.SetDefault(former)
	s := redistest.Mini(t)
	ses := locktest.DialOption(t, s.Option(), rlock.Config{})
	quiet := locktest.DialOption(t, s.Option(), rlock.Config{Logger: slog.New(slog.DiscardHandler)})
	for name, ses := range map[string]*rlock.Session{"loud": ses, "quiet": quiet} {
		ctx, _, err := rlock.New(ses, name).Lock(t.Context())
		must(t, err)
		if _, err := rlock.New(ses, name).ForceUnlock(t.Context()); err != nil {
			t.Fatal(err)
		}
		<-ctx.Done()
	}
	redistest.Eventually(t, locktest.Patience, "the warning", func() bool { return log.Count("lock lost") == 1 })
	must(t, ses.Close())
	must(t, quiet.Close())
	for _, level := range []string{"level=DEBUG", "level=INFO"} {
		if log.Count(level) > 0 {
			t.Errorf("it tells of what is no warning: %q", log.Lines)
		}
	}
	if log.Count("name=quiet") > 0 {
		t.Error("a Logger that discards is not heeded")
	}
}
