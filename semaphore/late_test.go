package semaphore_test

import (
	"bytes"
	"context"
	"crypto/sha1"
	"crypto/tls"
	"encoding/hex"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/semaphore"
)

// A wire keeps what a session has sent, so that a test can deliver a command once more, late.
type wire struct {
	mu   sync.Mutex
	sent bytes.Buffer
}

type wireConn struct {
	net.Conn
	w *wire
}

func (c wireConn) Write(b []byte) (int, error) {
	c.w.mu.Lock()
	c.w.sent.Write(b)
	c.w.mu.Unlock()
	return c.Conn.Write(b)
}

// dialWire makes a session of which the wire keeps all commands.
func dialWire(t *testing.T, s *redistest.Server, cfg rlock.Config) (*rlock.Session, *wire) {
	t.Helper()
	w := &wire{}
	opt := s.Option()
	opt.DialCtxFn = func(ctx context.Context, addr string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
		conn, err := d.DialContext(ctx, "tcp", addr)
		return wireConn{conn, w}, err
	}
	ses, err := rlock.Dial(context.Background(), opt, cfg)
	must(t, err)
	t.Cleanup(func() { _ = ses.Close() })
	return ses, w
}

// last returns the last run of a script that was sent.
func (w *wire) last(t *testing.T, script string) []string {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	sum := sha1.Sum([]byte(src[script]))
	at := strings.LastIndex(w.sent.String(), hex.EncodeToString(sum[:]))
	if at < 0 {
		t.Fatalf("%s was not sent", script)
	}
	at = strings.LastIndex(w.sent.String()[:at], "*")
	return command(t, w.sent.String()[at:])
}

// command decodes a command, as RESP writes it.
func command(t *testing.T, text string) (cmd []string) {
	t.Helper()
	number := func(prefix string) int {
		line, rest, _ := strings.Cut(text, "\r\n")
		n, err := strconv.Atoi(strings.TrimPrefix(line, prefix))
		must(t, err)
		text = rest
		return n
	}
	for range number("*") {
		n := number("$")
		cmd = append(cmd, text[:n])
		text = text[n+2:]
	}
	return cmd
}

// deliver runs a command that was sent before.
func deliver(t *testing.T, s *redistest.Server, cmd []string) {
	t.Helper()
	err := s.Do(t, cmd...).Error()
	if re, ok := rueidis.IsRedisErr(err); err != nil && (!ok || !strings.HasPrefix(re.Error(), "LATE ")) {
		t.Fatalf("the late command: %v", err)
	}
}

// A copy of a Drain that comes late takes nothing, also where the Drain had found nothing. Nor
// does it raise a number below 0.
func TestLateDrainTakesNothing(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ses, w := dialWire(t, s, slow())
		ctx := within(t, 20*time.Second)
		c := semaphore.NewCounter(ses, "c")
		for _, step := range []struct{ before, add, want int }{{0, 5, 5}, {0, -5, -5}, {3, 4, 4}, {-3, -4, -4}} {
			s.FlushAll(t)
			must(t, c.Add(ctx, step.before))
			drain(t, ctx, c, step.before)
			late := w.last(t, "drain")
			must(t, c.Add(ctx, step.add))
			deliver(t, s, late)
			available(t, ctx, c, step.want)
		}
	})
}

// The same for what takes and gives: whatever the counter has done since, a copy counts once.
func TestLateCommandsOfACounterChangeNothing(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ses, w := dialWire(t, s, slow())
		ctx := within(t, 20*time.Second)
		c := semaphore.NewCounter(ses, "c")
		for script, call := range map[string]func(){
			"take":    func() { must(t, c.Acquire(ctx, 1)) },
			"add":     func() { must(t, c.Release(ctx, 2)) },
			"try_set": func() { must(t, second(c.TrySet(ctx, 7))) },
		} {
			s.FlushAll(t)
			must(t, c.Add(ctx, 5))
			call()
			late := w.last(t, script)
			for range 3 {
				before, err := c.Available(ctx)
				must(t, err)
				deliver(t, s, late)
				available(t, ctx, c, before)
				must(t, c.Add(ctx, 2))
			}
		}
	})
}

// A SetLimit that arrives late does not undo a later one: not one of the same session, and not
// one of another session either if it had been answered.
func TestLateSetLimitSetsNothing(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ses, w := dialWire(t, s, slow())
		other := semaphore.New(dial(t, s, slow()), "x", 9)
		ctx := within(t, 20*time.Second)
		m := semaphore.New(ses, "x", 9)
		must(t, m.SetLimit(ctx, 3))
		late := w.last(t, "set_limit")
		must(t, other.SetLimit(ctx, 5))
		deliver(t, s, late)
		available(t, ctx, m, 5)
		must(t, m.SetLimit(ctx, 6))
		deliver(t, s, late)
		available(t, ctx, m, 6)
	})
}

// A copy of an Extend that comes late does not cut what a later Extend has given.
func TestLateExtendMovesNothing(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, 20*time.Second)
		ses, p := locktest.DialProxy(t, s, slow())
		_, permits, err := semaphore.New(ses, "x", 3).Acquire(ctx, 2, rlock.Lease(time.Minute))
		must(t, err)
		late := locktest.DropLate(p, locktest.Runs(src["extend"]), nil)
		must(t, permits.Extend(ctx, 20*time.Second))
		must(t, permits.Extend(ctx, time.Hour))
		before := end(t, s, permits)
		late.Arrive(t, s)
		if got := end(t, s, permits); got != before {
			t.Errorf("the late copy moved the end from %s to %s", before, got)
		}
		must(t, permits.Release())
	})
}
