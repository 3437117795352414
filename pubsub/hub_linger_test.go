package pubsub_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/pubsub"
)

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

// listenTo listens to n channels, to all at the same time.
func listenTo(t *testing.T, h *pubsub.Hub, prefix string, n int) []*pubsub.Listener {
	t.Helper()
	ls := make([]*pubsub.Listener, n)
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
	if t.Failed() {
		t.FailNow()
	}
	t.Logf("%d channels in %v", n, time.Since(begin)) // the number of commands is what is checked
	return ls
}

func TestManyChannelsShareOneConnection(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		const n = 10_000
		closed := make(chan pubsub.Event, 10) // the first one comes when nothing is subscribed any more
		watch := pubsub.Watch(func(e pubsub.Event) {
			if e.State != pubsub.Connected {
				closed <- e
			}
		})
		// Twenty thousand goroutines that want to run at once may leave the readers of the connections
		// no time for longer than a server may be silent. That is not what this is about.
		client := s.Client(t, func(o *rueidis.ClientOption) { o.ConnWriteTimeout = time.Minute })
		h := newHub(t, client, watch, pubsub.Silence(time.Minute), pubsub.Linger(50*time.Millisecond))
		prefix := redistest.Name(t)
		if !s.IsMini() {
			s.ResetStats(t)
		}
		ls := listenTo(t, h, prefix, n)
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
		// The hub says when that is done. A server that is asked for its channels all the time, while
		// these are many, has time for nothing else.
		if e := locktest.Get(t, closed, patience, "all is unsubscribed"); e.State != pubsub.Closed {
			t.Errorf("the connection was lost: %v", e.Err)
		}
		redistest.Eventually(t, soon, "no channel is left", func() bool { return channelsOf(t, s, prefix) == 0 })
		if !s.IsMini() {
			if got := s.Commands(t)["unsubscribe"]; got < n/250 || got > n/10 { // 250 channels a command
				t.Errorf("%d UNSUBSCRIBE commands for %d channels", got, n)
			}
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
