package rwlock_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/rwlock"
)

// slowMulti holds the first renewal: before it is sent, and its answer.
type slowMulti struct {
	rueidis.Client
	once                      sync.Once
	built, send, ran, deliver chan struct{}
}

func (c *slowMulti) DoMulti(ctx context.Context, multi ...rueidis.Completed) (r []rueidis.RedisResult) {
	first := false
	if locktest.Runs(rwlock.ScriptSources()["renew"])(slices.Clone(multi[0].Commands())) {
		c.once.Do(func() { first = true })
	}
	if first {
		close(c.built)
		<-c.send
	}
	r = c.Client.DoMulti(ctx, multi...)
	if first {
		close(c.ran)
		<-c.deliver
	}
	return r
}

// The answer to a renewal speaks of a read side that was given up and taken again since.
func TestRenewalMeetsRelockedRead(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, 20*time.Second)
		c := &slowMulti{Client: s.Client(t), built: make(chan struct{}), send: make(chan struct{}), ran: make(chan struct{}), deliver: make(chan struct{})}
		ses, err := rlock.NewSession(ctx, c, rlock.Config{Lease: 3 * time.Second})
		must(t, err)
		defer ses.Close()
		m := rwlock.New(ses, "x")
		section, w := hold(t, ctx, m.Lock)
		_, r := hold(t, section, m.RLock)
		locktest.Get(t, c.built, 5*time.Second, "renewal")
		must(t, r.Unlock())
		close(c.send)
		<-c.ran
		_, r = hold(t, section, m.RLock)
		close(c.deliver)
		select {
		case <-section.Done():
			t.Errorf("lost: %v", context.Cause(section))
		case <-time.After(300 * time.Millisecond):
		}
		must(t, r.Unlock())
		must(t, w.Unlock())
	})
}
