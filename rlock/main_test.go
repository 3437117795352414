package rlock_test

import (
	"context"
	"testing"
	"time"

	"relock/internal/redistest"
	"relock/rlock"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// dial makes a session of its own for a test, closed at its end.
func dial(t testing.TB, s *redistest.Server, cfg rlock.Config) *rlock.Session {
	t.Helper()
	ses, err := rlock.Dial(context.Background(), s.Option(), cfg)
	if err != nil {
		t.Fatalf("Dial: %v", err)
	}
	t.Cleanup(func() {
		if err := ses.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return ses
}

// within returns a context that ends a test which would hang.
func within(t testing.TB, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

// must fails the test on an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
