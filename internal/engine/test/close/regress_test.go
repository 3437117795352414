package close_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"relock/fairlock"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/rwlock"
	"relock/semaphore"
)

// A tardyClient holds the next script call as a goroutine does that was taken off its core: it has
// looked at its context, and has written nothing. It goes on when the context has ended and
// another script could have overtaken it.
type tardyClient struct {
	rueidis.Client
	armed     atomic.Bool
	silent    bool // the caller hears only that its context has ended
	begun     chan struct{}
	overtaken chan struct{}
}

func newTardyClient(t *testing.T, s *redistest.Server, silent bool) *tardyClient {
	return &tardyClient{Client: s.Client(t), silent: silent, begun: make(chan struct{}), overtaken: make(chan struct{}, 100)}
}

func (c *tardyClient) Do(ctx context.Context, cmd rueidis.Completed) rueidis.RedisResult {
	if cmd.Commands()[0] != "EVALSHA" || !c.armed.CompareAndSwap(true, false) {
		return c.Client.Do(ctx, cmd)
	}
	close(c.begun)
	<-ctx.Done()
	select {
	case <-c.overtaken:
	case <-time.After(100 * time.Millisecond): // what must not come does not come by then
	}
	r := c.Client.Do(context.WithoutCancel(ctx), cmd)
	if c.silent {
		return rueidis.NewErrorResult(ctx.Err())
	}
	return r
}

func (c *tardyClient) DoMulti(ctx context.Context, cmds ...rueidis.Completed) []rueidis.RedisResult {
	script := cmds[0].Commands()[0] == "EVALSHA"
	r := c.Client.DoMulti(ctx, cmds...)
	if script {
		c.overtaken <- struct{}{}
	}
	return r
}

// closings are acquisitions that Close meets.
var closings = map[string]func(ctx context.Context, s *rlock.Session) error{
	"Lock": func(ctx context.Context, s *rlock.Session) error {
		_, _, err := rlock.New(s, "x").Lock(ctx)
		return err
	},
	"Lock without an end": func(_ context.Context, s *rlock.Session) error {
		_, _, err := rlock.New(s, "x").Lock(context.Background())
		return err
	},
	"Lock of a named owner": func(ctx context.Context, s *rlock.Session) error {
		_, _, err := rlock.New(s, "x").Lock(rlock.WithOwner(ctx, "order-17"))
		return err
	},
	"TryLock": func(ctx context.Context, s *rlock.Session) error {
		_, _, err := rlock.New(s, "x").TryLock(ctx)
		return err
	},
	"TryLock of a fair lock": func(ctx context.Context, s *rlock.Session) error {
		_, _, err := fairlock.New(s, "x").TryLock(ctx)
		return err
	},
	"Lock of a fair lock": func(ctx context.Context, s *rlock.Session) error {
		_, _, err := fairlock.New(s, "x").Lock(ctx)
		return err
	},
	"RLock": func(ctx context.Context, s *rlock.Session) error {
		_, _, err := rwlock.New(s, "x").RLock(ctx)
		return err
	},
	"Lock of a read-write lock": func(ctx context.Context, s *rlock.Session) error {
		_, _, err := rwlock.New(s, "x").Lock(ctx)
		return err
	},
	"Acquire": func(ctx context.Context, s *rlock.Session) error {
		_, _, err := semaphore.New(s, "x", 3).Acquire(ctx, 2)
		return err
	},
}

// An attempt that is written after Close has begun does not outlive the session: what ends it is
// not sent before it.
func TestCloseDoesNotOvertakeAnAttempt(t *testing.T) {
	t.Parallel()
	for name, lock := range closings {
		for _, silent := range []bool{false, true} {
			how := map[bool]string{false: "answered", true: "silent"}[silent]
			t.Run(name+"/"+how, func(t *testing.T) {
				redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
					ctx := within(t, 20*time.Second)
					c := newTardyClient(t, s, silent)
					ses, err := rlock.NewSession(ctx, c, rlock.Config{})
					must(t, err)
					c.armed.Store(true)
					locked := locktest.Go(func() error { return lock(ctx, ses) })
					locktest.Get(t, c.begun, 10*time.Second, "the attempt")
					must(t, ses.Close())
					locktest.Is(t, name, locktest.Get(t, locked, 10*time.Second, name), rlock.ErrClosed)
					if name == "Acquire" {
						if n := semaphores(t, s); n != 3 {
							t.Errorf("%d permits are free, want 3", n)
						}
					} else if left := faultLockKeys(t, s); len(left) > 0 {
						t.Errorf("left behind: %q: %s", left, locktest.Describe(t, s))
					}
				})
			})
		}
	}
}

// semaphores returns how many permits of x are free.
func semaphores(t *testing.T, s *redistest.Server) int {
	t.Helper()
	n, err := semaphore.New(dial(t, s, rlock.Config{}), "x", 3).Available(context.Background())
	must(t, err)
	return n
}

// A slowContext is asked for its channel by a TryLock that is about to send its attempt, and
// answers late.
type slowContext struct {
	context.Context
	session       *rlock.Session
	asked, answer chan struct{}
	once          atomic.Bool
}

func (c *slowContext) Done() <-chan struct{} {
	if _, asking, _, _, _ := locktest.Books(c.session); asking == 1 && c.once.CompareAndSwap(false, true) {
		close(c.asked)
		<-c.answer
	}
	return c.Context.Done()
}

// A TryLock whose context keeps it for longer than Close waits takes nothing afterwards. (It hears
// of Close by a goroutine, which may be late; its own time is over by then.)
func TestTryLockSendsNothingAfterClose(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		locktest.Together(t, make([]struct{}, 20), func(struct{}) {
			client := s.Client(t)
			ses, err := rlock.NewSession(context.Background(), client, rlock.Config{ReleaseTimeout: 20 * time.Millisecond})
			must(t, err)
			ctx := &slowContext{Context: within(t, 20*time.Second), session: ses, asked: make(chan struct{}), answer: make(chan struct{})}
			m := rlock.New(ses, "x")
			locked := locktest.Go(func() error {
				_, _, err := m.TryLock(ctx)
				return err
			})
			locktest.Get(t, ctx.asked, 10*time.Second, "the TryLock")
			if err := ses.Close(); err != nil && !errors.Is(err, rlock.ErrUnavailable) {
				t.Fatal(err)
			}
			close(ctx.answer)
			locktest.Is(t, "TryLock", locktest.Get(t, locked, 10*time.Second, "TryLock"), rlock.ErrClosed)
			if left := faultLockKeys(t, s); len(left) > 0 {
				t.Fatalf("left behind: %s", locktest.Describe(t, s))
			}
		})
	})
}
