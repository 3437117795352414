package faulttest_test

import (
	"bufio"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"relock/internal/test/faulttest"
	"relock/internal/test/redistest"
)

// listen subscribes to the channels and returns the messages, and a channel
// that gets the kind of every confirmation.
func listen(t *testing.T, c rueidis.Client, channels ...string) (messages, confirmed <-chan string) {
	t.Helper()
	got, subs := make(chan string, 100), make(chan string, 100)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan struct{})
	hooked := rueidis.WithOnSubscriptionHook(ctx, func(s rueidis.PubSubSubscription) { subs <- s.Kind })
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			_ = c.Receive(hooked, c.B().Subscribe().Channel(channels...).Build(),
				func(m rueidis.PubSubMessage) { got <- m.Message })
		}
	}()
	t.Cleanup(func() { cancel(); <-done })
	for range channels {
		receive(t, "confirmation", subs)
	}
	return got, subs
}

func TestMessagesAreDropped(t *testing.T) {
	for name, mod := range map[string]func(*rueidis.ClientOption){
		"RESP3": func(*rueidis.ClientOption) {},
		"RESP2": func(o *rueidis.ClientOption) { o.AlwaysRESP2 = true },
	} {
		t.Run(name, func(t *testing.T) {
			redistest.Each(t, func(t *testing.T, s *redistest.Server) {
				p := faulttest.New(t, s.Addr)
				c := s.Client(t, through(p), mod)
				messages, _ := listen(t, c, "ch", "other")
				publish := func(text string) {
					t.Helper()
					if n, err := s.Do(t, "PUBLISH", "ch", text).AsInt64(); err != nil || n != 1 {
						t.Fatalf("PUBLISH: %d, %v", n, err)
					}
				}
				publish("one")
				if got := receive(t, "one", messages); got != "one" {
					t.Fatalf("got %q", got)
				}
				p.DropMessages(true)
				publish("two")
				// Nothing tells that a message will not come: give it some time.
				select {
				case got := <-messages:
					t.Fatalf("got %q", got)
				case <-time.After(grace):
				}
				mustDo(t, s.Client(t, through(p), mod), "SET", "k", "v")
				p.DropMessages(false)
				publish("three")
				if got := receive(t, "three", messages); got != "three" {
					t.Fatalf("got %q", got)
				}
			})
		})
	}
}

func TestSubscriberComesBackAfterACut(t *testing.T) {
	each(t, func(t *testing.T, s *redistest.Server, p *faulttest.Proxy, c rueidis.Client) {
		messages, confirmed := listen(t, c, "ch")
		p.Cut()
		receive(t, "second confirmation", confirmed)
		s.Do(t, "PUBLISH", "ch", "x")
		if got := receive(t, "message", messages); got != "x" {
			t.Errorf("got %q", got)
		}
		if n := p.Count("SUBSCRIBE"); n != 2 {
			t.Errorf("%d SUBSCRIBE", n)
		}
	})
}

func TestHeldConfirmation(t *testing.T) {
	each(t, func(t *testing.T, s *redistest.Server, p *faulttest.Proxy, c rueidis.Client) {
		seen, release := p.HoldReply(faulttest.Is("SUBSCRIBE"))
		confirmed := make(chan struct{})
		go func() {
			defer close(confirmed)
			listen(t, c, "ch")
		}()
		receive(t, "the answer", seen)
		if got := s.Channels(t); len(got) != 1 {
			t.Errorf("channels %q", got)
		}
		select {
		case <-confirmed:
			t.Error("confirmed too early")
		case <-time.After(grace):
		}
		release()
		receive(t, "the confirmation", confirmed)
	})
}

func TestDroppedConfirmation(t *testing.T) {
	each(t, func(t *testing.T, s *redistest.Server, p *faulttest.Proxy, c rueidis.Client) {
		p.DropReply(faulttest.Is("SUBSCRIBE"))
		listen(t, c, "ch") // rueidis tries again by itself
		if n := p.Count("SUBSCRIBE"); n != 2 {
			t.Errorf("%d SUBSCRIBE", n)
		}
	})
}

func TestRefusedSubscribe(t *testing.T) {
	each(t, func(t *testing.T, s *redistest.Server, p *faulttest.Proxy, c rueidis.Client) {
		p.RefuseCommand("SUBSCRIBE", "NOPERM no channels for you")
		err := c.Receive(t.Context(), c.B().Subscribe().Channel("ch").Build(), func(rueidis.PubSubMessage) {})
		if re, ok := rueidis.IsRedisErr(err); !ok || !strings.HasPrefix(re.Error(), "NOPERM") {
			t.Errorf("got %v", err)
		}
		mustDo(t, s.Client(t, through(p)), "SET", "k", "v")
	})
}

// TestConfirmationsConsumeNoReply mixes the subscribe family with commands whose
// replies are acted upon, on one connection.
func TestConfirmationsConsumeNoReply(t *testing.T) {
	for name, hello := range map[string]string{"RESP2": "PING", "RESP3": "HELLO 3"} {
		t.Run(name, func(t *testing.T) {
			redistest.Each(t, func(t *testing.T, s *redistest.Server) {
				p := faulttest.New(t, s.Addr)
				conn := dial(t, p)
				p.DropReply(faulttest.HasArg("last"))
				send(t, conn, hello, "SUBSCRIBE a b c", "UNSUBSCRIBE b", "PING one", "PSUBSCRIBE x*",
					"UNSUBSCRIBE", "UNSUBSCRIBE", "PUNSUBSCRIBE", "SUBSCRIBE", "PING two", "SUBSCRIBE d d",
					"PING last", "PING never")
				var all strings.Builder
				sc := bufio.NewScanner(conn)
				for sc.Scan() {
					all.WriteString(sc.Text() + " ")
				}
				text := all.String()
				if strings.Contains(text, "last") || strings.Contains(text, "never") {
					t.Errorf("the wrong reply was dropped: %s", text)
				}
				if n := strings.Count(text, " subscribe "); n != 5 {
					t.Errorf("%d confirmations: %s", n, text)
				}
				if !strings.Contains(text, "two") || !strings.Contains(text, "wrong number of arguments") {
					t.Errorf("replies are missing: %s", text)
				}
			})
		})
	}
}

func TestSlotMigrationEndsSubscriptionsUnasked(t *testing.T) {
	t.Parallel()
	redistest.NeedSharded(t)
	cl := redistest.NewCluster(t)
	slot := redistest.Slot("ch")
	from := cl.SlotOwner(t, slot)
	to := cl.Addrs[0]
	if to == from {
		to = cl.Addrs[1]
	}
	p := faulttest.New(t, from)
	c := cl.Node(from).Client(t, through(p))
	subscribed := make(chan struct{})
	ended := make(chan error, 1)
	ctx := rueidis.WithOnSubscriptionHook(t.Context(), func(s rueidis.PubSubSubscription) {
		if s.Kind == "ssubscribe" {
			close(subscribed)
		}
	})
	go func() {
		ended <- c.Receive(ctx, c.B().Ssubscribe().Channel("ch").Build(), func(rueidis.PubSubMessage) {})
	}()
	receive(t, "confirmation", subscribed)
	cl.MigrateSlot(t, slot, to)
	if err := receive(t, "end of the subscription", ended); err != nil {
		t.Error(err)
	}
	// The notice has not been taken for the reply to something.
	p.DropReply(faulttest.HasArg("dropped"))
	for _, arg := range []string{"a", "b"} {
		if got := mustDo(t, c, "ECHO", arg); got != arg {
			t.Errorf("ECHO: %q", got)
		}
	}
	if _, err := do(t.Context(), c, "ECHO", "dropped"); err == nil {
		t.Error("the reply arrived")
	}
}
