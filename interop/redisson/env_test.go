package redisson

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/locktrace"
	"relock/rlock"
)

const (
	// wokenWithin is for who is woken by a message. A lease is watchdog at least, and a
	// session looks by itself after patience, so nothing else can have woken it.
	wokenWithin = 10 * time.Second
	watchdog    = 30 * time.Second // Redisson's default
	patience    = time.Minute

	// short is a lease that tests wait for the end of, or see renewed: not so short that a
	// busy machine loses it.
	short = 2500 * time.Millisecond
)

// ttl returns what is left of the lock's lease, negative when there is none.
func (e *env) ttl(t testing.TB, name string) time.Duration {
	t.Helper()
	n, err := e.admin.Do(t.Context(), e.admin.B().Pttl().Key(e.key(name)).Build()).AsInt64()
	locktest.Must(t, err)
	return time.Duration(n) * time.Millisecond
}

// renewals returns when the lock's lease has grown n times.
func (e *env) renewals(t testing.TB, name string, n int) {
	t.Helper()
	last := e.ttl(t, name)
	redistest.Eventually(t, answerTimeout, "the lease is renewed", func() bool {
		now := e.ttl(t, name)
		if now < 0 {
			t.Fatalf("the lock is gone")
		}
		if now > last {
			n--
		}
		last = now
		return n <= 0
	})
}

// fades checks that the lease is as it was, but for the time that has passed.
func (e *env) fades(t testing.TB, name string, from time.Duration) {
	t.Helper()
	if now := e.ttl(t, name); now <= 0 || now > from {
		t.Fatalf("the other side has changed the lease from %v to %v", from, now)
	}
}

// side is one session, with an eye on its attempts.
type side struct {
	behind bool // another session stands in front of it in the lines that it enters
	*rlock.Session

	mu      sync.Mutex
	refused map[string]int // attempts, by name
	waiting map[string]int // who began to wait behind others of the session, by name
}

// patient does nothing by itself while a test lasts.
var patient = rlock.Config{PollFloor: patience}

// session opens one, closed when the test ends.
func (e *env) session(t testing.TB, cfg rlock.Config) *side {
	t.Helper()
	s := &side{refused: map[string]int{}, waiting: map[string]int{}}
	cfg.Trace = &rlock.Trace{
		Attempt: func(e locktrace.Attempt) {
			if !e.Granted && e.Err == nil {
				s.mu.Lock()
				s.refused[e.Name]++
				s.mu.Unlock()
			}
		},
		Waiting: func(_ context.Context, e locktrace.Waiting) {
			s.mu.Lock()
			s.waiting[e.Name]++
			s.mu.Unlock()
		},
	}
	cfg.Prefix = e.prefix + cfg.Prefix
	var logged lockedBuffer
	cfg.Logger = slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{Level: slog.LevelDebug}))
	t.Cleanup(func() {
		if text := logged.String(); t.Failed() && text != "" {
			t.Logf("a session has written:\n%s", text)
		}
	})
	var err error
	s.Session, err = rlock.Dial(t.Context(), e.opt, cfg)
	locktest.Must(t, err)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return s
}

// began returns how many have begun to wait in the session since the last call.
func (s *side) began(name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.waiting[name]
	s.waiting[name] = 0
	return n
}

func (s *side) attempts(name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refused[name]
}

// waits calls begin, which begins to wait in the background, and returns when that waits
// for a message: it has been refused, has subscribed, and has been refused again. Of a session behind another one in
// the line it is refused once.
func (s *side) waits(t testing.TB, name string, begin func()) {
	t.Helper()
	before := s.attempts(name)
	begin()
	redistest.Eventually(t, answerTimeout, "the Go side waits", func() bool {
		if s.behind {
			return s.attempts(name) > before
		}
		return s.attempts(name) >= before+2
	})
}

// got is what came of a Lock.
type got struct {
	section context.Context
	h       *rlock.Hold
	err     error
}

// locking is any function that waits for a lock.
type locking func(context.Context, ...rlock.LockOption) (context.Context, *rlock.Hold, error)

// queue begins to wait with lock and returns when it waits.
func (s *side) queue(t testing.TB, name string, lock locking, opts ...rlock.LockOption) <-chan got {
	t.Helper()
	var c <-chan got
	s.waits(t, name, func() { c = s.begin(t, lock, opts...) })
	return c
}

// begin locks in the background.
func (s *side) begin(t testing.TB, lock locking, opts ...rlock.LockOption) <-chan got {
	c := make(chan got, 1)
	ctx := locktest.Within(t, 2*time.Minute)
	go func() {
		section, h, err := lock(ctx, opts...)
		c <- got{section, h, err}
	}()
	return c
}

// take returns a hold that is there at once.
func take(t testing.TB, lock locking, opts ...rlock.LockOption) got {
	t.Helper()
	section, h, err := lock(locktest.Within(t, answerTimeout), opts...)
	locktest.Must(t, err)
	return got{section, h, err}
}

// refuses checks that a lock that is not waited for is not to be had.
func refuses(t testing.TB, try locking) {
	t.Helper()
	_, h, err := try(locktest.Within(t, answerTimeout))
	if err == nil {
		_ = h.Unlock()
		t.Fatal("Go got a lock that Java holds, or the other way round")
	}
	locktest.Is(t, "TryLock", err, rlock.ErrNotAcquired)
}

// woken receives a hold that a message must bring.
func woken(t testing.TB, c <-chan got) got {
	t.Helper()
	g := locktest.Get(t, c, wokenWithin, "a message wakes the Go side")
	locktest.Must(t, g.err)
	return g
}

// wokenJava receives an answer that a message must bring.
func wokenJava(t testing.TB, c <-chan answer) string {
	t.Helper()
	a := locktest.Get(t, c, wokenWithin, "a message wakes the Java side")
	locktest.Must(t, a.err)
	return a.value
}

// stillWaits checks that nothing has come.
func stillWaits[T any](t testing.TB, c <-chan T, who string) {
	t.Helper()
	select {
	case v := <-c:
		t.Fatalf("%s does not wait any more: %v", who, v)
	default:
	}
}
