package rlock_test

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
		redistest.Eventually(t, 5*time.Second, "the lock not to be kept", func() bool { return faultFree(t, s, name) })
	})
}
