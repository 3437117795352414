package relock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"relock/fairlock"
	"relock/internal/test/redistest"
	"relock/internal/test/slownet"
	"relock/rlock"
	"relock/rwlock"
	"relock/semaphore"
)

// The benchmarks in this file have one goroutine in each of n sessions, which are as n processes:
// each has its own connections, and nothing passes in memory. An iteration is one window of two
// seconds, or of RELOCK_SESSIONS_WINDOW, and longer where sections are long; -benchtime says how
// many.

// sessionsKinds are what they compare.
var sessionsKinds = []struct {
	name string
	at   int // how many are inside at a time; 0: one
	open func(s *rlock.Session, name string) locker
}{
	{"rlock", 0, func(s *rlock.Session, name string) locker { return mutexLocker(rlock.New(s, name)) }},
	{"fairlock", 0, func(s *rlock.Session, name string) locker { return mutexLocker(fairlock.New(s, name).Mutex) }},
	{"rwlock-write", 0, func(s *rlock.Session, name string) locker {
		m := rwlock.New(s, name)
		return func(ctx context.Context) (func() error, error) {
			_, h, err := m.Lock(ctx)
			return h.Unlock, err
		}
	}},
	{"rwlock-mixed", 1000, func(s *rlock.Session, name string) locker { // one of ten is a writer
		m, n := rwlock.New(s, name), rand.IntN(10)
		return func(ctx context.Context) (func() error, error) {
			lock := m.RLock
			if n++; n%10 == 0 {
				lock = m.Lock
			}
			_, h, err := lock(ctx)
			return h.Unlock, err
		}
	}},
	{"semaphore", 4, func(s *rlock.Session, name string) locker {
		m := semaphore.New(s, name, 4)
		return func(ctx context.Context) (func() error, error) {
			_, p, err := m.Acquire(ctx, 1)
			return p.Release, err
		}
	}},
}

// A locker acquires, and returns what releases.
type locker func(ctx context.Context) (release func() error, err error)

func mutexLocker(m *rlock.Mutex) locker {
	return func(ctx context.Context) (func() error, error) {
		_, h, err := m.Lock(ctx)
		return h.Unlock, err
	}
}

// BenchmarkSessions is what one lock costs when n sessions want it all the time. The figures, for
// each acquisition and its release:
//
//   - scripts/acq are the scripts that the sessions send, and inner/acq what these scripts call.
//     subs/acq are the subscriptions that come and go.
//   - server-µs/acq is the server's CPU time by its own account.
//   - x-alone is the rate as a part of what one session makes in the same run, a quarter of a
//     second on either side of each window.
//   - jain is Jain's index of the sessions' shares (1: all alike). starved are the sessions that
//     got nothing, and %-served the others.
//   - µs-p99 and µs-max are waits, with those that the end of a window cuts off. p99-turns is the
//     first as a part of the time in which each session has one turn.
//   - %-possible is the rate as a part of what the sections' length allows.
func BenchmarkSessions(b *testing.B) {
	for _, kind := range sessionsKinds {
		b.Run(kind.name, func(b *testing.B) {
			for _, n := range []int{1, 4, 16, 32, 64, 128, 512} {
				b.Run(fmt.Sprint("n=", n), func(b *testing.B) {
					for _, section := range []time.Duration{0, 5 * time.Millisecond} {
						b.Run(fmt.Sprint("section=", section), func(b *testing.B) { inSessions(b, kind.at, kind.open, n, section) })
					}
				})
			}
		})
	}
}

// sessionsWindow is how long one window is: long enough for six turns of each session, since
// shares that are small whole numbers differ even where the lock is fair.
func sessionsWindow(b *testing.B, n int, section time.Duration) time.Duration {
	d := usualWindow
	if text := os.Getenv("RELOCK_SESSIONS_WINDOW"); text != "" {
		var err error
		if d, err = time.ParseDuration(text); err != nil {
			b.Fatal(err)
		}
	}
	return max(d, time.Duration(6*n)*(section+section/8)) // a sleep takes longer than it is told
}

const (
	aloneEachSide = 250 * time.Millisecond // that one session is measured, before a window and behind it
	sessionsStart = 250 * time.Millisecond // that the sessions compete before a window begins
)

func inSessions(b *testing.B, at int, open func(*rlock.Session, string) locker, n int, section time.Duration) {
	s := redistest.Real(b)
	var lockers []locker
	for _, ses := range openMany(b, n, s.Option()) {
		lockers = append(lockers, open(ses, "x"))
	}
	window := sessionsWindow(b, n, section)
	crowd := newCrowd(s, at, lockers, section)
	alone := newCrowd(s, at, lockers[:1], section)
	alone.run(b, aloneEachSide) // nothing is loaded or made for the first time from here on
	alone = newCrowd(s, at, lockers[:1], section)
	for b.Loop() {
		alone.run(b, aloneEachSide)
		crowd.run(b, window)
		alone.run(b, aloneEachSide)
	}
	crowd.report(b)
	b.ReportMetric(crowd.result.Rate()/alone.result.Rate(), "x-alone")
	b.ReportMetric(alone.result.Rate(), "alone/s")
}

// BenchmarkHandOverFar is how long a lock takes from session to session through a network that
// takes its time, when n sessions want it all the time. round-trips is the time of an acquisition
// in round trips of a plain GET through the same proxy, before each window and behind it.
func BenchmarkHandOverFar(b *testing.B) {
	for _, kind := range sessionsKinds {
		b.Run(kind.name, func(b *testing.B) {
			for _, trip := range []time.Duration{time.Millisecond, 3 * time.Millisecond} {
				for _, n := range []int{2, 4, 16} {
					b.Run(fmt.Sprint("trip=", trip, "/n=", n), func(b *testing.B) { farSessions(b, kind.at, kind.open, n, trip) })
				}
			}
		})
	}
}

func farSessions(b *testing.B, at int, open func(*rlock.Session, string) locker, n int, trip time.Duration) {
	s := redistest.Real(b)
	far := s.Option()
	far.InitAddress = []string{slownet.New(b, s.Addr, trip).Addr()}
	var lockers []locker
	for _, ses := range openMany(b, n, far) {
		lockers = append(lockers, open(ses, "x"))
	}
	plain := s.Client(b, func(o *rueidis.ClientOption) { o.InitAddress = far.InitAddress })
	ctx := context.Background()
	trips, took := 0, time.Duration(0)
	travel := func() {
		began := time.Now()
		for ; time.Since(began) < aloneEachSide; trips++ {
			if err := plain.Do(ctx, plain.B().Get().Key("nothing").Build()).Error(); !rueidis.IsRedisNil(err) {
				b.Fatal(err)
			}
		}
		took += time.Since(began)
	}
	newCrowd(s, at, lockers[:1], 0).run(b, aloneEachSide) // nothing is loaded for the first time from here on
	crowd := newCrowd(s, at, lockers, 0)
	for b.Loop() {
		travel()
		crowd.run(b, sessionsWindow(b, n, 0))
		travel()
	}
	crowd.report(b)
	one := took.Seconds() / float64(trips)
	b.ReportMetric(1/crowd.result.Rate()/one, "round-trips")
	b.ReportMetric(1e6*one, "µs-round-trip")
}

// openMany opens n sessions at once, and closes them at once in the end.
func openMany(b *testing.B, n int, opt rueidis.ClientOption) []*rlock.Session {
	b.Helper()
	sessions := make([]*rlock.Session, n)
	errs := make([]error, n)
	each := func(do func(i int)) {
		var wg sync.WaitGroup
		next := atomic.Int64{}
		for range min(n, 32) {
			wg.Go(func() {
				for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
					do(i)
				}
			})
		}
		wg.Wait()
	}
	b.Cleanup(func() {
		each(func(i int) {
			if sessions[i] != nil {
				errs[i] = sessions[i].Close()
			}
		})
		if err := errors.Join(errs...); err != nil {
			b.Error(err)
		}
	})
	each(func(i int) { sessions[i], errs[i] = rlock.Dial(context.Background(), opt, rlock.Config{}) })
	if err := errors.Join(errs...); err != nil {
		b.Fatal(err)
	}
	return sessions
}
