package pubsub_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

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

// A server that is away is tried about once a second, and told of every 10 s; each new outage is told at once.
func TestOutageIsNotToldAgainAndAgain(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		var text bytes.Buffer // the handler serialises its writes, and Close waits for the last one
		client, p := through(t, s)
		h := newHub(t, client, pubsub.Logger(slog.New(slog.NewTextHandler(&text, nil))))
		l := record(t, h, redistest.Name(t), false)
		const outages = 2
		began := time.Now()
		for outage := range outages {
			p.Refuse(true)
			p.Cut()
			receiveMissed(t, l)
			redistest.Eventually(t, patience, "the hub has tried in vain", func() bool { return h.Failures() >= 5*(1+outage) })
			p.Refuse(false)
			receiveMissed(t, l)
		}
		most := outages + int(time.Since(began)/(10*time.Second))
		_ = h.Close()
		log := text.String()
		if n := strings.Count(log, "cannot connect"); n < outages || n > most {
			t.Errorf("told %d times that it cannot connect, want %d to %d:\n%s", n, outages, most, log)
		}
		if n := strings.Count(log, "connection lost") - strings.Count(log, "cannot connect"); n != outages {
			t.Errorf("told %d times that the connection was lost, want %d", n, outages)
		}
	})
}
