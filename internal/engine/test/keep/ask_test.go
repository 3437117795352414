package keep_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// A slowPublishes is a client whose messages to sessions that may keep a lock take long.
type slowPublishes struct {
	rueidis.Client
	asked atomic.Int32
	begun chan struct{} // one for each
	gate  chan struct{}
}

func (c *slowPublishes) Do(ctx context.Context, cmd rueidis.Completed) rueidis.RedisResult {
	if is := cmd.Commands(); is[0] == "PUBLISH" && strings.HasPrefix(is[2], "wanted:") {
		c.asked.Add(1)
		c.begun <- struct{}{}
		<-c.gate
	}
	return c.Client.Do(ctx, cmd)
}

// However often a session is refused a lock that may be kept, it has one message on its way that asks for it, and so one
// goroutine. When that has arrived, and the lock is still held, the next refusal asks again.
func TestOneMessageAtATimeAsksForAKeptLock(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, time.Minute)
		c := &slowPublishes{Client: s.Client(t), begun: make(chan struct{}, 1000), gate: make(chan struct{})}
		ses, err := rlock.NewSession(ctx, c, rlock.Config{})
		must(t, err)
		t.Cleanup(func() { must(t, ses.Close()) })
		m, name := rlock.New(ses, redistest.Name(t)), redistest.Name(t)
		theirs, other := rlock.New(dial(t, s, rlock.Config{}), name, rlock.Keep(15*time.Second)), rlock.New(ses, name)
		_, h, err := theirs.Lock(ctx) // in use, so it stays when it is asked for
		must(t, err)
		refused := func() {
			t.Helper()
			for range 100 {
				_, _, err := other.TryLock(ctx)
				locktest.Is(t, "TryLock", err, rlock.ErrNotAcquired)
			}
		}
		refused()
		locktest.Get(t, c.begun, 5*time.Second, "a message")
		_, mine, err := m.Lock(ctx) // the session goes on
		must(t, err)
		must(t, mine.Unlock())
		refused()
		if n := c.asked.Load(); n != 1 {
			t.Errorf("%d messages are on their way after 200 refusals, want 1", n)
		}
		close(c.gate)
		redistest.Eventually(t, 5*time.Second, "another message", func() bool {
			refused()
			return c.asked.Load() > 1
		})
		must(t, h.Unlock())
		redistest.Eventually(t, 5*time.Second, "the lock not to be kept", func() bool { return locktest.Free(t, s, name) })
	})
}

// A session that was given the lock by the line does not keep it, however long it is inside: those who stand behind it there have asked nobody, and
// would find out only when they look.
func TestALockThatTheLineHasGivenIsNotKept(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		ctx, name := within(t, time.Minute), redistest.Name(t)
		cfg := rlock.Config{PollFloor: 30 * time.Second}
		_, h, err := rlock.New(dial(t, s, cfg), name).Lock(ctx)
		must(t, err)
		var waiters [3]<-chan locktest.Locked
		for i := range waiters {
			waiters[i] = locktest.GoLock(rlock.New(dial(t, s, cfg), name, rlock.Keep(5*time.Second)), ctx)
			redistest.Eventually(t, 5*time.Second, "the waiter to stand in the line", func() bool {
				n, err := s.Do(t, "ZCOUNT", "relock_line1:{"+name+"}", "0", "2400000000000000").AsInt64()
				return err == nil && n == int64(i+1)
			})
		}
		must(t, h.Unlock())
		for _, w := range waiters {
			got := locktest.Get(t, w, 3*time.Second, "the next waiter")
			must(t, got.Err)
			redistest.Eventually(t, 5*time.Second, "the lock to be confirmed", func() bool { return locktest.PTTL(t, s, name) > 5*time.Second })
			must(t, got.Hold.Unlock())
		}
	})
}

// A session that is asked for a lock before it has the answer by which it holds it does not keep it either.
func TestALockThatIsAskedForBeforeTheAnswerIsNotKept(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		cfg := rlock.Config{PollFloor: 30 * time.Second}
		ctx, name := within(t, time.Minute), redistest.Name(t)
		ses, p := locktest.DialProxy(t, s, cfg)
		section, _, err := rlock.New(ses, name+"-other").Lock(ctx)
		must(t, err)
		seen, answer := p.HoldReply(locktest.Calls(t, "acquire"))
		first := locktest.GoLock(rlock.New(ses, name, rlock.Keep(5*time.Second)), ctx)
		locktest.Get(t, seen, 5*time.Second, "the acquisition")
		theirs := dial(t, s, cfg)
		second := locktest.GoLock(rlock.New(theirs, name), ctx)
		redistest.Eventually(t, 5*time.Second, "the waiter to stand in the line", func() bool {
			n, err := s.Do(t, "EXISTS", "relock_line1:{"+name+"}").AsInt64()
			return err == nil && n == 1
		})
		_, err = rlock.New(theirs, name+"-other").ForceUnlock(ctx)
		must(t, err)
		locktest.Ends(t, section, 5*time.Second, rlock.ErrLost) // and messages come in their order
		answer()
		for _, w := range []<-chan locktest.Locked{first, second} {
			got := locktest.Get(t, w, 3*time.Second, "the lock")
			must(t, got.Err)
			must(t, got.Hold.Unlock())
		}
	})
}
