package rlock_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"relock/fairlock"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/latch"
	"relock/locktrace"
	"relock/rlock"
	"relock/semaphore"
)

// A session that polls subscribes to nothing, and works where that is refused: each kind of lock
// waits and is served, also the goroutines behind each other. (A waiter of a fair lock is served
// at its next heartbeat.)
func TestPollingSubscribesToNothing(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := locktest.Within(t, 30*time.Second)
		cfg := locktest.Polls()
		cfg.QueueLease = 200 * time.Millisecond
		ses, p := locktest.DialProxy(t, s, cfg)
		other := locktest.Dial(t, s, rlock.Config{})
		type locker interface {
			Lock(context.Context, ...rlock.LockOption) (context.Context, *rlock.Hold, error)
		}
		for _, pair := range [][2]locker{
			{rlock.New(other, "plain"), rlock.New(ses, "plain")},
			{fairlock.New(other, "fair"), fairlock.New(ses, "fair")},
		} {
			_, h, err := pair[0].Lock(ctx)
			locktest.Must(t, err)
			done := make(chan error, 3)
			for range cap(done) {
				go func() {
					_, h, err := pair[1].Lock(ctx)
					done <- errors.Join(err, h.Unlock())
				}()
			}
			locktest.Must(t, h.Unlock())
			for range cap(done) {
				locktest.Must(t, locktest.Get(t, done, 10*time.Second, "its turn"))
			}
		}
		permits := semaphore.New(other, "permits", 1)
		_, h, err := permits.Acquire(ctx, 1)
		locktest.Must(t, err)
		l := latch.New(other, "latch")
		_, err = l.TrySet(ctx, 1)
		locktest.Must(t, err)
		done := make(chan error, 2)
		go func() {
			_, h, err := semaphore.New(ses, "permits", 1).Acquire(ctx, 1)
			done <- errors.Join(err, h.Release())
		}()
		go func() { done <- latch.New(ses, "latch").Await(ctx) }()
		locktest.Must(t, h.Release())
		locktest.Must(t, l.CountDown(ctx))
		locktest.Must(t, locktest.Get(t, done, 10*time.Second, "the latch or the permit"))
		locktest.Must(t, locktest.Get(t, done, 10*time.Second, "the latch or the permit"))
		if p.Count("SUBSCRIBE", "SSUBSCRIBE") != 0 {
			t.Errorf("it has subscribed: %q", p.Log())
		}
		if got := s.Channels(t); len(got) != 1 { // that of the session that listens
			t.Errorf("channels: %q", got)
		}
	})
}

// A waiter asks as its Backoff says: after each refusal, with the number of refusals; at the end
// of the holder's lease if that is sooner; and no more when the Backoff gives up.
func TestPollingFollowsTheBackoff(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx := locktest.Within(t, time.Minute)
		var told []int
		cfg := locktest.Polls()
		cfg.Polling = func(n int) time.Duration {
			told = append(told, n)
			if n == 4 {
				return -1
			}
			return time.Duration(n) * 50 * time.Millisecond
		}
		ses, other := locktest.Dial(t, s, cfg), locktest.Dial(t, s, locktest.Polls())
		defer func() { locktest.Must(t, errors.Join(ses.Close(), other.Close())) }()
		_, h, err := rlock.New(other, "x").Lock(ctx)
		locktest.Must(t, err)
		told = nil // New has asked for the first sleep
		began := time.Now()
		_, _, err = rlock.New(ses, "x").Lock(ctx)
		locktest.Is(t, "Lock", err, rlock.ErrNotAcquired)
		if took := time.Since(began); took < 300*time.Millisecond || took > 300*time.Millisecond+s.Slack() || !slices.Equal(told, []int{1, 2, 3, 4}) {
			t.Errorf("gave up after %v, having asked for the sleeps %v", took, told)
		}
		locktest.Must(t, h.Unlock())

		cfg.Polling = locktest.Every(time.Hour)
		late := locktest.Dial(t, s, cfg)
		defer func() { locktest.Must(t, late.Close()) }()
		_, h, err = rlock.New(other, "x").Lock(ctx, rlock.Lease(500*time.Millisecond))
		locktest.Must(t, err)
		locktest.Must(t, h.Abandon())
		_, h, err = rlock.New(late, "x").Lock(ctx)
		locktest.Must(t, err)
		locktest.Must(t, h.Unlock())
	})
}

// A session that polls leaves the lock to the others after a time slice, although its own callers
// wait without end: another session that polls gets in.
func TestPollingSessionsAlternate(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx, cancel := context.WithCancel(locktest.Within(t, 60*time.Second))
		cfg := locktest.Polls()
		cfg.Polling = locktest.Every(20 * time.Millisecond)
		modest := rlock.New(locktest.Dial(t, s, cfg), "x")
		var sections, waiting atomic.Int64
		cfg.Trace = &rlock.Trace{
			Waiting: func(context.Context, locktrace.Waiting) { waiting.Add(1) },
			AcquireEnd: func(_ context.Context, e locktrace.AcquireEnd) {
				if e.Waited {
					waiting.Add(-1)
				}
			},
		}
		greedy := locktest.Dial(t, s, cfg)
		done := make(chan struct{})
		for range 4 {
			go func() {
				defer func() { done <- struct{}{} }()
				for ctx.Err() == nil {
					_ = rlock.New(greedy, "x").Do(ctx, func(ctx context.Context) error {
						sections.Add(1)
						for waiting.Load() == 0 && ctx.Err() == nil { // else it would be given back to Redis
							runtime.Gosched()
						}
						return nil
					})
				}
			}()
		}
		for range 6 {
			n := sections.Load()
			redistest.Eventually(t, 10*time.Second, "the others to have the lock", func() bool { return sections.Load() > n+100 })
			_, h, err := modest.TryLock(ctx, rlock.Retry(rlock.Limit(locktest.Every(20*time.Millisecond), 60)))
			locktest.Must(t, err)
			locktest.Must(t, h.Unlock())
		}
		cancel()
		for range 4 {
			<-done
		}
	})
}

// retrying is a session that listens, and counts its attempts, beside one that holds x.
func retrying(t *testing.T, s *redistest.Server) (ses, other *rlock.Session, attempts *atomic.Int32, h *rlock.Hold) {
	t.Helper()
	attempts = new(atomic.Int32)
	cfg := rlock.Config{Lease: time.Hour, PollFloor: time.Hour}
	cfg.Trace = &rlock.Trace{Attempt: func(locktrace.Attempt) { attempts.Add(1) }}
	ses, other = locktest.Dial(t, s, cfg), locktest.Dial(t, s, locktest.Polls())
	_, h, err := rlock.New(other, "x").Lock(locktest.Within(t, time.Minute))
	locktest.Must(t, err)
	attempts.Store(0)
	return ses, other, attempts, h
}

// Retry makes a TryLock, or a Lock, a series of attempts, in a session that listens too.
func TestRetry(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx := locktest.Within(t, time.Minute)
		ses, other, attempts, h := retrying(t, s)
		defer func() { locktest.Must(t, errors.Join(h.Unlock(), ses.Close(), other.Close())) }()
		m := rlock.New(ses, "x")
		for _, lock := range []func(context.Context, ...rlock.LockOption) (context.Context, *rlock.Hold, error){m.TryLock, m.Lock} {
			attempts.Store(0)
			began := time.Now()
			_, _, err := lock(ctx, rlock.Retry(rlock.Limit(locktest.Every(50*time.Millisecond), 5)))
			locktest.Is(t, "five attempts", err, rlock.ErrNotAcquired)
			if took := time.Since(began); attempts.Load() != 5 || took < 200*time.Millisecond {
				t.Errorf("%d attempts in %v", attempts.Load(), took)
			}
			attempts.Store(0)
			_, _, err = lock(ctx, rlock.Retry(locktest.Every(40*time.Millisecond)), rlock.Wait(100*time.Millisecond))
			locktest.Is(t, "Wait", err, rlock.ErrNotAcquired)
			if n := attempts.Load(); n < 1 || n > 3 {
				t.Errorf("%d attempts in 100 ms", n)
			}
			short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
			_, _, err = lock(short, rlock.Retry(locktest.Every(time.Hour)))
			cancel()
			locktest.Is(t, "the end of ctx", err, rlock.ErrNotAcquired, context.DeadlineExceeded)
		}
		_, _, err := m.TryLock(ctx, rlock.Retry(nil))
		locktest.Is(t, "Retry(nil)", err, rlock.ErrArgument)
		_, _, err = m.TryLock(ctx, rlock.Retry(rlock.Limit(nil, 3)))
		locktest.Is(t, "Limit(nil, 3)", err, rlock.ErrArgument)
	})
}

// A series of attempts ends with the first that succeeds, also at a fair lock.
func TestRetrySucceeds(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx := locktest.Within(t, time.Minute)
		ses, other, attempts, h := retrying(t, s)
		defer func() { locktest.Must(t, errors.Join(ses.Close(), other.Close())) }()
		_, h2, err := fairlock.New(other, "fair").Lock(ctx)
		locktest.Must(t, err)
		got := map[string]chan error{"plain": make(chan error, 1), "fair": make(chan error, 1)}
		for kind, lock := range map[string]func(context.Context, ...rlock.LockOption) (context.Context, *rlock.Hold, error){
			"plain": rlock.New(ses, "x").TryLock, "fair": fairlock.New(ses, "fair").TryLock,
		} {
			go func() {
				_, h, err := lock(ctx, rlock.Retry(locktest.Every(20*time.Millisecond)))
				got[kind] <- errors.Join(err, h.Unlock())
			}()
		}
		redistest.Eventually(t, 10*time.Second, "both to be refused", func() bool { return attempts.Load() >= 4 })
		locktest.Must(t, errors.Join(h.Unlock(), h2.Unlock()))
		for kind, c := range got {
			locktest.Must(t, locktest.Get(t, c, 10*time.Second, "an attempt at the "+kind+" lock to succeed"))
		}
	})
}

// Close ends a series of attempts, however long it sleeps.
func TestRetryEndsWithTheSession(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ses, other, attempts, h := retrying(t, s)
		defer func() { locktest.Must(t, errors.Join(h.Unlock(), other.Close())) }()
		closed := make(chan error, 1)
		go func() {
			_, _, err := rlock.New(ses, "x").TryLock(locktest.Within(t, time.Minute), rlock.Retry(locktest.Every(time.Hour)))
			closed <- err
		}()
		redistest.Eventually(t, 10*time.Second, "it to be refused", func() bool { return attempts.Load() > 0 })
		locktest.Must(t, ses.Close())
		locktest.Is(t, "Close", locktest.Get(t, closed, 10*time.Second, "the end of the retries"), rlock.ErrClosed)
	})
}

// The strategies: how long they sleep, and when they give up.
func TestBackoffs(t *testing.T) {
	ms := time.Millisecond
	for _, c := range []struct {
		what string
		b    rlock.Backoff
		n    int
		most time.Duration // it is between half of that and that
	}{
		{"linear", rlock.Linear(100 * ms), 1, 100 * ms},
		{"linear", rlock.Linear(100 * ms), 1000, 100 * ms},
		{"linear, too short", rlock.Linear(0), 1, ms},
		{"exponential", rlock.Exponential(10*ms, time.Second), 1, 10 * ms},
		{"exponential", rlock.Exponential(10*ms, time.Second), 3, 40 * ms},
		{"exponential", rlock.Exponential(10*ms, time.Second), 8, time.Second},
		{"exponential, far", rlock.Exponential(10*ms, time.Second), 1 << 40, time.Second},
		{"exponential, most below first", rlock.Exponential(time.Second, 10*ms), 1, 10 * ms},
		{"limited", rlock.Limit(rlock.Linear(100*ms), 3), 2, 100 * ms},
	} {
		seen := map[time.Duration]bool{}
		for range 100 {
			d := c.b(c.n)
			if seen[d] = true; d < c.most/2 || d > c.most {
				t.Fatalf("%s: the sleep no. %d is %v, want between %v and %v", c.what, c.n, d, c.most/2, c.most)
			}
		}
		if len(seen) < 50 {
			t.Errorf("%s: no jitter: %v", c.what, seen)
		}
	}
	for _, n := range []int{3, 4, 1000} {
		if d := rlock.Limit(rlock.Linear(100*ms), 3)(n); d >= 0 {
			t.Errorf("three attempts, and a sleep of %v before the next one", d)
		}
	}
}
