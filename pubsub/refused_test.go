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

	"relock/internal/test/redistest"
	"relock/pubsub"
)

func TestRefusedChannelFailsAndHeals(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		client, p := through(t, s)
		const retry = 300 * time.Millisecond
		h := newHub(t, client, pubsub.RefusalRetry(retry))
		p.RefuseCommand("SUBSCRIBE", "NOPERM no channels for you")
		channel := redistest.Name(t)
		refused := func() bool {
			_, err := h.Listen(testContext(t), channel)
			if err == nil {
				return false
			}
			if !errors.Is(err, pubsub.ErrRefused) || !strings.Contains(err.Error(), "NOPERM") {
				t.Fatalf("Listen: %v", err)
			}
			if _, ok := rueidis.IsRedisErr(err); !ok {
				var re *rueidis.RedisError
				if !errors.As(err, &re) {
					t.Fatalf("%v does not wrap the server's error", err)
				}
			}
			return true
		}
		if !refused() {
			t.Fatal("Listen succeeded")
		}
		p.RefuseCommand("SUBSCRIBE", "")
		at := time.Now()
		if !refused() && time.Since(at) < retry/2 {
			t.Error("the refusal was not remembered")
		}
		if got := p.Count("SUBSCRIBE"); got != 0 {
			t.Errorf("%d SUBSCRIBE commands for a remembered refusal", got)
		}
		redistest.Eventually(t, soon, "Listen heals", func() bool { return !refused() })
		publish(t, s, channel, "x")
	})
}

// What is refused after a reconnect keeps its listeners, and heals without them.
func TestRefusalAfterReconnectHealsByItself(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		client, p := through(t, s)
		h := newHub(t, client, pubsub.RefusalRetry(50*time.Millisecond))
		channel := redistest.Name(t)
		l := record(t, h, channel, false)
		p.RefuseCommand("SUBSCRIBE", "NOPERM not now")
		p.Cut()
		receiveMissed(t, l)
		redistest.Eventually(t, soon, "the refusal has come", func() bool {
			_, err := h.Listen(testContext(t), channel)
			return errors.Is(err, pubsub.ErrRefused)
		})
		p.RefuseCommand("SUBSCRIBE", "")
		receiveMissed(t, l)
		publish(t, s, channel, "x")
		receivePayload(t, l, "x")
	})
}

func TestOneRefusedChannelDoesNotFailTheOthers(t *testing.T) {
	s := redistest.Real(t)
	prefix := redistest.Name(t)
	if err := s.Do(t, "ACL", "SETUSER", "waiter", "on", ">pw", "+@all", "allkeys", "resetchannels",
		"&"+prefix+"-ok-*").Error(); err != nil {
		t.Fatal(err)
	}
	h := newHub(t, s.Client(t, func(o *rueidis.ClientOption) { o.Username, o.Password = "waiter", "pw" }))
	var wg sync.WaitGroup
	for i := range 300 {
		wg.Go(func() {
			_, err := h.Listen(context.Background(), fmt.Sprintf("%s-ok-%d", prefix, i))
			if err != nil {
				t.Errorf("allowed channel: %v", err)
			}
		})
		if i%100 == 0 {
			wg.Go(func() {
				_, err := h.Listen(context.Background(), fmt.Sprintf("%s-bad-%d", prefix, i))
				if !errors.Is(err, pubsub.ErrRefused) {
					t.Errorf("forbidden channel: %v", err)
				}
			})
		}
	}
	wg.Wait()
}
