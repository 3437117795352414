package locktest

import (
	"context"
	"crypto/sha1"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/rueidis"

	"relock/internal/test/faulttest"
	"relock/internal/test/redistest"
	"relock/locktrace"
	"relock/rlock"
)

// Dial makes a session of its own for a test, closed at its end.
func Dial(t testing.TB, s *redistest.Server, cfg rlock.Config) *rlock.Session {
	t.Helper()
	ses, err := rlock.Dial(context.Background(), s.Option(), cfg)
	if err != nil {
		t.Fatalf("Dial: %v", err)
	}
	t.Cleanup(func() {
		if err := ses.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return ses
}

// DialProxy makes a session whose traffic goes through a proxy of its own. The proxy is
// healed before the session is closed at the end of the test; how that Close ends is not
// looked at.
func DialProxy(t testing.TB, s *redistest.Server, cfg rlock.Config) (*rlock.Session, *faulttest.Proxy) {
	t.Helper()
	p, _ := faulttest.Of(t, s.Option())
	return DialVia(t, s, p, cfg), p
}

// DialVia is DialProxy with a proxy that is there already.
func DialVia(t testing.TB, s *redistest.Server, p *faulttest.Proxy, cfg rlock.Config) *rlock.Session {
	t.Helper()
	ses, err := rlock.Dial(context.Background(), p.Option(s.Option()), cfg)
	Must(t, err)
	t.Cleanup(func() {
		p.BlackHole(false)
		p.Refuse(false)
		_ = ses.Close()
	})
	p.Reset() // of what the session has sent to begin
	return ses
}

// DialOption makes a session, closed when the test ends. Close's error is for the test
// to judge: after a failover there may be releases that nobody can confirm.
func DialOption(t testing.TB, o rueidis.ClientOption, cfg rlock.Config) *rlock.Session {
	t.Helper()
	s, err := rlock.Dial(Within(t, Patience), o, cfg)
	if err != nil {
		t.Fatalf("Dial: %v", err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Logf("Close: %v", err)
		}
	})
	return s
}

// DialBubble makes a session on a miniredis that lives, as the session does, on the
// made-up clock of a synctest bubble. The caller closes it before the bubble ends.
func DialBubble(t testing.TB, m *miniredis.Miniredis, cfg rlock.Config) *rlock.Session {
	t.Helper()
	ses, err := rlock.Dial(context.Background(), rueidis.ClientOption{
		InitAddress:       []string{"bubble"},
		ForceSingleClient: true,
		DialCtxFn: func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) {
			return m.Dial()
		},
	}, cfg)
	Must(t, err)
	return ses
}

// Within returns a context that ends a test which would hang: after d, or on a real clock after a
// minute if that is more, for what takes a second can take ten on a busy machine. So it does not
// tell there who was woken by a message from who has looked by itself.
func Within(t testing.TB, d time.Duration) context.Context {
	t.Helper()
	if !redistest.MadeUpClock() {
		d = max(d, time.Minute)
	}
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

// Must fails the test on an error.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Is checks that err matches all of want.
func Is(t testing.TB, what string, err error, want ...error) {
	t.Helper()
	for _, w := range want {
		if !errors.Is(err, w) {
			t.Fatalf("%s: %v; want it to match %v", what, err, w)
		}
	}
}

// Ends waits until a critical section ends, and checks its cause.
func Ends(t testing.TB, section context.Context, within time.Duration, cause error) {
	t.Helper()
	select {
	case <-section.Done():
	case <-time.After(within):
		t.Fatalf("the section's context did not end within %v", within)
	}
	if got := context.Cause(section); !errors.Is(got, cause) {
		t.Fatalf("the section's context ended with cause %v, want %v", got, cause)
	}
}

// Get receives what must come within d.
func Get[T any](t testing.TB, c <-chan T, d time.Duration, what string) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(d):
		t.Fatalf("not within %v: %s", d, what)
		panic("not reached")
	}
}

// Runs returns a matcher, for a proxy, for the calls of the scripts with these sources.
func Runs(sources ...string) func(cmd []string) bool {
	known := map[string]bool{}
	for _, src := range sources {
		sum := sha1.Sum([]byte(src))
		known[hex.EncodeToString(sum[:])], known[src] = true, true
	}
	return func(cmd []string) bool {
		return len(cmd) > 1 && (strings.EqualFold(cmd[0], "EVALSHA") || strings.EqualFold(cmd[0], "EVAL")) && known[cmd[1]]
	}
}

// Sent returns how many commands that match the proxy has forwarded.
func Sent(p *faulttest.Proxy, match func(cmd []string) bool) (n int) {
	for _, line := range p.Log() {
		if match(strings.SplitN(line, " ", 3)) {
			n++
		}
	}
	return n
}

// Waiting returns a Trace that tells of each Lock that begins to wait, of the first 10 000 at least
// that the test has not looked at: a hook that blocked would keep the Lock from going on.
func Waiting() (*rlock.Trace, <-chan struct{}) {
	c := make(chan struct{}, 10_000)
	return &rlock.Trace{Waiting: func(context.Context, locktrace.Waiting) {
		select {
		case c <- struct{}{}:
		default:
		}
	}}, c
}

// A Late is a command that was sent and did not arrive: the test delivers it when it likes.
type Late struct {
	mu  sync.Mutex
	cmd []string
}

// DropLate has the proxy drop the next matching command, as a network that delivers it late.
// then, if any, is called at once; it must not call the proxy.
func DropLate(p *faulttest.Proxy, match func(cmd []string) bool, then func()) *Late {
	l := new(Late)
	p.DropRequest(func(cmd []string) bool {
		if !match(cmd) {
			return false
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		l.cmd = slices.Clone(cmd)
		if then != nil {
			then()
		}
		return true
	})
	return l
}

// Arrive delivers the command.
func (l *Late) Arrive(t testing.TB, s *redistest.Server) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cmd == nil {
		t.Fatal("the command that should arrive late was not sent")
	}
	if err := s.Do(t, l.cmd...).Error(); err != nil {
		t.Fatalf("the late command: %v", err)
	}
}
