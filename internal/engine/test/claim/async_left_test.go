package claim_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/locktrace"
	"relock/rlock"
)

// A slowPipelines is a client whose next pipeline is on its way for long: its goroutine has begun to send it, and others
// come before. Releases that no caller waits for leave in pipelines; attempts that take none along do not.
type slowPipelines struct {
	rueidis.Client
	attempts atomic.Int32 // scripts that were sent alone
	mu       sync.Mutex
	left     chan struct{} // closed when that pipeline has come; nil: none is held
	gate     chan struct{}
}

func dialSlowPipelines(t *testing.T, s *redistest.Server, cfg rlock.Config) (*rlock.Session, *slowPipelines) {
	t.Helper()
	c := &slowPipelines{Client: s.Client(t)}
	ses, err := rlock.NewSession(within(t, 10*time.Second), c, cfg)
	must(t, err)
	t.Cleanup(func() { must(t, ses.Close()) })
	return ses, c
}

// hold has the next pipeline wait until it is let go.
func (c *slowPipelines) hold() (left <-chan struct{}, letGo func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left, c.gate = make(chan struct{}), make(chan struct{})
	gate := c.gate
	return c.left, sync.OnceFunc(func() { close(gate) })
}

func (c *slowPipelines) Do(ctx context.Context, cmd rueidis.Completed) rueidis.RedisResult {
	if strings.HasPrefix(cmd.Commands()[0], "EVAL") {
		c.attempts.Add(1)
	}
	return c.Client.Do(ctx, cmd)
}

func (c *slowPipelines) DoMulti(ctx context.Context, cmds ...rueidis.Completed) []rueidis.RedisResult {
	c.mu.Lock()
	left, gate := c.left, c.gate
	c.left, c.gate = nil, nil
	c.mu.Unlock()
	if left != nil {
		close(left)
		<-gate
	}
	return c.Client.DoMulti(ctx, cmds...)
}

// A release that has left is not in Redis yet. What the session asks next must not overtake it: a TryLock would be
// refused by a hold of its own session that has ended.
func TestATryLockWaitsForAnUnlockAsyncThatHasLeft(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		ses, c := dialSlowPipelines(t, s, rlock.Config{})
		ctx := within(t, time.Minute)
		for _, k := range locktest.AsyncKinds(ses, redistest.Name(t)) {
			for of, take := range map[string]locktest.AsyncTake{"its own side": k.Lock, "the other side": k.Other} {
				if take == nil {
					continue
				}
				t.Run(k.Name+" "+of, func(t *testing.T) {
					_, end, err := take(ctx)
					must(t, err)
					left, letGo := c.hold()
					defer letGo()
					end()
					locktest.Get(t, left, 10*time.Second, "the release to leave")
					tried := make(chan error, 1)
					var next func()
					go func() {
						_, end, err := k.Try(ctx)
						next = end
						tried <- err
					}()
					select {
					case err := <-tried:
						t.Fatalf("TryLock has overtaken the release: %v", err)
					case <-time.After(50 * time.Millisecond):
					}
					letGo()
					must(t, locktest.Get(t, tried, 10*time.Second, "TryLock"))
					next()
					locktest.Settled(t, ses)
				})
			}
		}
	})
}

// A Lock would be refused too, and stand in line for what its own session has left: two commands more. It sends nothing
// until the release is answered.
func TestALockWaitsForAnUnlockAsyncThatHasLeft(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		waits := make(chan struct{}, 10)
		ses, c := dialSlowPipelines(t, s, rlock.Config{Trace: &rlock.Trace{
			Waiting: func(context.Context, locktrace.Waiting) { waits <- struct{}{} },
		}})
		ctx := within(t, time.Minute)
		for _, k := range locktest.AsyncKinds(ses, redistest.Name(t)) {
			if k.Name == "semaphore" { // permits of others may come free meanwhile, so it asks
				continue
			}
			t.Run(k.Name, func(t *testing.T) {
				_, end, err := k.Lock(ctx)
				must(t, err)
				left, letGo := c.hold()
				defer letGo()
				end()
				locktest.Get(t, left, 10*time.Second, "the release to leave")
				before := c.attempts.Load()
				locked := make(chan error, 1)
				var next func()
				go func() {
					_, end, err := k.Lock(ctx)
					next = end
					locked <- err
				}()
				locktest.Get(t, waits, 10*time.Second, "Lock to wait")
				if n := c.attempts.Load() - before; n != 0 {
					t.Errorf("Lock has sent %d scripts that overtake the release", n)
				}
				letGo()
				must(t, locktest.Get(t, locked, 10*time.Second, "Lock"))
				if n := c.attempts.Load() - before; n != 1 {
					t.Errorf("Lock has sent %d scripts, want 1", n)
				}
				next()
				locktest.Settled(t, ses)
			})
		}
	})
}

// A Redis that has forgotten its scripts refuses the release and the attempt behind it, or the release alone if another
// session has used the other script since; both are sent again, and in that order.
func TestUnlockAsyncAfterScriptFlush(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		st, other := locktest.NewStage(t, s, rlock.Config{}), dial(t, s, rlock.Config{})
		for i, k := range locktest.AsyncKinds(st.Session, st.Name) {
			for what, take := range map[string]locktest.AsyncTake{"Lock": k.Lock, "TryLock": k.Try} {
				for _, along := range []bool{false, true} {
					t.Run(fmt.Sprintf("%s %s along=%v", k.Name, what, along), func(t *testing.T) {
						st := &locktest.Stage{T: t, Server: s, Proxy: st.Proxy, Session: st.Session, Ctx: st.Ctx, Name: redistest.Name(t)}
						_, end, err := k.Lock(st.Ctx)
						must(t, err)
						free := func() {}
						if along {
							free = busy(t, st)
						}
						must(t, s.Do(t, "SCRIPT", "FLUSH").Error())
						if along {
							_, _, err := locktest.AsyncKinds(other, redistest.Name(t))[i].Try(st.Ctx)
							must(t, err)
						}
						sent := st.Proxy.Count("EVALSHA")
						end()
						took := make(chan error, 1)
						var next func()
						go func() {
							_, end, err := take(st.Ctx)
							next = end
							took <- err
						}()
						if along {
							redistest.Eventually(t, 10*time.Second, "the release and the attempt", func() bool { return st.Proxy.Count("EVALSHA") >= sent+2 })
						}
						free()
						must(t, locktest.Get(t, took, 10*time.Second, what))
						next()
						locktest.Settled(t, st.Session)
					})
				}
			}
		}
	})
}

// Close and Shutdown wait for releases that are on their way and for those that have yet to leave, of each kind, and
// return nil when Redis has confirmed them all.
func TestTheEndOfASessionWaitsForManyUnlockAsyncs(t *testing.T) {
	for how, end := range map[string]func(context.Context, *rlock.Session) error{
		"Close":    func(_ context.Context, ses *rlock.Session) error { return ses.Close() },
		"Shutdown": func(ctx context.Context, ses *rlock.Session) error { return ses.Shutdown(ctx) },
	} {
		t.Run(how, func(t *testing.T) {
			redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
				ses, p := locktest.DialProxy(t, s, rlock.Config{})
				ctx, name := within(t, time.Minute), redistest.Name(t)
				var ends []func()
				const n = 6
				for i := range n {
					for _, k := range locktest.AsyncKinds(ses, fmt.Sprint(name, i)) {
						_, end, err := k.Lock(ctx)
						must(t, err)
						ends = append(ends, end)
					}
				}
				_, release := p.HoldReply(locktest.Calls(t, "release"))
				defer release()
				for _, end := range ends {
					end()
				}
				closed := locktest.Go(func() error { return end(ctx, ses) })
				select {
				case err := <-closed:
					t.Fatalf("%s did not wait: %v", how, err)
				case <-time.After(50 * time.Millisecond):
				}
				_, _, err := rlock.New(ses, name).Lock(ctx)
				locktest.Is(t, "Lock", err, rlock.ErrClosed)
				release()
				must(t, locktest.Get(t, closed, 20*time.Second, how))
				other := dial(t, s, rlock.Config{})
				for i := range n {
					for _, k := range locktest.AsyncKinds(other, fmt.Sprint(name, i)) {
						_, end, err := k.Try(ctx)
						if errors.Is(err, rlock.ErrNotAcquired) {
							t.Fatalf("%s has left a lock: %s", how, k.Name)
						}
						must(t, err)
						end()
					}
				}
			})
		})
	}
}
