package latch_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/latch"
	"relock/rlock"
)

func TestMain(m *testing.M) {
	redistest.Main(m, "lua", "../internal/redis/lua")
}

// Short names for what the tests of all kinds of lock share.
var (
	dial   = locktest.Dial
	within = locktest.Within
	must   = locktest.Must
	is     = locktest.Is
)

var src = latch.ScriptSources()

// patience is for what takes no time, but must not fail on a machine that is busy.
const patience = 20 * time.Second

// slow is a Config in which only messages wake a waiter within a test.
func slow() rlock.Config { return rlock.Config{PollFloor: time.Hour} }

// await begins to wait.
func await(ctx context.Context, l *latch.Latch, opts ...rlock.LockOption) <-chan error {
	c := make(chan error, 1)
	go func() { c <- l.Await(ctx, opts...) }()
	return c
}

func opens(t testing.TB, c <-chan error) {
	t.Helper()
	must(t, locktest.Get(t, c, patience, "the latch to open"))
}

func waits(t testing.TB, c <-chan error) {
	t.Helper()
	select {
	case err := <-c:
		t.Fatalf("a waiter does not wait any more: %v", err)
	default:
	}
}

func counts(t testing.TB, ctx context.Context, l *latch.Latch, want int) {
	t.Helper()
	n, err := l.Count(ctx)
	must(t, err)
	if n != want {
		t.Fatalf("the count is %d, want %d", n, want)
	}
}

func sets(t testing.TB, ctx context.Context, l *latch.Latch, n int, want bool) {
	t.Helper()
	if ok, err := l.TrySet(ctx, n); ok != want || err != nil {
		t.Fatalf("TrySet(%d): %v, %v; want %v", n, ok, err, want)
	}
}

// The operations of Redisson's RCountDownLatch, one after the other, and again.
func TestLatch(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ses := dial(t, s, slow())
		ctx := within(t, patience)
		l := latch.New(ses, "x")
		for range 2 {
			counts(t, ctx, l, 0)
			must(t, l.Await(ctx))
			must(t, l.CountDown(ctx)) // does nothing
			sets(t, ctx, l, 2, true)
			sets(t, ctx, l, 5, false)
			counts(t, ctx, l, 2)
			is(t, "Await", l.Await(ctx, rlock.Wait(0)), rlock.ErrNotAcquired)
			must(t, l.CountDown(ctx))
			is(t, "Await", l.Await(ctx, rlock.Wait(20*time.Millisecond)), rlock.ErrNotAcquired)
			counts(t, ctx, l, 1)
			must(t, l.CountDown(ctx))
			must(t, l.Await(ctx))
		}
		for _, key := range s.Keys(t) {
			ttl, err := s.Do(t, "PTTL", key).AsInt64()
			must(t, err)
			if !strings.HasPrefix(key, "relock_request:{x}:") || ttl < 1 {
				t.Errorf("%s is left, with a TTL of %d", key, ttl)
			}
		}
	})
}

// All waiters of all sessions pass when the count reaches 0, and none before; a waiter of
// another latch goes on waiting. Nothing stays subscribed.
func TestAllWaitersPass(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, time.Minute)
		trace, waiting := locktest.Waiting()
		cfg := slow()
		cfg.Trace = trace
		ses, other := dial(t, s, cfg), dial(t, s, cfg)
		mine, theirs, foreign := latch.New(ses, "x"), latch.New(other, "x"), latch.New(ses, "y")
		sets(t, ctx, mine, 3, true)
		sets(t, ctx, foreign, 1, true)
		all := []<-chan error{await(ctx, foreign)}
		for range 20 {
			all = append(all, await(ctx, mine), await(ctx, theirs))
		}
		for range all {
			locktest.Get(t, waiting, patience, "a waiter")
		}
		must(t, mine.CountDown(ctx))
		must(t, theirs.CountDown(ctx))
		for _, c := range all {
			waits(t, c)
		}
		must(t, theirs.CountDown(ctx))
		for _, c := range all[1:] {
			opens(t, c)
		}
		waits(t, all[0])
		must(t, foreign.CountDown(ctx))
		opens(t, all[0])
		redistest.Eventually(t, patience, "no subscription but the sessions' own", func() bool {
			return !strings.Contains(strings.Join(s.Channels(t), " "), "countdownlatch")
		})
		must(t, ses.Close())
		must(t, other.Close())
	})
}

// A waiter that gives up says why; a closed session says so, to waiters too.
func TestGivingUp(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, patience)
		trace, waiting := locktest.Waiting()
		cfg := slow()
		cfg.Trace = trace
		ses := dial(t, s, cfg)
		l := latch.New(ses, "x")
		sets(t, ctx, l, 1, true)
		short, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
		defer cancel()
		err := l.Await(short)
		if is(t, "deadline", err, context.DeadlineExceeded); len(waiting) > 0 { // else it was over before
			is(t, "deadline", err, rlock.ErrNotAcquired)
		}
		for what, err := range map[string]error{
			"Await": l.Await(short), "CountDown": l.CountDown(short),
			"TrySet": second(l.TrySet(short, 1)), "Count": second(l.Count(short)),
		} {
			if is(t, what, err, context.DeadlineExceeded); errors.Is(err, rlock.ErrNotAcquired) {
				t.Errorf("%s: %v", what, err)
			}
		}
		counts(t, ctx, l, 1)
		for len(waiting) > 0 {
			<-waiting
		}
		c := await(ctx, l)
		locktest.Get(t, waiting, patience, "the waiter")
		must(t, ses.Close())
		is(t, "the waiter", locktest.Get(t, c, patience, "its end"), rlock.ErrClosed)
		for what, err := range map[string]error{
			"Await": l.Await(ctx), "CountDown": l.CountDown(ctx),
			"TrySet": second(l.TrySet(ctx, 1)), "Count": second(l.Count(ctx)),
		} {
			is(t, what, err, rlock.ErrClosed)
		}
	})
}

func second[T any](_ T, err error) error { return err }

// The wrong arguments are errors that change nothing; wrong receivers do not panic.
func TestBadInput(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, patience)
		ses := dial(t, s, slow())
		l := latch.New(ses, "x")
		var none *latch.Latch
		var noContext context.Context
		for what, c := range map[string]struct {
			l    *latch.Latch
			want error
		}{
			"nil": {none, rlock.ErrArgument}, "zero": {new(latch.Latch), rlock.ErrArgument},
			"no session": {latch.New(nil, "x"), rlock.ErrArgument}, "no name": {latch.New(ses, ""), rlock.ErrName},
		} {
			is(t, what, c.l.Await(ctx), c.want)
			is(t, what, c.l.CountDown(ctx), c.want)
			is(t, what, second(c.l.TrySet(ctx, 1)), c.want)
			is(t, what, second(c.l.Count(ctx)), c.want)
		}
		for _, n := range []int{0, -1, 1<<53 + 1} {
			is(t, "TrySet", second(l.TrySet(ctx, n)), rlock.ErrArgument)
		}
		is(t, "Wait", l.Await(ctx, rlock.Wait(-1)), rlock.ErrArgument)
		is(t, "Lease", l.Await(ctx, rlock.Lease(time.Second)), rlock.ErrArgument)
		is(t, "nil option", l.Await(ctx, nil), rlock.ErrArgument)
		is(t, "nil context", l.Await(noContext), rlock.ErrArgument)
		is(t, "nil context", l.CountDown(noContext), rlock.ErrArgument)
		is(t, "nil context", second(l.Count(noContext)), rlock.ErrArgument)
		if keys := s.Keys(t); len(keys) != 0 {
			t.Errorf("keys: %q", keys)
		}
		must(t, s.Do(t, "HSET", "x", "a", "1").Error())
		for what, err := range map[string]error{
			"Await": l.Await(ctx), "CountDown": l.CountDown(ctx),
			"TrySet": second(l.TrySet(ctx, 1)), "Count": second(l.Count(ctx)),
		} {
			if err == nil || !strings.Contains(err.Error(), "WRONGTYPE") {
				t.Errorf("%s of a hash: %v", what, err)
			}
		}
	})
}
