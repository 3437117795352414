package pubsub_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"relock/internal/test/faulttest"
	"relock/internal/test/redistest"
	"relock/pubsub"
)

// through returns a client whose connections go through a proxy.
func through(t *testing.T, s *redistest.Server, mods ...func(*rueidis.ClientOption)) (rueidis.Client, *faulttest.Proxy) {
	t.Helper()
	p, _ := faulttest.Of(t, s.Option())
	mods = append(mods, func(o *rueidis.ClientOption) { *o = p.Option(*o) })
	return s.Client(t, mods...), p
}

func TestLostConnectionWakesEverybodyTwice(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		client, p := through(t, s)
		h := newHub(t, client)
		prefix := redistest.Name(t)
		const n = 600 // more than fit into one SUBSCRIBE
		var mu sync.Mutex
		missed := make([]int, n)
		for i := range n {
			_, err := h.ListenFunc(testContext(t), fmt.Sprint(prefix, "-", i), false, func(m pubsub.Message) {
				if m.Missed {
					mu.Lock()
					missed[i]++
					mu.Unlock()
				}
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		for round := 1; round <= 3; round++ {
			p.Cut()
			redistest.Eventually(t, patience, "each listener is woken at the loss and at the return", func() bool {
				mu.Lock()
				defer mu.Unlock()
				for _, got := range missed {
					if got > 2*round {
						t.Fatalf("%d wake-ups after %d cuts", got, round)
					}
					if got < 2*round {
						return false
					}
				}
				return true
			})
			if got := channelsOf(t, s, prefix); got != n {
				t.Fatalf("%d channels after the reconnect, want %d", got, n)
			}
		}
	})
}

// The wake-up at the return must come after the subscription is back: a publish that
// comes before it may be lost, one that comes after it is received.
func TestMessageAfterReconnectArrives(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		client, p := through(t, s)
		h := newHub(t, client)
		for i := range 5 {
			channel := redistest.Name(t)
			got := make(chan pubsub.Message, 100)
			l, err := h.ListenFunc(testContext(t), channel, false, func(m pubsub.Message) { got <- m })
			if err != nil {
				t.Fatal(err)
			}
			p.Cut()
			for range 2 {
				if m := <-got; !m.Missed {
					t.Fatalf("got %+v, want Missed", m)
				}
			}
			publish(t, s, channel, fmt.Sprint(i))
			if m := <-got; m.Payload != fmt.Sprint(i) {
				t.Fatalf("got %+v, want %d", m, i)
			}
			l.Close()
		}
	})
}

func TestServerRestart(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		h := newHub(t, s.Client(t))
		channel := redistest.Name(t)
		l := record(t, h, channel, false)
		s.Kill()
		receiveMissed(t, l)
		redistest.Eventually(t, patience, "the hub has tried in vain", func() bool { return h.Failures() >= 4 })
		// A new Listen learns that the server is away; the old one stays.
		if _, err := h.Listen(testContext(t), redistest.Name(t)); err == nil || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Listen on a dead server: %v", err)
		}
		s.Restart(t)
		receiveMissed(t, l)
		publish(t, s, channel, "back")
		receivePayload(t, l, "back")
	})
}

func TestListenTellsThatTheServerIsAway(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		client, p := through(t, s)
		h := newHub(t, client)
		p.Refuse(true)
		channel := redistest.Name(t)
		_, err := h.Listen(testContext(t), channel)
		if err == nil || errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), channel) {
			t.Fatalf("Listen: %v", err)
		}
		p.Refuse(false)
		redistest.Eventually(t, patience, "Listen works again", func() bool {
			l, err := h.Listen(testContext(t), channel)
			if err == nil {
				l.Close()
			}
			return err == nil
		})
	})
}

func TestBlackHoleIsNoticed(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		client, p := through(t, s, func(o *rueidis.ClientOption) {
			o.Dialer.KeepAlive = 50 * time.Millisecond
			// Long enough for a busy machine to connect in, and far less than patience.
			o.ConnWriteTimeout = time.Second
			o.Dialer.Timeout = 3 * time.Second
		})
		h := newHub(t, client)
		channel := redistest.Name(t)
		l := record(t, h, channel, false)
		p.BlackHole(true)
		begin := time.Now()
		receiveMissed(t, l)
		t.Logf("noticed after %v", time.Since(begin))
		p.BlackHole(false)
		receiveMissed(t, l)
		publish(t, s, channel, "back")
		receivePayload(t, l, "back")
	})
}

func TestHubClosesInSilence(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		client, p := through(t, s)
		h := newHub(t, client)
		mustListen(t, h, redistest.Name(t))
		p.BlackHole(true)
		defer p.BlackHole(false)
		begin := time.Now()
		if err := h.Close(); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begin); took > soon {
			t.Errorf("Close took %v", took)
		}
	})
}

// A server that is up but not ready says so; the hub asks again.
func TestServerThatIsNotReadyIsAskedAgain(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		client, p := through(t, s)
		h := newHub(t, client)
		p.RefuseCommand("SUBSCRIBE", "MASTERDOWN not now")
		_, err := h.Listen(testContext(t), redistest.Name(t))
		if err == nil || errors.Is(err, pubsub.ErrRefused) || errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("Listen: %v", err)
		}
		done := make(chan error, 1)
		go func() {
			_, err := h.Listen(context.Background(), redistest.Name(t))
			done <- err
		}()
		redistest.Eventually(t, soon, "the Listen is under way", func() bool { return h.Channels() > 0 })
		p.RefuseCommand("SUBSCRIBE", "")
		if err := <-done; err != nil {
			t.Errorf("Listen: %v", err)
		}
	})
}

func TestWorksOverRESP2(t *testing.T) {
	s := redistest.Real(t)
	client, p := through(t, s, func(o *rueidis.ClientOption) { o.AlwaysRESP2 = true })
	h := newHub(t, client, pubsub.Linger(time.Millisecond))
	channel := redistest.Name(t)
	closer := mustListen(t, h, channel)
	l := record(t, h, channel, false)
	publish(t, s, channel, "x")
	receivePayload(t, l, "x")
	p.Cut()
	receiveMissed(t, l)
	receiveMissed(t, l)
	publish(t, s, channel, "y")
	receivePayload(t, l, "y")
	closer.Close()
	other := mustListen(t, h, channel+"-other")
	redistest.Eventually(t, soon, "both are subscribed", func() bool { return channelsOf(t, s, channel) == 2 })
	other.Close()
	redistest.Eventually(t, soon, "one is unsubscribed", func() bool { return channelsOf(t, s, channel) == 1 })
}

// Over RESP2 messages have a connection of their own. When that is lost with a SUBSCRIBE under way, while the other
// stands, the hub connects anew at once; it was deaf for 5 s.
func TestLostWhileSubscribingOverRESP2(t *testing.T) {
	t.Parallel()
	s := redistest.Real(t)
	client, p := through(t, s, func(o *rueidis.ClientOption) { o.AlwaysRESP2 = true })
	h := newHub(t, client, pubsub.Silence(time.Hour))
	channel := redistest.Name(t)
	l := record(t, h, channel, false)
	seen, release := p.HoldRequest(faulttest.Is("SUBSCRIBE"))
	defer release()
	ctx, listened := testContext(t), make(chan error, 1)
	go func() {
		_, err := h.Listen(ctx, channel+"-other")
		listened <- err
	}()
	<-seen
	if err := s.Do(t, "CLIENT", "KILL", "TYPE", "pubsub").Error(); err != nil {
		t.Fatal(err)
	}
	receiveMissed(t, l)
	receiveMissed(t, l)
	if err := <-listened; err != nil {
		t.Errorf("Listen: %v", err)
	}
}
