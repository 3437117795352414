package scriptfuzz

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"relock/election"
	"relock/fairlock"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/latch"
	"relock/quorum"
	"relock/rlock"
	"relock/rwlock"
	"relock/semaphore"
)

// An operation is what a session is asked for while replies to its scripts are changed.
type operation func(ctx context.Context, s *rlock.Session) error

// operations read the replies of all scripts, but for those that a session begins with.
var operations = []operation{
	hold(func(s *rlock.Session) lockFunc { return rlock.New(s, "x").Lock }),
	hold(func(s *rlock.Session) lockFunc { return rlock.New(s, "x", rlock.Fenced()).Lock }),
	hold(func(s *rlock.Session) lockFunc { return fairlock.New(s, "x").Lock }),
	hold(func(s *rlock.Session) lockFunc { return rwlock.New(s, "rw").Lock }),
	hold(func(s *rlock.Session) lockFunc { return rwlock.New(s, "rw").RLock }),
	func(ctx context.Context, s *rlock.Session) error { _, err := rlock.New(s, "x").State(ctx); return err },
	func(ctx context.Context, s *rlock.Session) error {
		_, err := rlock.New(s, "x").Waiters(ctx)
		return err
	},
	func(ctx context.Context, s *rlock.Session) error {
		_, err := rlock.New(s, "x").ForceUnlock(ctx)
		return err
	},
	func(ctx context.Context, s *rlock.Session) error {
		_, err := rwlock.New(s, "rw").State(ctx)
		return err
	},
	func(ctx context.Context, s *rlock.Session) error {
		_, p, err := semaphore.New(s, "s", 3).Acquire(ctx, 2)
		if err != nil {
			return err
		}
		return p.Release()
	},
	func(ctx context.Context, s *rlock.Session) error {
		_, err := semaphore.New(s, "s", 3).Available(ctx)
		return err
	},
	func(ctx context.Context, s *rlock.Session) error { return semaphore.New(s, "s", 3).SetLimit(ctx, 2) },
	func(ctx context.Context, s *rlock.Session) error { return semaphore.New(s, "s", 3).Delete(ctx) },
	func(ctx context.Context, s *rlock.Session) error { return semaphore.NewCounter(s, "c").Acquire(ctx, 1) },
	func(ctx context.Context, s *rlock.Session) error {
		_, err := semaphore.NewCounter(s, "c").Drain(ctx)
		return err
	},
	func(ctx context.Context, s *rlock.Session) error { return semaphore.NewCounter(s, "c").Add(ctx, 2) },
	func(ctx context.Context, s *rlock.Session) error {
		_, err := latch.New(s, "l").TrySet(ctx, 2)
		return err
	},
	func(ctx context.Context, s *rlock.Session) error { _, err := latch.New(s, "l").Count(ctx); return err },
	func(ctx context.Context, s *rlock.Session) error { return latch.New(s, "l").Await(ctx) },
	func(ctx context.Context, s *rlock.Session) error {
		_, l, err := election.New(s, "e").Campaign(ctx, "value")
		if err != nil {
			return err
		}
		return l.Resign()
	},
	func(ctx context.Context, s *rlock.Session) error {
		_, err := election.New(s, "e").Leader(ctx)
		return err
	},
	func(ctx context.Context, s *rlock.Session) error {
		_, h, err := quorum.New([]*rlock.Session{s}, "q").Lock(ctx)
		if err != nil {
			return err
		}
		return h.Unlock()
	},
}

type lockFunc = func(context.Context, ...rlock.LockOption) (context.Context, *rlock.Hold, error)

// hold holds a lock for long enough to be renewed, extends a lease, and nests.
func hold(lock func(*rlock.Session) lockFunc) operation {
	return func(ctx context.Context, s *rlock.Session) error {
		section, h, err := lock(s)(ctx)
		if err != nil {
			return err
		}
		_, nested, err := lock(s)(section, rlock.Lease(time.Minute))
		if err == nil {
			_ = nested.Extend(ctx, time.Second)
			_ = nested.Unlock()
		}
		select {
		case <-time.After(5 * time.Second):
		case <-section.Done():
		}
		return h.Unlock()
	}
}

// reply is one value of RESP, of any type.
func (d *draw) reply(depth int) string {
	text := func() string {
		return d.of("0", "1", "-1", "", "text", "9223372036854775808", "1:1", strings.Repeat("x", 300), "a:1")
	}
	switch d.n(9) {
	case 0, 1:
		return ":" + d.of("1", "0", "-1", "-2", "2", "9223372036854775807", "-9223372036854775808", "1250") + "\r\n"
	case 2:
		s := text()
		return fmt.Sprintf("$%d\r\n%s\r\n", len(s), s)
	case 3:
		return "+" + d.of("OK", "1", "") + "\r\n"
	case 4:
		return d.of("_\r\n", "#t\r\n", ",1.5\r\n", ",inf\r\n", "(12345678901234567890\r\n", "$-1\r\n", "*-1\r\n")
	case 5:
		return "-" + d.of("ERR odd", "WRONGTYPE of a key", "NOSCRIPT none", "LOADING it", "READONLY replica", "BUSY script", "TRYAGAIN later",
			"MOVED 1 127.0.0.1:1", "ASK 1 127.0.0.1:1", "NOPERM no", "OOM memory", "NOREPLICAS few", "LATE request", "") + "\r\n"
	default:
		kind, n := d.of("*", "*", "~", "%"), d.n(8)
		size, b := n, new(strings.Builder)
		if kind == "%" {
			size = 2 * n
		}
		fmt.Fprintf(b, "%s%d\r\n", kind, n)
		for range size {
			if depth > 1 {
				b.WriteString(":" + d.of("1", "0", "-1", "7") + "\r\n")
			} else {
				b.WriteString(d.reply(depth + 1))
			}
		}
		return b.String()
	}
}

// misled runs an operation of a session while replies to its scripts are others, and then one of another session.
// However Redis answers, a call ends, and the process goes on.
func misled(t *testing.T, data []byte) {
	synctest.Test(t, func(t *testing.T) {
		s, d := redistest.BubbleMini(t), &draw{data}
		ses, p := locktest.DialProxy(t, s, rlock.Config{Lease: 3 * time.Second, PollFloor: time.Second, ReleaseTimeout: time.Second, Logger: slog.New(slog.DiscardHandler)})
		run := operations[d.n(len(operations))]
		script := func(cmd []string) bool { return strings.HasPrefix(strings.ToUpper(cmd[0]), "EVAL") }
		for range 1 + d.n(4) {
			p.AnswerWith(d.reply(0), script)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		other := locktest.Dial(t, s, rlock.Config{Logger: slog.New(slog.DiscardHandler)})
		if d.once(2) { // then the session waits, in a line too
			_, h, err := rlock.New(other, "x").Lock(ctx)
			locktest.Must(t, err)
			_, rw, err := rwlock.New(other, "rw").Lock(ctx)
			locktest.Must(t, err)
			time.AfterFunc(2500*time.Millisecond, func() { _, _ = h.Unlock(), rw.Unlock() })
		}
		began := time.Now()
		_ = run(ctx, ses)
		if took := time.Since(began); took > 30*time.Second {
			t.Errorf("the call took %v", took)
		}
		h, err := lockSoon(t, other)
		locktest.Must(t, err)
		locktest.Must(t, h.Unlock())
	})
}

// lockSoon takes the lock that the operations hold, whoever has it: what is left there ends with its lease.
func lockSoon(t *testing.T, s *rlock.Session) (*rlock.Hold, error) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	_, h, err := rlock.New(s, "x").Lock(ctx)
	return h, err
}

// FuzzReplies: see misled.
func FuzzReplies(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{0, 8, 4, 0, 0, 0, 0, 0})
	f.Fuzz(misled)
}

// The same, always with the same replies.
func TestRepliesThatMakeNoSense(t *testing.T) {
	rng, data := rand.NewChaCha8([32]byte{7}), make([]byte, 60)
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end) && !t.Failed(); {
		_, _ = rng.Read(data)
		misled(t, data)
		if t.Failed() {
			t.Logf("data %q", data)
		}
	}
}
