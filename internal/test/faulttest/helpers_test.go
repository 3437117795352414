package faulttest_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"relock/internal/test/faulttest"
	"relock/internal/test/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// patience bounds the waits for things that happen at once on an idle machine;
// grace is how long to look for things that must not happen.
const patience, grace = 20 * time.Second, 50 * time.Millisecond

// each runs fn against both kinds of server, with a proxy in front of it and a
// client of the proxy.
func each(t *testing.T, fn func(t *testing.T, s *redistest.Server, p *faulttest.Proxy, c rueidis.Client)) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		p := faulttest.New(t, s.Addr)
		fn(t, s, p, s.Client(t, through(p)))
	})
}

// through makes a client go through the proxy.
func through(p *faulttest.Proxy) func(*rueidis.ClientOption) {
	return func(o *rueidis.ClientOption) { o.InitAddress = []string{p.Addr()} }
}

func do(ctx context.Context, c rueidis.Client, args ...string) (string, error) {
	text, err := c.Do(ctx, c.B().Arbitrary(args...).Build()).ToString()
	if rueidis.IsRedisNil(err) {
		err = nil
	}
	return text, err
}

func mustDo(t *testing.T, c rueidis.Client, args ...string) string {
	t.Helper()
	text, err := do(t.Context(), c, args...)
	if err != nil {
		t.Fatalf("%s: %v", strings.Join(args, " "), err)
	}
	return text
}

// stored returns the key's value past the proxy.
func stored(t *testing.T, s *redistest.Server, key string) string {
	t.Helper()
	text, err := s.Do(t, "GET", key).ToString()
	if err != nil && !rueidis.IsRedisNil(err) {
		t.Fatal(err)
	}
	return text
}

// begin runs a command in the background.
func begin(t *testing.T, c rueidis.Client, args ...string) <-chan error {
	ctx, done := t.Context(), make(chan error, 1)
	go func() {
		_, err := do(ctx, c, args...)
		done <- err
	}()
	return done
}

// stillPending ends the test when done becomes ready within the grace.
func stillPending(t *testing.T, done <-chan error) {
	t.Helper()
	select {
	case err := <-done:
		t.Fatalf("ended too early: %v", err)
	case <-time.After(grace):
	}
}

func receive[T any](t *testing.T, what string, ch <-chan T) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(patience):
		t.Fatalf("never came: %s", what)
		panic("unreachable")
	}
}

// dial opens a bare connection through the proxy, which fails when the test
// takes too long.
func dial(t *testing.T, p *faulttest.Proxy) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return conn
}

// send writes commands, given as words, in one go.
func send(t *testing.T, conn net.Conn, commands ...string) {
	t.Helper()
	var text strings.Builder
	for _, command := range commands {
		words := strings.Fields(command)
		fmt.Fprintf(&text, "*%d\r\n", len(words))
		for _, word := range words {
			fmt.Fprintf(&text, "$%d\r\n%s\r\n", len(word), word)
		}
	}
	if _, err := conn.Write([]byte(text.String())); err != nil {
		t.Fatal(err)
	}
}
