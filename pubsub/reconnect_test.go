package pubsub_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"relock/internal/test/redistest"
	"relock/pubsub"
)

// Reconnect moves all subscriptions to a new connection: listeners hear that they may have missed
// something, and then whatever is published. Nothing of the old connection is left.
func TestReconnect(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		h := newHub(t, s.Client(t))
		h.Reconnect() // there is nothing yet
		channel := redistest.Name(t)
		l := record(t, h, channel, false)
		for range 3 {
			h.Reconnect()
			receiveMissed(t, l)
			receiveMissed(t, l)
			publish(t, s, channel, "x")
			receivePayload(t, l, "x")
		}
		if !s.IsMini() {
			redistest.Eventually(t, patience, "one connection is left", func() bool { return subscribers(t, s) == 1 })
		}
		_ = h.Close()
		h.Reconnect()
	})
}

// A connection that Reconnect ends is no loss to warn of: a session may leave a server many times.
func TestReconnectIsNoWarning(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		var text bytes.Buffer // the handler serialises its writes, and Close waits for the last one
		h := newHub(t, s.Client(t), pubsub.Logger(slog.New(slog.NewTextHandler(&text, &slog.HandlerOptions{Level: slog.LevelDebug}))))
		l := record(t, h, redistest.Name(t), false)
		h.Reconnect()
		receiveMissed(t, l)
		receiveMissed(t, l)
		_ = h.Close()
		if log := text.String(); strings.Contains(log, "WARN") || !strings.Contains(log, "connection left") {
			t.Errorf("logged %q", log)
		}
	})
}
