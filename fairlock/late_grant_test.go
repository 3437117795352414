package fairlock_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/redis/rueidis"

	"relock/fairlock"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// lastClient is the client of a session that closes. When the session has released all that it
// had, and takes its record away, last is called; what is sent from then on in pipelines gets no
// answer.
type lastClient struct {
	rueidis.Client
	record string
	last   func()
	begun  chan struct{}
	sent   chan struct{}
	once   sync.Once
}

func (c *lastClient) Do(ctx context.Context, cmd rueidis.Completed) rueidis.RedisResult {
	if is := cmd.Commands(); is[0] == "DEL" && is[1] == c.record {
		close(c.begun)
		c.last()
		select {
		case <-c.sent:
		case <-ctx.Done(): // a quarter of a second
		}
	}
	return c.Client.Do(ctx, cmd)
}

func (c *lastClient) DoMulti(ctx context.Context, cmds ...rueidis.Completed) []rueidis.RedisResult {
	select {
	case <-c.begun:
	default:
		return c.Client.DoMulti(ctx, cmds...)
	}
	c.once.Do(func() { close(c.sent) })
	<-ctx.Done()
	results := make([]rueidis.RedisResult, len(cmds))
	for i := range results {
		results[i] = rueidis.NewErrorResult(ctx.Err())
	}
	return results
}

// A grant is on its way to a session that has just released the entry that it is for: Close has
// nothing to give back any more, and nothing that was not confirmed.
func TestAGrantThatComesWhileTheSessionClosesIsNoFailure(t *testing.T) {
	each(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, patience)
		c := &lastClient{Client: s.Client(t), record: "relock_session:late", begun: make(chan struct{}), sent: make(chan struct{})}
		const gone = "f0001250000000000004late:7"
		channel, grant := c.record, fmt.Sprintf("granted:1:0:0:1:1:%d:%s%s", len(gone), gone, "x")
		c.last = func() {
			if n, err := s.Do(t, "PUBLISH", channel, grant).AsInt64(); err != nil || n != 1 {
				t.Errorf("%d heard of the grant: %v", n, err)
			}
		}
		cfg := silent()
		cfg.ID = "late"
		ses, err := rlock.NewSession(ctx, c, cfg)
		must(t, err)
		m := fairlock.New(ses, "x")
		first := lock(t, ctx, m)
		next := goQueued(t, ctx, m, 1) // a session that has queued nobody has no entries
		unlock(t, first)
		unlock(t, granted(t, next, patience, "the next"))
		must(t, locktest.Get(t, goClose(ses), patience, "Close"))
	})
}

func goClose(ses *rlock.Session) <-chan error {
	done := make(chan error, 1)
	go func() { done <- ses.Close() }()
	return done
}
