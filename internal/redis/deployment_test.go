package redis_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"relock/internal/api"
	"relock/internal/inbox"
	"relock/internal/life"
	"relock/internal/redis"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/pubsub"
)

// A session is what a test has of one.
type session struct {
	*redis.Deployment
	life *life.Life
	told chan string
}

// made returns a session, which ends with the test, that has sent nothing yet.
func made(t *testing.T, s *redistest.Server, polls bool) *session {
	return madeOf(t, s.Client(t), polls)
}

func madeOf(t *testing.T, client rueidis.Client, polls bool) *session {
	x := &session{life: life.New(), told: make(chan string, 10)}
	start := time.Now()
	x.Deployment = redis.New(client, redis.Config{
		Session: "me", Prefix: "app:", Label: "label", Lease: time.Minute, Timeout: time.Second,
		Polls: polls, Logger: slog.New(slog.NewTextHandler(new(bytes.Buffer), nil)), Life: x.life,
		Env: life.Env{Context: x.life.Context, Background: &x.life.Background, Log: slog.New(slog.DiscardHandler),
			Clock: func() time.Duration { return time.Since(start) }, WakeAt: func(time.Duration) {}},
		Told: func(m pubsub.Message) { x.told <- m.Payload }, Back: func() {}, Changed: func(pubsub.Event) {},
	}, redis.Options{})
	t.Cleanup(func() {
		x.life.Stop()
		x.life.Farewell(10*time.Second, x.Close, x.Conn.Sever)
	})
	return x
}

func hasRecord(t *testing.T, s *redistest.Server) bool {
	return s.Do(t, "GET", inbox.Prefix+"me").Error() == nil
}

// A session that has begun hears its own channel and those of locks, and has a record.
func TestConnect(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		x := made(t, s, false)
		if err := x.Connect(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.Do(t, "PUBLISH", inbox.Prefix+"me", "hello")
		if got := locktest.Get(t, x.told, 10*time.Second, "a message"); got != "hello" {
			t.Errorf("heard %q", got)
		}
		if !hasRecord(t, s) {
			t.Error("it has no record")
		}
		listener, err := x.Listen(t.Context(), "of a lock", false)
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
		s.Do(t, "PUBLISH", "of a lock", "free")
		if got := locktest.Get(t, listener.C(), 10*time.Second, "a message of a lock"); got.Payload != "free" {
			t.Errorf("heard %q of the lock", got.Payload)
		}
	})
}

// A session that polls subscribes to nothing.
func TestConnectOfASessionThatPolls(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		x := made(t, s, true)
		if err := x.Connect(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n, err := s.Do(t, "PUBLISH", inbox.Prefix+"me", "hello").AsInt64(); n != 0 || err != nil {
			t.Errorf("%d connections hear its channel, %v", n, err)
		}
		if _, err := x.Listen(t.Context(), "of a lock", false); err == nil || !x.Inbox.Deaf.Load() {
			t.Errorf("it listens: %v, deaf: %v", err, x.Inbox.Deaf.Load())
		}
	})
}

// What could not begin leaves nothing behind: neither a record nor a subscription.
func TestConnectThatFails(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		over, end := context.WithCancel(t.Context())
		end()
		if err := made(t, s, false).Connect(over); !errors.Is(err, api.ErrUnavailable) || !strings.HasPrefix(err.Error(), "ping: ") {
			t.Errorf("with a context that has ended: %v", err)
		}

		x := made(t, s, false)
		x.Space.Publish = "NOSUCH" // which the probe finds
		if err := x.Connect(t.Context()); err == nil {
			t.Fatal("it began without a way to publish")
		}
		if hasRecord(t, s) {
			t.Error("its record was left behind")
		}
		redistest.Eventually(t, 10*time.Second, "the subscription to end", func() bool {
			n, err := s.Do(t, "PUBLISH", inbox.Prefix+"me", "hello").AsInt64()
			return err == nil && n == 0
		})
	})
}
