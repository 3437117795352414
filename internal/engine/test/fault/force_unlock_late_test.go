package fault_test

import (
	"context"
	"io"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// late is a client over which the first acquire script runs, and seems not to. The second one waits before it is sent.
type late struct {
	rueidis.Client
	is         func([]string) bool
	n          atomic.Int32
	seen, gate chan struct{}
}

// loses reports whether the reply of a command is to be lost.
func (c *late) loses(cmds ...rueidis.Completed) bool {
	for _, cmd := range cmds {
		if c.is(cmd.Commands()) {
			switch c.n.Add(1) {
			case 1:
				return true
			case 2:
				close(c.seen)
				<-c.gate
			}
		}
	}
	return false
}

func (c *late) Do(ctx context.Context, cmd rueidis.Completed) rueidis.RedisResult {
	return c.DoMulti(ctx, cmd)[0]
}

func (c *late) DoMulti(ctx context.Context, cmds ...rueidis.Completed) []rueidis.RedisResult {
	lost := c.loses(cmds...)
	results := c.Client.DoMulti(context.WithoutCancel(ctx), cmds...) // as one that is written already
	for i := range results {
		if lost {
			results[i] = rueidis.NewErrorResult(io.ErrUnexpectedEOF)
		}
	}
	return results
}

// A forced unlock ends what an attempt has taken, and another copy of the attempt runs behind it: what that takes is given
// back, and the caller has the lock at once, instead of after the lease of a claim that nobody has.
func TestForceUnlockBetweenTwoCopiesOfAnAttempt(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx, other := within(t, time.Minute), dial(t, s, rlock.Config{})
		c := &late{Client: s.Client(t), is: locktest.Calls(t, "acquire"), seen: make(chan struct{}), gate: make(chan struct{})}
		send := sync.OnceFunc(func() { close(c.gate) })
		t.Cleanup(send)
		ses, err := rlock.NewSession(ctx, c, rlock.Config{})
		must(t, err)
		locked := locktest.GoLock(rlock.New(ses, "x"), ctx)
		locktest.Get(t, c.seen, 10*time.Second, "the second copy")
		found, err := rlock.New(other, "x").ForceUnlock(ctx)
		if must(t, err); !found {
			t.Fatal("nobody had the lock")
		}
		redistest.Eventually(t, 10*time.Second, "the claim to be over", func() bool {
			_, asking, _, _, _ := locktest.Books(ses)
			return asking == 0
		})
		send()
		got := locktest.Get(t, locked, 10*time.Second, "the lock")
		must(t, got.Err)
		must(t, got.Hold.Unlock())
		must(t, ses.Close())
		if !locktest.Free(t, s, "x") {
			t.Error("something stands")
		}
	})
}
