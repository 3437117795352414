package otel_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/codes"

	"relock/locktrace"
	"relock/otel"
	"relock/rlock"
	"relock/rwlock"
)

func TestOneLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, rlock.Config{})
		m := rlock.New(s.ses, "job")
		ctx, h, err := m.Lock(t.Context())
		must(t, err)
		_, in, err := m.Lock(ctx)
		must(t, err)
		s.is(map[string]int64{
			"relock.acquires{relock.acquire.grant=redis,relock.acquire.outcome=acquired," + mutex + ",relock.nested=false}":         1,
			"relock.acquires{relock.acquire.grant=redis,relock.acquire.outcome=acquired," + mutex + ",relock.nested=true}":          1,
			"relock.acquire.duration{relock.acquire.grant=redis,relock.acquire.outcome=acquired," + mutex + ",relock.nested=false}": 1,
			"relock.acquire.duration{relock.acquire.grant=redis,relock.acquire.outcome=acquired," + mutex + ",relock.nested=true}":  1,
			"relock.attempts{relock.attempt.result=granted," + mutex + "}":                                                          2,
			"relock.holds{" + mutex + ",relock.nested=false}":                                                                       1,
			"relock.holds{" + mutex + ",relock.nested=true}":                                                                        1,
			"relock.subscription.connections{}":                                                                                     1,
			"relock.subscription.events{relock.subscription.state=connected}":                                                       1,
		})
		must(t, in.Unlock())
		must(t, h.Unlock())
		must(t, s.ses.Close())
		s.is(map[string]int64{
			"relock.hold.duration{relock.hold.end=released," + mutex + ",relock.nested=false}": 1,
			"relock.hold.duration{relock.hold.end=released," + mutex + ",relock.nested=true}":  1,
			"relock.release.duration{" + mutex + ",relock.result=ok}":                          2,
			"relock.subscription.events{relock.subscription.state=connected}":                  1,
			"relock.subscription.events{relock.subscription.state=closed}":                     1,
		}, "relock.acquires", "relock.acquire.duration", "relock.attempts")
	})
}

// Callers that wait are counted while they wait, and their calls however they end.
func TestWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, rlock.Config{})
		holder := s.redis.Session(t, rlock.Config{})
		_, h, err := rlock.New(holder, "job").Lock(t.Context())
		must(t, err)
		m := rlock.New(s.ses, "job")
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		lock := func(opts ...rlock.LockOption) {
			_, _, err := m.Lock(ctx, opts...)
			done <- err
		}
		go lock()
		go lock()
		s.redis.AwaitWaiters(t, "job", 2)
		if n := s.numbers()["relock.waiters{"+mutex+"}"]; n != 2 {
			t.Errorf("%d waiters, want 2", n)
		}
		cancel()
		for range 2 {
			if err := <-done; !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}
		if _, _, err := m.TryLock(t.Context()); !errors.Is(err, rlock.ErrNotAcquired) {
			t.Error(err)
		}
		if _, _, err := m.Lock(t.Context(), rlock.Wait(30*time.Millisecond)); !errors.Is(err, rlock.ErrNotAcquired) {
			t.Error(err)
		}
		must(t, h.Unlock())
		want := map[string]int64{}
		for outcome, n := range map[string]int64{"cancelled": 2, "refused": 1, "timeout": 1} {
			want["relock.acquires{relock.acquire.outcome="+outcome+","+mutex+",relock.nested=false}"] = n
			want["relock.acquire.duration{relock.acquire.outcome="+outcome+","+mutex+",relock.nested=false}"] = n
		}
		want["relock.subscription.connections{}"] = 1
		s.is(want, "relock.attempts", "relock.subscription.events")
		if got := s.sum("relock.acquire.duration"); got < 0.03 {
			t.Errorf("the waits add up to %v s, and one was 30 ms", got)
		}
	})
}

// Messages of the line are counted by what they say, and so is the lock that another session has given.
func TestLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, rlock.Config{}, otel.WithLockName(func(name string) string { return name }))
		holder := rlock.New(s.redis.Session(t, rlock.Config{}), "job")
		wait := func(opts ...rlock.LockOption) {
			_, h, err := holder.Lock(t.Context())
			must(t, err)
			next := make(chan error)
			go func() {
				_, h, err := rlock.New(s.ses, "job").Lock(t.Context(), opts...)
				if err == nil {
					err = h.Unlock()
				}
				next <- err
			}()
			s.redis.AwaitWaiters(t, "job", 1)
			time.Sleep(100 * time.Millisecond) // its attempts have ended by then
			must(t, h.Unlock())
			must(t, <-next)
		}
		wait()
		wait()
		wait(rlock.Lease(10 * time.Second)) // it is not given such a lock, and asks
		const job = mutex + ",relock.lock.name=job"
		s.is(map[string]int64{
			"relock.line.events{relock.line.event=granted," + job + "}":                                                   2,
			"relock.line.events{relock.line.event=called," + job + "}":                                                    1,
			"relock.acquires{relock.acquire.grant=line,relock.acquire.outcome=acquired," + job + ",relock.nested=false}":  2,
			"relock.acquires{relock.acquire.grant=redis,relock.acquire.outcome=acquired," + job + ",relock.nested=false}": 1,
		}, "relock.acquire.duration", "relock.attempts", "relock.hold.duration", "relock.release.duration", "relock.subscription.connections",
			"relock.subscription.events", "relock.renewals", "relock.renewal.duration")
	})
}

// A lock that the session keeps is counted while it is kept, and what becomes of it.
func TestKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, rlock.Config{})
		m := rlock.New(s.ses, "job", rlock.Keep(time.Second))
		lock := func(m *rlock.Mutex) {
			_, h, err := m.Lock(t.Context())
			must(t, err)
			must(t, h.Unlock())
			synctest.Wait() // the session's goroutine that tells the hooks
		}
		kept := func(want int64) {
			t.Helper()
			if n := s.numbers()["relock.keep.locks{"+mutex+"}"]; n != want {
				t.Errorf("%d locks are kept, want %d", n, want)
			}
		}
		lock(m)
		lock(m)
		kept(1)
		lock(rlock.New(s.redis.Session(t, rlock.Config{}), "job"))
		kept(0)
		other := rlock.New(s.ses, "other", rlock.Keep(time.Second))
		lock(other)
		kept(1)
		time.Sleep(1100 * time.Millisecond)
		kept(0)
		must(t, s.ses.Close())
		want := map[string]int64{}
		for event, n := range map[string]int64{"begins": 3, "reused": 1, "wanted": 1, "given back": 1, "over": 1} {
			want["relock.keep.events{relock.keep.event="+event+","+mutex+"}"] = n
		}
		s.is(want, "relock.acquires", "relock.acquire.duration", "relock.attempts", "relock.hold.duration", "relock.release.duration",
			"relock.subscription.events", "relock.renewals", "relock.renewal.duration")
	})
}

// A round of the line that is left to others is counted apart. The hook is called by hand: it depends on
// Redis's clock when there is one.
func TestOpenRound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, rlock.Config{})
		s.trace.Line(locktrace.Line{Name: "job", Kind: "mutex", What: locktrace.LineOpen})
		s.is(map[string]int64{"relock.line.events{relock.line.event=open," + mutex + "}": 1},
			"relock.subscription.connections", "relock.subscription.events")
	})
}

// However holds end, they are counted once, by reason; lost ones apart.
func TestHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, rlock.Config{Lease: 300 * time.Millisecond})
		lock := func(name string, opts ...rlock.LockOption) (context.Context, *rlock.Hold, *rlock.Mutex) {
			m := rlock.New(s.ses, name)
			ctx, h, err := m.Lock(t.Context(), opts...)
			must(t, err)
			return ctx, h, m
		}
		lost, h, m := lock("lost")
		s.redis.Lose(t, m)
		<-lost.Done()
		if err := h.Unlock(); !errors.Is(err, rlock.ErrLost) { // which does not count again
			t.Error(err)
		}
		expired, _, _ := lock("expired", rlock.Lease(50*time.Millisecond))
		<-expired.Done()
		_, abandoned, _ := lock("abandoned")
		must(t, abandoned.Abandon())
		lock("closed")
		defer func() { t.Log(s.numbers()) }()
		until(t, "a renewal", func() bool { return s.numbers()["relock.renewals{relock.result=ok}"] > 0 })
		reads := rwlock.New(s.ses, "rw")
		_, r, err := reads.RLock(t.Context())
		must(t, err)
		if n := s.numbers()["relock.holds{relock.lock.kind=read,relock.nested=false}"]; n != 1 {
			t.Errorf("%d reads are held, want 1", n)
		}
		must(t, r.Unlock())
		must(t, s.ses.Close())
		s.is(map[string]int64{
			"relock.hold.duration{relock.hold.end=lost," + mutex + ",relock.nested=false}":             1,
			"relock.hold.duration{relock.hold.end=expired," + mutex + ",relock.nested=false}":          1,
			"relock.hold.duration{relock.hold.end=abandoned," + mutex + ",relock.nested=false}":        1,
			"relock.hold.duration{relock.hold.end=closed," + mutex + ",relock.nested=false}":           1,
			"relock.hold.duration{relock.hold.end=released,relock.lock.kind=read,relock.nested=false}": 1,
			"relock.hold.lost{" + mutex + "}":                                                          1,
			"relock.release.duration{relock.lock.kind=read,relock.result=ok}":                          1,
			"relock.subscription.events{relock.subscription.state=connected}":                          1,
			"relock.subscription.events{relock.subscription.state=closed}":                             1,
		}, "relock.acquires", "relock.acquire.duration", "relock.attempts", "relock.renewals", "relock.renewal.duration")
	})
}

// An outage is told from contention, in numbers and in spans.
func TestUnavailable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, rlock.Config{})
		s.redis.Refuse("LOADING Redis is loading the dataset in memory")
		_, _, err := rlock.New(s.ses, "job").TryLock(t.Context())
		if !errors.Is(err, rlock.ErrUnavailable) {
			t.Fatal(err)
		}
		s.redis.Refuse("")
		numbers := s.numbers()
		if n := numbers["relock.acquires{relock.acquire.outcome=unavailable,"+mutex+",relock.nested=false}"]; n != 1 {
			t.Errorf("%d calls found Redis unavailable: %v", n, numbers)
		}
		if n := numbers["relock.attempts{relock.attempt.result=error,"+mutex+"}"]; n == 0 {
			t.Error("no attempt has failed")
		}
		spans := s.spans.Ended()
		if len(spans) != 1 || spans[0].Status().Code != codes.Error {
			t.Errorf("%d spans, want one with an error", len(spans))
		}
	})
}
