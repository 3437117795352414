package fault_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// R13: the waiters' subscription is refused, as by an ACL without the channels. They
// poll.
func TestFaultRefusedSubscriptionCostsNoMoreThanThePollFloor(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		const floor = 300 * time.Millisecond
		ses, p := locktest.DialProxy(t, s, rlock.Config{PollFloor: floor})
		holder := dial(t, s, rlock.Config{})
		ctx := within(t, 30*time.Second)
		name := redistest.Name(t)
		p.RefuseCommand("SUBSCRIBE", "NOPERM this user has no permissions to access one of the channels")
		for range 3 {
			_, h, err := rlock.New(holder, name).Lock(ctx)
			must(t, err)
			p.Reset()
			next := locktest.GoLock(rlock.New(ses, name), ctx)
			redistest.Eventually(t, 5*time.Second, "the waiter polls", func() bool { return locktest.CallsSent(t, p, "acquire") >= 3 })
			must(t, h.Unlock())
			from := time.Now()
			got := locktest.Get(t, next, 5*time.Second, "the waiter's Lock")
			must(t, got.Err)
			if d := got.At.Sub(from); d > floor+s.Slack() {
				t.Errorf("the waiter got the lock %v after its release; the poll floor is %v", d, floor)
			}
			must(t, got.Hold.Unlock())
		}
	})
}

// R13, R15: polling in place of a subscription backs off: a waiter costs a handful of
// commands while it does, and then one for each poll floor.
func TestFaultRefusedSubscriptionMakesNoStorm(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ses, p := locktest.DialProxy(t, s, rlock.Config{})
		holder := dial(t, s, rlock.Config{})
		ctx, cancel := context.WithCancel(within(t, 30*time.Second))
		defer cancel()
		name := redistest.Name(t)
		p.RefuseCommand("SUBSCRIBE", "NOPERM this user has no permissions to access one of the channels")
		_, h, err := rlock.New(holder, name).Lock(ctx)
		must(t, err)
		p.Reset()
		next := locktest.GoLock(rlock.New(ses, name), ctx)
		<-time.After(3 * time.Second)
		// Doubling from 10 ms to the floor of 2 s are ten attempts and a few.
		if n := p.Count(); n > 30 {
			t.Errorf("a waiter without a subscription sent %d commands in 3 s", n)
		}
		cancel()
		locktest.Is(t, "Lock", locktest.Get(t, next, 5*time.Second, "Lock").Err, rlock.ErrNotAcquired, context.Canceled)
		must(t, h.Unlock())
	})
}

// R13: when the refusal ends a waiter that polls subscribes, and is woken by messages
// again: with this poll floor nothing else explains the speed. The lock is released as by a client
// that knows no line, which tells only who listens to the lock's channel.
func TestFaultRefusedSubscriptionHeals(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ses, p := locktest.DialProxy(t, s, rlock.Config{PollFloor: 10 * time.Second})
		holder := dial(t, s, rlock.Config{})
		ctx := within(t, 60*time.Second)
		name := redistest.Name(t)
		p.RefuseCommand("SUBSCRIBE", "NOPERM this user has no permissions to access one of the channels")
		_, h, err := rlock.New(holder, name).Lock(ctx)
		must(t, err)
		next := locktest.GoLock(rlock.New(ses, name), ctx)
		redistest.Eventually(t, 10*time.Second, "the waiter polls", func() bool { return locktest.CallsSent(t, p, "acquire") >= 3 })
		p.RefuseCommand("SUBSCRIBE", "")
		redistest.Eventually(t, 20*time.Second, "the waiter listens", func() bool {
			return slices.Contains(s.Channels(t), locktest.Channel(name))
		})
		must(t, s.Do(t, "DEL", name).Error())
		must(t, s.Do(t, "PUBLISH", locktest.Channel(name), "0").Error())
		from := time.Now()
		got := locktest.Get(t, next, 15*time.Second, "the waiter's Lock")
		must(t, got.Err)
		if d := got.At.Sub(from); d > 4*time.Second {
			t.Errorf("the waiter got the lock %v after its release; no message explains that", d)
		}
		must(t, got.Hold.Unlock())
		locktest.Is(t, "Unlock", h.Unlock(), rlock.ErrLost)
	})
}

// R13: the server neither confirms nor refuses the subscription for a while. The waiter
// does not depend on it.
func TestFaultUnconfirmedSubscriptionCostsNoMoreThanThePollFloor(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		const floor = 300 * time.Millisecond
		ses, p := locktest.DialProxy(t, s, rlock.Config{PollFloor: floor})
		holder := dial(t, s, rlock.Config{})
		ctx := within(t, 30*time.Second)
		name := redistest.Name(t)
		_, h, err := rlock.New(holder, name).Lock(ctx)
		must(t, err)
		seen, release := p.HoldReply(func(cmd []string) bool {
			return strings.EqualFold(cmd[0], "SUBSCRIBE") && slices.Contains(cmd, locktest.Channel(name))
		})
		defer release()
		next := locktest.GoLock(rlock.New(ses, name), ctx)
		locktest.Get(t, seen, 5*time.Second, "the subscription")
		must(t, h.Unlock())
		from := time.Now()
		got := locktest.Get(t, next, 10*time.Second, "the waiter's Lock")
		must(t, got.Err)
		if d := got.At.Sub(from); d > floor+s.Slack() {
			t.Errorf("the waiter got the lock %v after its release; the poll floor is %v", d, floor)
		}
		must(t, got.Hold.Unlock())
	})
}
