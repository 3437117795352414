package rwlock_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/rwlock"
)

// rounding is by how much a read lease may end late: its end is a whole millisecond, rounded
// up when it is set, and again in a downgrade.
const rounding = 2 * time.Millisecond

// lockFunc is RLock, Lock and their twins.
type lockFunc = func(context.Context, ...rlock.LockOption) (context.Context, *rlock.Hold, error)

// locked is the outcome of a Lock in a goroutine.
type locked struct {
	ctx  context.Context
	hold *rlock.Hold
	err  error
}

func goLock(ctx context.Context, lock lockFunc, opts ...rlock.LockOption) <-chan locked {
	c := make(chan locked, 1)
	go func() {
		section, h, err := lock(ctx, opts...)
		c <- locked{section, h, err}
	}()
	return c
}

// in waits until a goLock has succeeded.
func in(t testing.TB, c <-chan locked, d time.Duration, what string) locked {
	t.Helper()
	l := locktest.Get(t, c, d, what)
	must(t, l.err)
	return l
}

// notIn checks that a goLock has not returned.
func notIn(t testing.TB, c <-chan locked, what string) {
	t.Helper()
	select {
	case l := <-c:
		t.Fatalf("%s: Lock returned, with error %v", what, l.err)
	default:
	}
}

// hold takes a lock that must be free, and returns it.
func hold(t testing.TB, ctx context.Context, lock lockFunc, opts ...rlock.LockOption) (context.Context, *rlock.Hold) {
	t.Helper()
	section, h, err := lock(ctx, opts...)
	must(t, err)
	return section, h
}

// refused checks that a TryLock is not granted now.
func refused(t testing.TB, ctx context.Context, try lockFunc, what string) {
	t.Helper()
	_, _, err := try(ctx)
	is(t, what, err, rlock.ErrNotAcquired)
}

// listening waits until there are n subscribers of the lock's channel.
func listening(t testing.TB, s *redistest.Server, name string, n int64) {
	t.Helper()
	channel := "redisson_rwlock:{" + name + "}"
	redistest.Eventually(t, 10*time.Second, "sessions to listen", func() bool {
		m, err := s.Do(t, "PUBSUB", "NUMSUB", channel).AsIntMap()
		return err == nil && m[channel] == n
	})
}

// writersWaiting returns how many sessions stand in the line with writers.
func writersWaiting(t testing.TB, s *redistest.Server, name string) int64 {
	return inLine(t, s, name, "VUWN")
}

// readersWait waits until so many sessions stand there with readers.
func readersWait(t testing.TB, s *redistest.Server, name string, n int64) {
	t.Helper()
	redistest.Eventually(t, 10*time.Second, "readers in the line", func() bool { return inLine(t, s, name, "RS") == n })
}

// inLine returns how many entries begin with one of the letters.
func inLine(t testing.TB, s *redistest.Server, name, letters string) (n int64) {
	t.Helper()
	members, err := s.Do(t, "ZRANGE", "relock_line1:{"+name+"}", "0", "-1").AsStrSlice()
	must(t, err)
	for _, m := range members {
		if strings.ContainsRune(letters, rune(m[0])) {
			n++
		}
	}
	return n
}

// markUntil returns until when a waiting writer keeps readers out; ok: there is a mark.
func markUntil(t testing.TB, s *redistest.Server, name string) (until time.Time, ok bool) {
	t.Helper()
	score, err := s.Do(t, "ZSCORE", "relock_line1:{"+name+"}", "m").AsFloat64()
	if rueidis.IsRedisNil(err) {
		return until, false
	}
	must(t, err)
	return time.UnixMilli(int64(score - 8.4e15)), true
}

// field returns what the lock's hash has, "" for nothing.
func field(t testing.TB, s *redistest.Server, name, f string) string {
	t.Helper()
	v, err := s.Do(t, "HGET", name, f).ToString()
	if err != nil && !rueidis.IsRedisNil(err) {
		t.Fatal(err)
	}
	return v
}

// pttl returns a key's TTL.
func pttl(t testing.TB, s *redistest.Server, key string) time.Duration {
	t.Helper()
	n, err := s.Do(t, "PTTL", key).AsInt64()
	must(t, err)
	return time.Duration(n) * time.Millisecond
}

// nothingLeft waits until Redis has neither a key nor a lock's channel.
func nothingLeft(t testing.TB, s *redistest.Server) {
	t.Helper()
	nothingLeftBut(t, s, "relock_session:")
}

// nothingLeftBut is nothingLeft where others listen to channels with that prefix.
func nothingLeftBut(t testing.TB, s *redistest.Server, channels string) {
	t.Helper()
	defer func() {
		if t.Failed() {
			for _, key := range s.Keys(t) {
				t.Logf("left is %q, for %v", key, pttl(t, s, key))
			}
			t.Logf("left are the channels %q", s.Channels(t))
		}
	}()
	redistest.Eventually(t, 10*time.Second, "no key and no channel", func() bool {
		for _, c := range s.Channels(t) {
			if !strings.HasPrefix(c, "relock_session:") && !strings.HasPrefix(c, channels) {
				return false
			}
		}
		return len(s.Keys(t)) == 0
	})
}

// calls returns a matcher, for a proxy, for the calls of the named scripts.
func calls(names ...string) func(cmd []string) bool {
	var sources []string
	for _, n := range names {
		sources = append(sources, rwlock.ScriptSources()[n])
	}
	return locktest.Runs(sources...)
}

// messages returns the lock's messages as they come, until stop is called. It is one more
// subscriber of the lock's channel.
func messages(t testing.TB, s *redistest.Server, name string) (heard <-chan string, stop func()) {
	t.Helper()
	c, out := s.Client(t), make(chan string, 1000)
	ctx, cancel := context.WithCancel(context.Background())
	done, ready := make(chan struct{}), make(chan struct{})
	channel := "redisson_rwlock:{" + name + "}"
	hooked := rueidis.WithOnSubscriptionHook(ctx, func(rueidis.PubSubSubscription) {
		select {
		case <-ready:
		default:
			close(ready)
		}
	})
	go func() {
		defer close(done)
		_ = c.Receive(hooked, c.B().Subscribe().Channel(channel).Build(), func(m rueidis.PubSubMessage) { out <- m.Message })
	}()
	stop = func() {
		cancel()
		<-done
		c.Close()
	}
	t.Cleanup(stop)
	locktest.Get(t, ready, 5*time.Second, "the test's own subscription")
	return out, stop
}
