package pubsub_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"relock/internal/test/faulttest"
	"relock/internal/test/redistest"
	"relock/pubsub"
)

// A server that answers a round slowly, but goes on answering, keeps the connection: only one that
// says nothing for longer is given up.
func TestSlowConfirmationsAreWaitedFor(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		client, p := through(t, s)
		var lost atomic.Int32
		h := newHub(t, client, pubsub.Watch(func(e pubsub.Event) {
			if e.State == pubsub.Lost {
				lost.Add(1)
			}
		}))
		seen, release := p.HoldReply(faulttest.Is("SUBSCRIBE"))
		prefix := redistest.Name(t)
		const commands, channels = 3, 600 // 250 channels a command
		wait := 3 * time.Second           // 9 s for the round: rueidis gives up when its own PING waits for 10 s
		if !redistest.MadeUpClock() {
			wait = 10 * time.Millisecond // there a busy machine takes its time as well
		}
		for i := range commands {
			p.DelayReply(time.Duration(i+1)*wait, faulttest.Is("SUBSCRIBE"))
		}
		var wg sync.WaitGroup
		listen := func(i int) {
			if _, err := h.Listen(context.Background(), fmt.Sprintf("%s-%d", prefix, i)); err != nil {
				t.Error(err)
			}
		}
		wg.Go(func() { listen(0) })
		<-seen
		for i := range channels {
			wg.Go(func() { listen(1 + i) })
		}
		redistest.Eventually(t, patience, "the next round is complete", func() bool { return h.Channels() == 1+channels })
		release()
		wg.Wait()
		if n := lost.Load(); n != 0 {
			t.Errorf("%d connections were given up, want none", n)
		}
		if got := p.Count("SUBSCRIBE"); got != 1+commands {
			t.Errorf("%d SUBSCRIBE commands, want %d", got, 1+commands)
		}
	})
}

// A server that says nothing is given up, before rueidis does so.
func TestSilenceIsGivenUp(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		client, p := through(t, s)
		h := newHub(t, client)
		_, release := p.HoldReply(faulttest.Is("SUBSCRIBE"))
		defer release()
		began := time.Now()
		_, err := h.Listen(testContext(t), redistest.Name(t))
		if err == nil || !strings.Contains(err.Error(), "not confirmed in time") {
			t.Errorf("Listen: %v", err)
		}
		if took := time.Since(began); took > 5*time.Second+s.Slack() {
			t.Errorf("it took %v", took)
		}
	})
}
