package pubsub_test

import (
	"testing"
	"time"

	"relock/internal/test/redistest"
	"relock/pubsub"
)

// While a script keeps the server busy, UNSUBSCRIBE is refused, at which rueidis panics. So it is not sent:
// the connection ends instead, and what is still listened to is subscribed anew.
func TestNothingIsUnsubscribedWhileTheServerIsBusy(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		client, p := through(t, s)
		h := newHub(t, client, pubsub.Linger(0))
		channel := redistest.Name(t)
		l, keep := mustListen(t, h, channel), mustListen(t, h, channel+"-kept")
		const busy = "BUSY Redis is busy running a script."
		p.RefuseCommand("PING", busy)
		p.RefuseCommand("UNSUBSCRIBE", busy)
		l.Close()
		redistest.Eventually(t, patience, "the channel is given up", func() bool { return channelsOf(t, s, channel) == 1 })
		p.RefuseCommand("PING", "")
		p.RefuseCommand("UNSUBSCRIBE", "")
		receiveMissed(t, keep.C())
		// The proxy may have refused a PING of rueidis's own meanwhile, which ends the next connection too.
		redistest.Eventually(t, patience, "what is published is heard", func() bool {
			publish(t, s, channel+"-kept", "still there")
			select {
			case m := <-keep.C():
				return m.Payload == "still there"
			case <-time.After(100 * time.Millisecond):
				return false
			}
		})
	})
}
