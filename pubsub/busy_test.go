package pubsub_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"relock/internal/test/redistest"
	"relock/pubsub"
)

// Where a PING is answered by an error, as while a script keeps the server busy, rueidis panics behind UNSUBSCRIBE.
// So that is not sent: the connection ends instead, and what is still listened to is subscribed anew.
func TestNothingIsUnsubscribedWhileTheServerCannotServe(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		client, p := through(t, s)
		h := newHub(t, client, pubsub.Linger(0))
		channel := redistest.Name(t)
		keep := mustListen(t, h, channel+"-kept")
		for _, answer := range []string{
			"BUSY Redis is busy running a script.", "MISCONF Redis is configured to save RDB snapshots",
			"MASTERDOWN Link with MASTER is down",
		} {
			l := mustListen(t, h, channel)
			p.RefuseCommand("PING", answer)
			if strings.HasPrefix(answer, "BUSY") {
				p.RefuseCommand("UNSUBSCRIBE", answer)
			}
			l.Close()
			redistest.Eventually(t, patience, "the channel is given up", func() bool { return channelsOf(t, s, channel) == 1 })
			receiveMissed(t, keep.C())
			p.RefuseCommand("PING", "")
			p.RefuseCommand("UNSUBSCRIBE", "")
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
		}
	})
}

// A server that could not save its data answers MISCONF to PING, and unsubscribes all the same.
func TestUnsubscribeWhileTheServerCannotSave(t *testing.T) {
	t.Parallel()
	s := redistest.Real(t, "--rdbcompression", "no")                           // one of its own
	if err := s.Do(t, "CONFIG", "SET", "save", "3600 1").Error(); err != nil { // on its command line 6.2 reads that as none
		t.Fatal(err)
	}
	dir, err := s.Do(t, "CONFIG", "GET", "dir").AsStrMap()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(dir["dir"]); err != nil {
		t.Fatal(err)
	}
	for name, resp2 := range map[string]bool{"RESP2": true, "RESP3": false} {
		client := s.Client(t, func(o *rueidis.ClientOption) {
			o.AlwaysRESP2, o.Dialer.KeepAlive = resp2, 10*time.Millisecond // a second PING panics where the first one does not
		})
		h := newHub(t, client, pubsub.Linger(0))
		l, keep := mustListen(t, h, name), record(t, h, name+"-kept", false)
		s.Do(t, "BGSAVE")
		redistest.Eventually(t, patience, "the server not to serve", func() bool {
			err := s.Do(t, "PING").Error()
			return err != nil && strings.HasPrefix(err.Error(), "MISCONF")
		})
		l.Close()
		receiveMissed(t, keep) // once when the connection ends, and once when another one is there
		receiveMissed(t, keep)
		publish(t, s, name+"-kept", "still there")
		receivePayload(t, keep, "still there")
	}
}
