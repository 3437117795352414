package pubsub_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"relock/internal/test/redistest"
	"relock/pubsub"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// patience is how long tests wait for what is to happen; soon bounds what must not
// take long.
const (
	patience = 20 * time.Second
	soon     = 3 * time.Second
)

func testContext(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

func newHub(t *testing.T, client rueidis.Client, opts ...pubsub.Option) *pubsub.Hub {
	t.Helper()
	h := pubsub.NewHub(client, opts...)
	t.Cleanup(func() { _ = h.Close() })
	return h
}

func mustListen(t *testing.T, h *pubsub.Hub, channel string) *pubsub.Listener {
	t.Helper()
	l, err := h.Listen(testContext(t), channel)
	if err != nil {
		t.Fatalf("Listen: %v", err)
	}
	return l
}

// record listens with a ListenFunc and returns everything that arrives, uncoalesced.
func record(t *testing.T, h *pubsub.Hub, channel string, broadcast bool) <-chan pubsub.Message {
	t.Helper()
	c := make(chan pubsub.Message, 1000)
	_, err := h.ListenFunc(testContext(t), channel, broadcast, func(m pubsub.Message) { c <- m })
	if err != nil {
		t.Fatalf("ListenFunc: %v", err)
	}
	return c
}

// receive waits for the next message.
func receive(t *testing.T, c <-chan pubsub.Message) pubsub.Message {
	t.Helper()
	select {
	case m := <-c:
		return m
	case <-time.After(patience):
		t.Fatal("no message")
		return pubsub.Message{}
	}
}

// receivePayload waits for a message with that payload and skips Missed.
func receivePayload(t *testing.T, c <-chan pubsub.Message, payload string) {
	t.Helper()
	for {
		m := receive(t, c)
		if m.Missed {
			continue
		}
		if m.Payload != payload {
			t.Fatalf("received %q, want %q", m.Payload, payload)
		}
		return
	}
}

func receiveMissed(t *testing.T, c <-chan pubsub.Message) {
	t.Helper()
	if m := receive(t, c); !m.Missed {
		t.Fatalf("received %+v, want Missed", m)
	}
}

func publish(t *testing.T, s *redistest.Server, channel, payload string) {
	t.Helper()
	if err := s.Do(t, "PUBLISH", channel, payload).Error(); err != nil {
		t.Fatalf("PUBLISH: %v", err)
	}
}

// subscribers counts the connections that have subscribed to something. Real Redis only.
func subscribers(t *testing.T, s *redistest.Server) int {
	t.Helper()
	list, err := s.Do(t, "CLIENT", "LIST", "TYPE", "pubsub").ToString()
	if err != nil {
		t.Fatalf("CLIENT LIST: %v", err)
	}
	return strings.Count(list, "\n")
}

func channelsOf(t *testing.T, s *redistest.Server, prefix string) (n int) {
	for _, c := range s.Channels(t) {
		if strings.HasPrefix(c, prefix) {
			n++
		}
	}
	return n
}

func TestListenIsConfirmedBeforeItReturns(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		h := newHub(t, s.Client(t))
		for i := range 200 {
			channel := redistest.Name(t)
			l := mustListen(t, h, channel)
			publish(t, s, channel, fmt.Sprint(i))
			if m := receive(t, l.C()); m.Payload != fmt.Sprint(i) || m.Missed {
				t.Fatalf("received %+v, want %d", m, i)
			}
			l.Close()
		}
	})
}

func TestEachListenerOfAChannelGetsTheMessage(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		h := newHub(t, s.Client(t))
		channel := redistest.Name(t)
		a, b, c := mustListen(t, h, channel), mustListen(t, h, channel), mustListen(t, h, channel)
		a.Close()
		publish(t, s, channel, "x")
		receivePayload(t, b.C(), "x")
		receivePayload(t, c.C(), "x")
		select {
		case m := <-a.C():
			t.Fatalf("closed listener received %+v", m)
		default:
		}
	})
}

func TestUnreadMessagesCoalesce(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		h := newHub(t, s.Client(t))
		channel := redistest.Name(t)
		l := mustListen(t, h, channel)
		got := make(chan string, 3)
		all, err := h.ListenFunc(testContext(t), channel, false, func(m pubsub.Message) { got <- m.Payload })
		if err != nil {
			t.Fatal(err)
		}
		defer all.Close()
		if all.C() != nil {
			t.Error("C() of a ListenFunc is not nil")
		}
		// The second listener tells that the messages have arrived: it joined later, and
		// a message goes to the listeners in the order of joining.
		for i := range 3 {
			publish(t, s, channel, fmt.Sprint(i))
			if p := <-got; p != fmt.Sprint(i) {
				t.Fatalf("ListenFunc got %q, want %d", p, i)
			}
		}
		receivePayload(t, l.C(), "2")
		select {
		case m := <-l.C():
			t.Fatalf("a second message: %+v", m)
		default:
		}
	})
}

func TestListenFuncGetsEveryPayloadInOrder(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		client := s.Client(t)
		h := newHub(t, client)
		channel := redistest.Name(t)
		const n = 5000
		done := make(chan struct{})
		next := 0
		l, err := h.ListenFunc(testContext(t), channel, true, func(m pubsub.Message) {
			if m.Missed || m.Payload != fmt.Sprint(next) {
				t.Errorf("got %+v, want %d", m, next)
			}
			if next++; next == n {
				close(done)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		var cmds []rueidis.Completed
		for i := range n {
			cmds = append(cmds, client.B().Publish().Channel(channel).Message(fmt.Sprint(i)).Build())
		}
		for _, r := range client.DoMulti(testContext(t), cmds...) {
			if err := r.Error(); err != nil {
				t.Fatal(err)
			}
		}
		select {
		case <-done:
		case <-time.After(patience):
			t.Fatal("not all messages arrived")
		}
	})
}

func TestListenerMayBeClosedFromItsFunc(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		h := newHub(t, s.Client(t))
		channel := redistest.Name(t)
		calls := make(chan struct{}, 10)
		var l *pubsub.Listener
		var mu sync.Mutex
		mu.Lock()
		l, err := h.ListenFunc(testContext(t), channel, false, func(pubsub.Message) {
			mu.Lock()
			defer mu.Unlock()
			l.Close()
			calls <- struct{}{}
		})
		mu.Unlock()
		if err != nil {
			t.Fatal(err)
		}
		other := mustListen(t, h, channel)
		for i := range 3 {
			publish(t, s, channel, fmt.Sprint(i))
			receivePayload(t, other.C(), fmt.Sprint(i))
		}
		if len(calls) != 1 {
			t.Fatalf("%d calls, want 1", len(calls))
		}
	})
}
