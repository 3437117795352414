package pubsub_test

import (
	"testing"

	"relock/internal/test/redistest"
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
