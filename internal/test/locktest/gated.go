package locktest

import (
	"context"
	"sync"
	"testing"

	"github.com/redis/rueidis"

	"relock/internal/test/redistest"
	"relock/rlock"
)

// Gated is a client that can be told to send one command late, even if its caller has gone away:
// as a goroutine does that is not scheduled, a redirection, or a NOSCRIPT.
type Gated struct {
	rueidis.Client
	mu   sync.Mutex
	late func(cmd []string) bool
	seen chan struct{}
	gate chan struct{}
	done bool // it is the answer that is late
}

// DialGated opens a session on such a client. It is closed when the test ends.
func DialGated(t testing.TB, s *redistest.Server, cfg rlock.Config) (*rlock.Session, *Gated) {
	t.Helper()
	c := &Gated{Client: s.Client(t)}
	ses, err := rlock.NewSession(context.Background(), c, cfg)
	Must(t, err)
	t.Cleanup(func() { _ = ses.Close() })
	return ses, c
}

// Hold keeps the next command that matches from being sent until release is called; seen is
// closed when it has come.
func (c *Gated) Hold(match func(cmd []string) bool) (seen <-chan struct{}, release func()) {
	return c.hold(match, false)
}

// HoldAnswer keeps the answer to the next command that matches from its caller until release is called, and no other
// answer: as a goroutine does that is not scheduled. seen is closed when the answer has come.
func (c *Gated) HoldAnswer(match func(cmd []string) bool) (seen <-chan struct{}, release func()) {
	return c.hold(match, true)
}

func (c *Gated) hold(match func(cmd []string) bool, done bool) (seen <-chan struct{}, release func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.late, c.seen, c.gate, c.done = match, make(chan struct{}), make(chan struct{}), done
	gate := c.gate
	return c.seen, sync.OnceFunc(func() { close(gate) })
}

func (c *Gated) Do(ctx context.Context, cmd rueidis.Completed) rueidis.RedisResult {
	c.mu.Lock()
	var gate, seen chan struct{}
	if c.late != nil && c.late(cmd.Commands()) {
		gate, seen, c.late = c.gate, c.seen, nil
	}
	done := c.done
	c.mu.Unlock()
	switch {
	case gate == nil:
	case done:
		answer := c.Client.Do(ctx, cmd)
		close(seen)
		<-gate
		return answer
	default:
		close(seen)
		<-gate
		ctx = context.WithoutCancel(ctx)
	}
	return c.Client.Do(ctx, cmd)
}
