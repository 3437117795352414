package redistest_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"relock/internal/test/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// mustDo runs a command over a client and ends the test when it fails.
func mustDo(t *testing.T, c rueidis.Client, args ...string) string {
	t.Helper()
	text, err := c.Do(t.Context(), c.B().Arbitrary(args...).Build()).ToString()
	if err != nil && !rueidis.IsRedisNil(err) {
		t.Fatalf("%s: %v", strings.Join(args, " "), err)
	}
	return text
}

func TestEachServerIsFresh(t *testing.T) {
	for range 2 {
		redistest.Each(t, func(t *testing.T, s *redistest.Server) {
			if keys := s.Keys(t); len(keys) != 0 {
				t.Fatalf("keys at the start: %q", keys)
			}
			c := s.Client(t)
			mustDo(t, c, "SET", "b", "1")
			mustDo(t, c, "SET", "a", "1")
			if keys := s.Keys(t); strings.Join(keys, " ") != "a b" {
				t.Errorf("keys %q", keys)
			}
			s.FlushAll(t)
			if keys := s.Keys(t); len(keys) != 0 {
				t.Errorf("keys after FlushAll: %q", keys)
			}
			if s.IsMini() != (s.Mini != nil) || s.CanPause() == s.IsMini() {
				t.Error("kind of server")
			}
		})
	}
}

func TestTTLsRunByTheClock(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		c := s.Client(t)
		mustDo(t, c, "SET", "k", "v", "PX", "20")
		redistest.Eventually(t, 5*time.Second, "the key expires", func() bool {
			return mustDo(t, c, "GET", "k") == ""
		})
	})
}

func TestBubbleWaitsInNoTime(t *testing.T) {
	began := time.Now()
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		if !s.IsMini() {
			return
		}
		mustDo(t, s.Client(t), "SET", "k", "v", "PX", "3600000")
		time.Sleep(time.Hour - time.Second)
		if keys := s.Keys(t); len(keys) != 1 {
			t.Errorf("keys %q after less than an hour", keys)
		}
		time.Sleep(2 * time.Second)
		if keys := s.Keys(t); len(keys) != 0 {
			t.Errorf("keys %q after more than an hour", keys)
		}
	})
	if took := time.Since(began); took > time.Minute {
		t.Errorf("an hour of the bubble took %v", took)
	}
}

func TestChannels(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		c := s.Client(t)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() {
			done <- c.Receive(ctx, c.B().Subscribe().Channel("z", "y").Build(), func(rueidis.PubSubMessage) {})
		}()
		redistest.Eventually(t, 5*time.Second, "both channels", func() bool {
			return strings.Join(s.Channels(t), " ") == "y z"
		})
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

// everyServer runs fn on a miniredis in a bubble as well.
func everyServer(t *testing.T, fn func(t *testing.T, s *redistest.Server)) {
	redistest.Each(t, fn)
	t.Run("bubble", func(t *testing.T) { redistest.EachBubble(t, fn) })
}

func TestRestartForgetsKeysAndScripts(t *testing.T) {
	everyServer(t, func(t *testing.T, s *redistest.Server) {
		const script = "return 42"
		before := s.Client(t)
		mustDo(t, before, "SET", "k", "v")
		sha := mustDo(t, before, "SCRIPT", "LOAD", script)
		addr := s.Addr
		s.Restart(t)
		if s.Addr != addr {
			t.Errorf("address %s, was %s", s.Addr, addr)
		}
		after := s.Client(t)
		if keys := s.Keys(t); len(keys) != 0 {
			t.Errorf("keys %q", keys)
		}
		err := after.Do(t.Context(), after.B().Evalsha().Sha1(sha).Numkeys(0).Build()).Error()
		if re, ok := rueidis.IsRedisErr(err); !ok || !re.IsNoScript() {
			t.Errorf("EVALSHA: %v", err)
		}
		// Blocking commands work after a restart as well.
		go s.Do(t, "RPUSH", "list", "x")
		if got, err := after.Do(t.Context(), after.B().Blpop().Key("list").Timeout(5).Build()).AsStrSlice(); err != nil {
			t.Errorf("BLPOP: %q, %v", got, err)
		}
	})
}

func TestKilledServerDoesNotAnswer(t *testing.T) {
	everyServer(t, func(t *testing.T, s *redistest.Server) {
		c := s.Client(t, func(o *rueidis.ClientOption) { o.DisableRetry = true })
		mustDo(t, c, "PING")
		s.Kill()
		s.Kill()
		if err := c.Do(t.Context(), c.B().Ping().Build()).Error(); err == nil {
			t.Error("a client is answered after Kill")
		}
		if err := s.Do(t, "PING").Error(); err == nil {
			t.Error("answered after Kill")
		}
		s.Restart(t)
		s.FlushAll(t)
	})
}

func TestPausedServerAnswersLater(t *testing.T) {
	s := redistest.Real(t)
	c := s.Client(t)
	mustDo(t, c, "SET", "k", "v")
	s.Pause()
	answer := make(chan error, 1)
	go func() { answer <- c.Do(context.WithoutCancel(t.Context()), c.B().Get().Key("k").Build()).Error() }()
	select {
	case err := <-answer:
		t.Errorf("answered while paused: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	s.Resume()
	if err := <-answer; err != nil {
		t.Errorf("after Resume: %v", err)
	}
}

func TestPausedServerCanBeKilledAndRestarted(t *testing.T) {
	s := redistest.Real(t)
	s.Pause()
	s.Restart(t)
	s.FlushAll(t)
}

func TestCommands(t *testing.T) {
	s := redistest.Real(t)
	c := s.Client(t)
	s.ResetStats(t)
	for range 3 {
		mustDo(t, c, "EVAL", "return 'x'", "0")
	}
	mustDo(t, c, "SET", "k", "v")
	if n := s.Commands(t); n["eval"] != 3 || n["set"] != 1 {
		t.Errorf("commands %v", n)
	}
	s.ResetStats(t)
	if n := s.Commands(t); n["eval"] != 0 {
		t.Errorf("after ResetStats: %v", n)
	}
}

func TestRealTakesArguments(t *testing.T) {
	s := redistest.Real(t, "--notify-keyspace-events", "Ex")
	conf, err := s.Do(t, "CONFIG", "GET", "notify-keyspace-events").AsStrMap()
	if err != nil || conf["notify-keyspace-events"] != "xE" {
		t.Errorf("%v, %v", conf, err)
	}
}

func TestNamesAreUniqueAndPlain(t *testing.T) {
	t.Run("odd {name} *?", func(t *testing.T) {
		a, b := redistest.Name(t), redistest.Name(t)
		if a == b || strings.ContainsAny(a, "{}*?[]/ ") || !strings.Contains(a, "name") {
			t.Errorf("%q, %q", a, b)
		}
	})
}
