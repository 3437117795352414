package claim_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// The contexts of callers are of their own types here, and block.

// A stuckContext is a caller's own type whose methods block while it is stuck.
type stuckContext struct {
	context.Context
	stuck atomic.Pointer[chan struct{}]
}

func (c *stuckContext) wait() {
	if gate := c.stuck.Load(); gate != nil {
		<-*gate
	}
}

func (c *stuckContext) Done() <-chan struct{} { c.wait(); return c.Context.Done() }
func (c *stuckContext) Value(key any) any     { c.wait(); return c.Context.Value(key) }

// A caller's context blocks whatever asks it. No other lock, no renewal and no other caller
// waits for it.
func TestAStuckContextDelaysItsOwnUnlockOnly(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		const lease = 4 * time.Second
		ses := dial(t, s, rlock.Config{Lease: lease})
		name := redistest.Name(t)
		parent, cancel := context.WithCancel(within(t, 30*time.Second))
		defer cancel()
		ctx := &stuckContext{Context: parent}
		section, h, err := rlock.New(ses, name).Lock(ctx)
		must(t, err)
		section.Done()
		next := locktest.QueueUp(t, ses, name, within(t, 30*time.Second))
		other, o, err := rlock.New(ses, name+"2").Lock(within(t, 30*time.Second))
		must(t, err)

		gate := make(chan struct{})
		ctx.stuck.Store(&gate)
		unlocked := locktest.Go(h.Unlock)
		redistest.Eventually(t, 5*time.Second, "the section is over", func() bool { return h.Remaining() == 0 })
		for end := time.Now().Add(2 * lease); time.Now().Before(end); {
			must(t, rlock.New(ses, name+"3").Do(within(t, 5*time.Second), func(context.Context) error { return nil }))
			_, _, err := rlock.New(ses, name).Lock(within(t, 5*time.Second), rlock.Wait(10*time.Millisecond))
			locktest.Is(t, "Lock of the same name", err, rlock.ErrNotAcquired)
			must(t, other.Err())
		}
		close(gate)
		locktest.Get(t, unlocked, 5*time.Second, "Unlock")
		got := locktest.Get(t, next, 5*time.Second, "the next section")
		must(t, got.Err)
		must(t, got.Hold.Unlock())
		must(t, o.Unlock())
		locktest.NothingLeft(t, s, ses)
	})
}

// A muteContext is a caller's own type that does not say whether it has ended while it is stuck.
type muteContext struct{ stuckContext }

func (c *muteContext) Done() <-chan struct{} { return c.Context.Done() }
func (c *muteContext) Value(key any) any     { return c.Context.Value(key) }
func (c *muteContext) Err() error            { c.wait(); return c.Context.Err() }

// Callers' contexts block when a renewal asks them. The other locks that are due are renewed, and theirs if they answer in time.
func TestAStuckContextDelaysItsOwnRenewalOnly(t *testing.T) {
	const lease = 20 * time.Second
	for what, c := range map[string]struct {
		after time.Duration
		want  error
	}{"in time": {lease * 2 / 3, nil}, "too late": {3 * lease, rlock.ErrLost}} {
		t.Run(what, func(t *testing.T) {
			locktest.Leased(t, func(t *testing.T, _ *miniredis.Miniredis, ses *rlock.Session, _ *locktest.Passes) {
				ctx, gate := context.Background(), make(chan struct{})
				answer := sync.OnceFunc(func() { close(gate) })
				defer answer()
				type lock struct {
					of      string
					section context.Context
					want    error
				}
				var locks []lock
				for i := range 9 {
					name := fmt.Sprint("lock ", i)
					if i%3 != 1 {
						section, _, err := rlock.New(ses, name).Lock(ctx)
						must(t, err)
						locks = append(locks, lock{name, section, nil})
						continue
					}
					mute := &muteContext{stuckContext{Context: ctx}}
					section, _, err := rlock.New(ses, name).Lock(mute)
					must(t, err)
					mute.stuck.Store(&gate)
					locks = append(locks, lock{name + ", whose context blocks", section, c.want})
				}
				time.Sleep(c.after)
				answer()
				time.Sleep(2 * lease)
				for _, l := range locks {
					if got := context.Cause(l.section); !errors.Is(got, l.want) {
						t.Errorf("%s: its section has ended with %v, want %v", l.of, got, l.want)
					}
				}
			})
		})
	}
}
