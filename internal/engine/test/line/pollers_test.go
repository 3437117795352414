package line_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"relock/fairlock"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// pollPause is for how long the callers of these tests sleep between two attempts.
const pollPause = 30 * time.Millisecond

// A poller takes a lock, and sleeps between its attempts.
type poller func(ctx context.Context, name string) (context.Context, *rlock.Hold, error)

// A duel is a kind of lock whose sessions use it without a pause, and one of callers that sleep between their attempts.
type duel struct{ busy, sleepy opener }

var duels = map[string]duel{
	"plain": {plainLock, plainLock}, "write": {writeLock, writeLock}, "read beside writers": {writeLock, readLock},
}

// pollers are the ways to do that, over a network on which a round trip takes so long.
func pollers(t *testing.T, s *redistest.Server, trip time.Duration, open opener) map[string]poller {
	t.Helper()
	cfg := locktest.Polls()
	cfg.Polling = locktest.Every(pollPause)
	polling, hearing := farDial(t, s, trip, cfg), farDial(t, s, trip, rlock.Config{PollFloor: time.Hour})
	retry := rlock.Retry(locktest.Every(pollPause))
	return map[string]poller{
		"a session with Polling": func(ctx context.Context, name string) (context.Context, *rlock.Hold, error) {
			return open(polling, name).Lock(ctx)
		},
		"TryLock with Retry": func(ctx context.Context, name string) (context.Context, *rlock.Hold, error) {
			return open(hearing, name).TryLock(ctx, retry)
		},
		"Lock with Retry": func(ctx context.Context, name string) (context.Context, *rlock.Hold, error) {
			return open(hearing, name).Lock(ctx, retry)
		},
	}
}

// getsIn takes a contested lock five times by a poller, and returns how long the longest of these took.
func (r *contest) getsIn(lock poller) (longest time.Duration) {
	r.t.Helper()
	for range 5 {
		began := time.Now()
		ctx, cancel := context.WithTimeout(r.ctx, time.Second+r.s.Slack())
		_, h, err := lock(ctx, r.name)
		cancel()
		if err != nil {
			r.t.Fatalf("after %v and %d turns of the others: %v", time.Since(began), r.sections.Load(), err)
		}
		longest = max(longest, time.Since(began))
		must(r.t, h.Unlock())
		time.Sleep(about(7 * time.Millisecond)) // so that the next wait begins at another moment
	}
	return longest
}

// Four sessions use a lock without a pause: somebody waits in the line at each release, and the key is never gone. A
// caller that sleeps between its attempts hears of nothing. It has the lock within a second all the same, also where
// a round trip is longer than a section, and the sessions of the line keep three quarters of their share (scenario 36).
func TestACallerThatSleepsBetweenAttemptsGetsInBesideALine(t *testing.T) {
	t.Parallel()
	for kind, d := range duels {
		t.Run(kind, func(t *testing.T) {
			redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
				for _, trip := range []time.Duration{0, 5 * time.Millisecond, 20 * time.Millisecond} {
					for what, lock := range pollers(t, s, trip, d.sleepy) {
						r := newContest(t, s)
						r.lock = d.busy
						r.join(4, time.Millisecond)
						r.turns(50)
						began, before := time.Now(), r.sections.Load()
						longest := r.getsIn(lock)
						took, n := time.Since(began), r.sections.Load()-before
						r.end()
						t.Logf("%s, round trip %v: it had the lock within %v; the others %d times in %v", what, trip, longest, n, took)
						if share := float64(n) * float64(time.Millisecond) / float64(took); s.IsMini() && share < 0.75 {
							t.Errorf("%s, round trip %v: the sessions of the line had the lock for %.2f of the time", what, trip, share)
						}
					}
				}
			})
		})
	}
}

// A session that may not subscribe stands in no line, for nobody can tell it anything: it asks by the clock. It has the
// lock again and again beside four sessions that use that without a pause, and they go on (scenario 37).
func TestASessionThatMayNotSubscribeGetsItsTurns(t *testing.T) {
	t.Parallel()
	for kind, d := range duels {
		t.Run(kind, func(t *testing.T) {
			redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
				_, p := locktest.DialProxy(t, s, rlock.Config{})
				p.RefuseCommand("SUBSCRIBE", "NOPERM this user has no permissions to access one of the channels")
				deaf := locktest.DialVia(t, s, p, rlock.Config{})
				r := newContest(t, s)
				r.lock = d.busy
				r.join(4, time.Millisecond)
				r.turns(50)
				before := r.sections.Load()
				longest := r.getsIn(func(ctx context.Context, name string) (context.Context, *rlock.Hold, error) {
					return d.sleepy(deaf, name).Lock(ctx)
				})
				t.Logf("it had the lock within %v; the others had it %d times", longest, r.sections.Load()-before)
				if entries := entriesOf(t, s, r.name, deaf); len(entries) > 0 {
					t.Errorf("it stands in the line: %q", entries)
				}
				var turns atomic.Int64
				r.loop(d.sleepy(deaf, r.name), time.Millisecond, &turns)
				before = r.sections.Load()
				redistest.Eventually(t, 30*time.Second, "turns of the deaf session in a loop", func() bool { return turns.Load() >= 10 })
				if n := r.sections.Load() - before; s.IsMini() && n < 50 {
					t.Errorf("the others had the lock %d times beside 10 turns of it", n)
				}
				r.end()
				locktest.NothingLeft(t, s, deaf)
			})
		})
	}
}

// A session that polls stands in the line of a fair lock, and hears nothing: it learns that it has the lock by its
// Backoff, for as long as the others would wait for nothing. One whose Backoff grows asks the less often.
func TestAPollerInAFairLineLearnsOfItsGrantByItsBackoff(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx, name := within(t, time.Minute), redistest.Name(t)
		cfg := rlock.Config{PollFloor: time.Hour, QueueLease: 20 * time.Second, Polling: locktest.Every(pollPause)}
		busy := fairlock.New(dial(t, s, rlock.Config{}), name)
		polls := fairlock.New(dial(t, s, cfg), name)
		for range 5 {
			_, h, err := busy.Lock(ctx)
			must(t, err)
			in := make(chan *rlock.Hold, 1)
			go func() {
				_, h, err := polls.Lock(ctx)
				must(t, err)
				in <- h
			}()
			redistest.Eventually(t, 10*time.Second, "the poller in the line", func() bool {
				n, err := s.Do(t, "ZCARD", "relock_line1:{"+name+"}").ToInt64()
				must(t, err)
				return n > 0
			})
			time.Sleep(about(100 * time.Millisecond)) // at any moment between two of its looks
			began := time.Now()
			must(t, h.Unlock())
			h = locktest.Get(t, in, 10*time.Second, "the poller inside")
			if took := time.Since(began); took > pollPause+s.Slack() {
				t.Errorf("it has learned after %v that it has the lock, and looks every %v", took, pollPause)
			}
			must(t, h.Unlock())
		}
	})
}

// The looks of a poller in a fair line are as far apart as its Backoff says, which is told how often it has looked.
func TestAPollerInAFairLineLooksAsOftenAsItsBackoffSays(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx, name := within(t, time.Minute), redistest.Name(t)
		_, h, err := fairlock.New(dial(t, s, rlock.Config{}), name).Lock(ctx)
		must(t, err)
		told := make(chan int, 1000)
		cfg := rlock.Config{PollFloor: time.Hour, QueueLease: 20 * time.Second, Polling: func(n int) time.Duration {
			told <- n
			return time.Duration(n) * 10 * time.Millisecond
		}}
		polls := dial(t, s, cfg)
		in := make(chan *rlock.Hold, 1)
		go func() {
			_, h, err := fairlock.New(polls, name).Lock(ctx)
			must(t, err)
			in <- h
		}()
		for want := range 6 { // the first when the session began
			if n := locktest.Get(t, told, 10*time.Second, "a look"); n != want+1 {
				t.Errorf("its Backoff was asked for pause %d, want %d", n, want+1)
			}
		}
		must(t, h.Unlock())
		must(t, locktest.Get(t, in, 10*time.Second, "the poller inside").Unlock())
	})
}

// The Backoff of a session that polls does not return: it learns of its grant by its signs of life all the same.
func TestAPollerInAFairLineNeedsNoBackoffThatReturns(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx, name := within(t, time.Minute), redistest.Name(t)
		_, h, err := fairlock.New(dial(t, s, rlock.Config{}), name).Lock(ctx)
		must(t, err)
		asked, ends := make(chan struct{}, 1000), make(chan struct{})
		polls := dial(t, s, rlock.Config{QueueLease: 500 * time.Millisecond, Polling: func(n int) time.Duration {
			if n > 1 {
				asked <- struct{}{}
				<-ends
			}
			return time.Millisecond
		}})
		defer close(ends)
		in := make(chan *rlock.Hold, 1)
		go func() {
			_, h, err := fairlock.New(polls, name).Lock(ctx)
			must(t, err)
			in <- h
		}()
		locktest.Get(t, asked, 10*time.Second, "the Backoff")
		must(t, h.Unlock())
		must(t, locktest.Get(t, in, 10*time.Second, "the poller inside").Unlock())
	})
}
