package line_test

import (
	"context"
	"testing"
	"time"

	"relock/internal/test/redistest"
	"relock/internal/test/slownet"
	"relock/rlock"
)

// farDial makes a session to whose server a round trip takes that long, also on the made-up clock of a bubble.
func farDial(t *testing.T, s *redistest.Server, trip time.Duration, cfg rlock.Config) *rlock.Session {
	t.Helper()
	ses, err := rlock.Dial(context.Background(), slownet.Of(t, s.Option(), trip), cfg)
	must(t, err)
	t.Cleanup(func() { must(t, ses.Close()) })
	return ses
}
