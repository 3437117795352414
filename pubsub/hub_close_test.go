package pubsub_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"relock/internal/test/redistest"
	"relock/pubsub"
)

func TestListenGivesUpWithItsContext(t *testing.T) {
	t.Parallel()
	s := redistest.Real(t)
	h := newHub(t, s.Client(t), pubsub.Linger(time.Millisecond))
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
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		client, p := through(t, s)
		h := newHub(t, client)
		l := mustListen(t, h, redistest.Name(t))
		if s.IsMini() {
			p.BlackHole(true)
			defer p.BlackHole(false)
		} else {
			s.Pause()
			defer s.Resume()
		}
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
	})
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
