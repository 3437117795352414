package pubsub_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
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

func TestChannelLingersAndIsRevivedWithoutTraffic(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		h := newHub(t, s.Client(t), pubsub.Linger(patience))
		channel := redistest.Name(t)
		l := mustListen(t, h, channel)
		if !s.IsMini() {
			s.ResetStats(t)
		}
		for range 50 {
			l.Close()
			l.Close() // idempotent
			if channelsOf(t, s, channel) != 1 {
				t.Fatal("unsubscribed before the linger was over")
			}
			l = mustListen(t, h, channel)
		}
		if !s.IsMini() {
			c := s.Commands(t)
			if n := c["subscribe"] + c["unsubscribe"]; n != 0 {
				t.Errorf("%d commands for reviving a channel", n)
			}
		}
		publish(t, s, channel, "still there")
		receivePayload(t, l.C(), "still there")
	})
}

func TestUnsubscribesOnlyAfterTheLastListener(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		h := newHub(t, s.Client(t), pubsub.Linger(0))
		channel := redistest.Name(t)
		a, b := mustListen(t, h, channel), mustListen(t, h, channel)
		keep := mustListen(t, h, channel+"-other")
		a.Close()
		publish(t, s, channel, "x")
		receivePayload(t, b.C(), "x")
		b.Close()
		redistest.Eventually(t, soon, "the channel is unsubscribed", func() bool {
			return channelsOf(t, s, channel) == 1
		})
		publish(t, s, channel+"-other", "y")
		receivePayload(t, keep.C(), "y")
	})
}

// Without linger each round unsubscribes and subscribes anew: the confirmation that
// Listen waits for must be that of its own SUBSCRIBE.
func TestResubscribingInQuickSuccessionLosesNothing(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		h := newHub(t, s.Client(t), pubsub.Linger(0))
		prefix := redistest.Name(t)
		var wg sync.WaitGroup
		for w := range 8 {
			wg.Go(func() {
				channel := fmt.Sprintf("%s-%d", prefix, w%4)
				for i := range 100 {
					l, err := h.Listen(context.Background(), channel)
					if err != nil {
						t.Errorf("Listen: %v", err)
						return
					}
					if err := s.Do(t, "PUBLISH", channel, fmt.Sprint(i)).Error(); err != nil {
						t.Errorf("PUBLISH: %v", err)
					}
					select {
					case <-l.C():
					case <-time.After(soon):
						t.Errorf("worker %d: message %d lost", w, i)
					}
					l.Close()
				}
			})
		}
		wg.Wait()
	})
}

func TestManyChannelsShareOneConnection(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		const n = 10_000
		h := newHub(t, s.Client(t))
		prefix := redistest.Name(t)
		ls := make([]*pubsub.Listener, n)
		if !s.IsMini() {
			s.ResetStats(t)
		}
		begin := time.Now()
		var wg sync.WaitGroup
		for i := range n {
			wg.Go(func() {
				var err error
				if ls[i], err = h.Listen(context.Background(), fmt.Sprintf("%s-%d", prefix, i)); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		took := time.Since(begin)
		if t.Failed() {
			return
		}
		t.Logf("%d channels in %v", n, took)
		if took > 2*soon {
			t.Errorf("subscribing took %v", took)
		}
		if got := channelsOf(t, s, prefix); got != n {
			t.Errorf("%d channels subscribed, want %d", got, n)
		}
		if !s.IsMini() {
			if got := subscribers(t, s); got != 1 {
				t.Errorf("%d subscriber connections, want 1", got)
			}
			if got := s.Commands(t)["subscribe"]; got > n/10 {
				t.Errorf("%d SUBSCRIBE commands for %d channels", got, n)
			}
		}
		for _, i := range []int{0, n / 2, n - 1} {
			publish(t, s, fmt.Sprintf("%s-%d", prefix, i), "x")
			receivePayload(t, ls[i].C(), "x")
		}
		for _, l := range ls {
			l.Close()
		}
		redistest.Eventually(t, patience, "all is unsubscribed", func() bool {
			return channelsOf(t, s, prefix) == 0
		})
		if !s.IsMini() {
			redistest.Eventually(t, soon, "the connection is closed", func() bool { return subscribers(t, s) == 0 })
		}
	})
}

func TestIdleHubKeepsNoConnection(t *testing.T) {
	s := redistest.Real(t)
	client := s.Client(t)
	conns := func() int {
		list, _ := s.Do(t, "CLIENT", "LIST").ToString()
		return strings.Count(list, "\n")
	}
	before := conns()
	h := newHub(t, client, pubsub.Linger(time.Millisecond))
	if conns() != before {
		t.Error("NewHub opened a connection")
	}
	for range 3 { // it comes back to life, too
		l := mustListen(t, h, redistest.Name(t))
		if got := conns(); got != before+1 {
			t.Errorf("%d connections more, want 1", got-before)
		}
		l.Close()
		redistest.Eventually(t, soon, "the connection is closed", func() bool { return conns() == before })
	}
}

func TestListenGivesUpWithItsContext(t *testing.T) {
	t.Parallel()
	s := redistest.Real(t)
	h := newHub(t, s.Client(t))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := h.Listen(ctx, redistest.Name(t)); !errors.Is(err, context.Canceled) {
		t.Errorf("with a ctx that is done: %v", err)
	}
	keep := mustListen(t, h, redistest.Name(t))
	s.Pause()
	defer s.Resume()
	ctx, cancel = context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	channel := redistest.Name(t)
	if _, err := h.Listen(ctx, channel); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("with a ctx that ends: %v", err)
	}
	s.Resume()
	redistest.Eventually(t, patience, "the reference is dropped", func() bool { return channelsOf(t, s, channel) == 0 })
	keep.Close()
}

func TestUnusableHubSaysSo(t *testing.T) {
	client := redistest.Mini(t).Client(t)
	for name, h := range map[string]*pubsub.Hub{
		"nil client":   pubsub.NewHub(nil),
		"bad linger":   pubsub.NewHub(client, pubsub.Linger(-1)),
		"bad refusal":  pubsub.NewHub(client, pubsub.RefusalRetry(0)),
		"closed later": func() *pubsub.Hub { h := pubsub.NewHub(client); _ = h.Close(); return h }(),
	} {
		if _, err := h.Listen(context.Background(), "x"); err == nil {
			t.Errorf("%s: no error", name)
		}
		if name == "closed later" {
			if _, err := h.Listen(context.Background(), "x"); !errors.Is(err, pubsub.ErrClosed) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if err := h.Close(); err != nil {
			t.Errorf("%s: Close: %v", name, err)
		}
	}
}

func TestCloseFailsBlockedListens(t *testing.T) {
	t.Parallel()
	s := redistest.Real(t)
	h := newHub(t, s.Client(t))
	l := mustListen(t, h, redistest.Name(t))
	s.Pause()
	defer s.Resume()
	failed := make(chan error, 1)
	go func() {
		_, err := h.Listen(context.Background(), redistest.Name(t))
		failed <- err
	}()
	redistest.Eventually(t, soon, "the Listen is under way", func() bool { return h.Channels() == 2 })
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-failed; !errors.Is(err, pubsub.ErrClosed) {
		t.Errorf("blocked Listen: %v", err)
	}
	receiveMissed(t, l.C())
	l.Close()
}

func TestClientMayBeClosedFirst(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		client := s.Client(t)
		h := newHub(t, client)
		l := mustListen(t, h, redistest.Name(t))
		client.Close()
		if _, err := newHub(t, client).Listen(testContext(t), "x"); err == nil {
			t.Error("Listen through a closed client succeeded")
		}
		if err := h.Close(); err != nil {
			t.Error(err)
		}
		l.Close()
	})
}

// Everything at once, under the race detector: no deadlock, no leak (TestMain), and no
// error but ErrClosed.
func TestCloseRacesWithEverything(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		client := s.Client(t)
		for range 10 {
			h := newHub(t, client, pubsub.Linger(time.Duration(rand.IntN(3))*time.Millisecond))
			prefix := redistest.Name(t)
			var wg sync.WaitGroup
			for w := range 16 {
				wg.Go(func() {
					for {
						l, err := h.Listen(context.Background(), fmt.Sprintf("%s-%d", prefix, w%5))
						if errors.Is(err, pubsub.ErrClosed) {
							return
						}
						if err != nil {
							t.Errorf("Listen: %v", err)
							return
						}
						go l.Close()
						if w%2 == 0 {
							l.Close()
						}
					}
				})
			}
			publish(t, s, prefix+"-1", "x")
			for range 2 {
				wg.Go(func() { _ = h.Close() })
			}
			wg.Wait()
		}
	})
}
