package faulttest_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"relock/internal/test/faulttest"
	"relock/internal/test/redistest"
)

func TestCommandsAreCounted(t *testing.T) {
	each(t, func(t *testing.T, _ *redistest.Server, p *faulttest.Proxy, c rueidis.Client) {
		if p.Count("HELLO") != 1 || p.Count() != 0 || len(p.Log()) != 0 {
			t.Errorf("after connecting: %d HELLO, %d, %q", p.Count("HELLO"), p.Count(), p.Log())
		}
		mustDo(t, c, "SET", "k", "v")
		mustDo(t, c, "get", "k")
		mustDo(t, c, "PING")
		if p.Count() != 2 || p.Count("set") != 1 || p.Count("GET", "SET", "DEL") != 2 || p.Count("PING") == 0 {
			t.Errorf("counted %d, log %q", p.Count(), p.Log())
		}
		if log := p.Log(); strings.Join(log, "; ") != "SET k v; get k" {
			t.Errorf("log %q", log)
		}
		p.Reset()
		if p.Count() != 0 || len(p.Log()) != 0 {
			t.Errorf("after Reset: %q", p.Log())
		}
	})
}

func TestDroppedReplyLeavesTheCommandDone(t *testing.T) {
	each(t, func(t *testing.T, s *redistest.Server, p *faulttest.Proxy, c rueidis.Client) {
		p.DropReply(faulttest.HasArg("b"))
		mustDo(t, c, "SET", "k", "a")
		if _, err := do(t.Context(), c, "SET", "k", "b"); err == nil {
			t.Fatal("the reply arrived")
		} else if _, ok := rueidis.IsRedisErr(err); ok {
			t.Fatalf("a reply arrived: %v", err)
		}
		if got := stored(t, s, "k"); got != "b" {
			t.Errorf("stored %q", got)
		}
		mustDo(t, c, "SET", "k", "b")
		if n := p.Count("SET"); n != 3 {
			t.Errorf("%d commands", n)
		}
	})
}

func TestDroppedRequestIsNotRun(t *testing.T) {
	each(t, func(t *testing.T, s *redistest.Server, p *faulttest.Proxy, c rueidis.Client) {
		p.DropRequest(faulttest.Is("set"))
		if _, err := do(t.Context(), c, "SET", "k", "a"); err == nil {
			t.Fatal("the reply arrived")
		}
		if got := stored(t, s, "k"); got != "" || p.Count() != 0 {
			t.Errorf("stored %q, forwarded %q", got, p.Log())
		}
		mustDo(t, c, "SET", "k", "b")
	})
}

func TestFaultsStrikeInsideAPipeline(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		fault  func(*faulttest.Proxy)
		stored string
	}{
		"reply":   {func(p *faulttest.Proxy) { p.DropReply(faulttest.HasArg("b")) }, "b"},
		"request": {func(p *faulttest.Proxy) { p.DropRequest(faulttest.HasArg("b")) }, "a"},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, s *redistest.Server, p *faulttest.Proxy, c rueidis.Client) {
				tc.fault(p)
				got := c.DoMulti(t.Context(),
					c.B().Set().Key("k").Value("a").Build(),
					c.B().Set().Key("k").Value("b").Build())
				if got[0].Error() != nil || got[1].Error() == nil {
					t.Errorf("results %v, %v", got[0].Error(), got[1].Error())
				}
				if got := stored(t, s, "k"); got != tc.stored {
					t.Errorf("stored %q", got)
				}
			})
		})
	}
}

func TestDelayedReply(t *testing.T) {
	each(t, func(t *testing.T, _ *redistest.Server, p *faulttest.Proxy, c rueidis.Client) {
		p.DelayReply(grace, faulttest.Is("SET"))
		start := time.Now()
		mustDo(t, c, "SET", "k", "v")
		if took := time.Since(start); took < grace {
			t.Errorf("took %v", took)
		}
	})
}

func TestHeldReply(t *testing.T) {
	each(t, func(t *testing.T, s *redistest.Server, p *faulttest.Proxy, c rueidis.Client) {
		seen, release := p.HoldReply(faulttest.Is("SET"))
		first := begin(t, c, "SET", "k", "v")
		receive(t, "the answer", seen)
		if got := stored(t, s, "k"); got != "v" {
			t.Errorf("stored %q", got)
		}
		second := begin(t, c, "SET", "k", "w")
		redistest.Eventually(t, patience, "the second command runs", func() bool {
			return stored(t, s, "k") == "w"
		})
		stillPending(t, first)
		stillPending(t, second)
		release()
		release()
		if err := errors.Join(receive(t, "first", first), receive(t, "second", second)); err != nil {
			t.Error(err)
		}
	})
}

func TestHeldRequest(t *testing.T) {
	each(t, func(t *testing.T, s *redistest.Server, p *faulttest.Proxy, c rueidis.Client) {
		seen, release := p.HoldRequest(faulttest.Is("SET"))
		done := begin(t, c, "SET", "k", "v")
		receive(t, "the request", seen)
		stillPending(t, done)
		if got := stored(t, s, "k"); got != "" || p.Count() != 0 {
			t.Errorf("stored %q, forwarded %q", got, p.Log())
		}
		release()
		if err := receive(t, "reply", done); err != nil {
			t.Error(err)
		}
		if got := stored(t, s, "k"); got != "v" {
			t.Errorf("stored %q", got)
		}
	})
}

func TestHeldCommandOfAGoneClientIsRunLate(t *testing.T) {
	for name, fault := range map[string]func(*testing.T, *faulttest.Proxy, net.Conn) (end func()){
		"HoldRequest": func(t *testing.T, p *faulttest.Proxy, conn net.Conn) func() {
			seen, release := p.HoldRequest(faulttest.Is("SET"))
			send(t, conn, "SET k v")
			receive(t, "the request", seen)
			return release
		},
		"BlackHole": func(t *testing.T, p *faulttest.Proxy, conn net.Conn) func() {
			p.BlackHole(true)
			send(t, conn, "SET k v")
			return func() { p.BlackHole(false) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			redistest.Each(t, func(t *testing.T, s *redistest.Server) {
				p := faulttest.New(t, s.Addr)
				conn := dial(t, p)
				end := fault(t, p, conn)
				if err := conn.Close(); err != nil {
					t.Fatal(err)
				}
				if got := stored(t, s, "k"); got != "" {
					t.Errorf("stored %q", got)
				}
				end()
				redistest.Eventually(t, patience, "the command runs", func() bool { return stored(t, s, "k") == "v" })
			})
		})
	}
}

func TestCutClosesConnectionsOnce(t *testing.T) {
	each(t, func(t *testing.T, s *redistest.Server, p *faulttest.Proxy, c rueidis.Client) {
		seen, _ := p.HoldReply(faulttest.Is("SET"))
		done := begin(t, c, "SET", "k", "v")
		receive(t, "the answer", seen)
		p.Cut()
		if err := receive(t, "the error", done); err == nil {
			t.Error("no error")
		}
		mustDo(t, c, "SET", "k", "w")
		if got := stored(t, s, "k"); got != "w" {
			t.Errorf("stored %q", got)
		}
	})
}

func TestBlackHole(t *testing.T) {
	each(t, func(t *testing.T, s *redistest.Server, p *faulttest.Proxy, c rueidis.Client) {
		mustDo(t, c, "SET", "k", "a")
		p.BlackHole(true)
		p.BlackHole(true)
		old := begin(t, c, "SET", "k", "b")
		fresh := make(chan error, 1)
		go func() {
			o := s.Option()
			through(p)(&o)
			other, err := rueidis.NewClient(o)
			if err == nil {
				other.Close()
			}
			fresh <- err
		}()
		stillPending(t, old)
		stillPending(t, fresh)
		if got := stored(t, s, "k"); got != "a" {
			t.Errorf("stored %q", got)
		}
		p.BlackHole(false)
		if err := errors.Join(receive(t, "old", old), receive(t, "new", fresh)); err != nil {
			t.Error(err)
		}
		if got := stored(t, s, "k"); got != "b" {
			t.Errorf("stored %q", got)
		}
	})
}

func TestRefuse(t *testing.T) {
	each(t, func(t *testing.T, s *redistest.Server, p *faulttest.Proxy, c rueidis.Client) {
		mustDo(t, c, "SET", "k", "a")
		p.Refuse(true)
		if _, err := do(t.Context(), c, "SET", "k", "b"); err == nil {
			t.Error("no error")
		}
		if got := stored(t, s, "k"); got != "a" {
			t.Errorf("stored %q", got)
		}
		p.Refuse(false)
		redistest.Eventually(t, patience, "the client is back", func() bool {
			_, err := do(t.Context(), c, "SET", "k", "c")
			return err == nil
		})
	})
}

func TestRefusedCommandKeepsTheOrder(t *testing.T) {
	each(t, func(t *testing.T, s *redistest.Server, p *faulttest.Proxy, c rueidis.Client) {
		p.RefuseCommand("eval", "-NOPERM not here")
		seen, release := p.HoldReply(faulttest.Is("SET"))
		results := make(chan []rueidis.RedisResult, 1)
		go func() {
			results <- c.DoMulti(context.WithoutCancel(t.Context()),
				c.B().Set().Key("k").Value("a").Build(),
				c.B().Eval().Script("return redis.call('DEL', KEYS[1])").Numkeys(1).Key("k").Build(),
				c.B().Get().Key("k").Build())
		}()
		receive(t, "the answer to SET", seen)
		release()
		got := receive(t, "the results", results)
		if got[0].Error() != nil {
			t.Error(got[0].Error())
		}
		if re, ok := rueidis.IsRedisErr(got[1].Error()); !ok || re.Error() != "NOPERM not here" {
			t.Errorf("EVAL: %v", got[1].Error())
		}
		if text, err := got[2].ToString(); text != "a" {
			t.Errorf("GET: %q, %v", text, err)
		}
		if p.Count("EVAL") != 0 {
			t.Error("forwarded")
		}
		p.RefuseCommand("EVAL", "")
		mustDo(t, c, "EVAL", "return 'x'", "0")
	})
}
