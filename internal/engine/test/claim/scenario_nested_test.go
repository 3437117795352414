package claim_test

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// strayClient lets one command go astray: its caller waits in vain, and it can be delivered
// when everybody has forgotten it.
type strayClient struct {
	rueidis.Client
	mu    sync.Mutex
	match func(cmd []string) bool
	stray []string
}

func (c *strayClient) Do(ctx context.Context, cmd rueidis.Completed) rueidis.RedisResult {
	c.mu.Lock()
	astray := c.match != nil && c.match(cmd.Commands())
	if astray {
		c.match, c.stray = nil, slices.Clone(cmd.Commands())
	}
	c.mu.Unlock()
	if astray {
		<-ctx.Done()
	}
	return c.Client.Do(ctx, cmd)
}

func (c *strayClient) lose(match func(cmd []string) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.match = match
}

func (c *strayClient) lost() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stray
}

// A nested Lock is cancelled in flight, and its undo finds nothing. The claim is not handed
// over, for the command may still come; when it does, before the last release, that takes it
// too.
func TestANestedLockThatComesLateLeavesNothing(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		var p locktest.Passes
		client := &strayClient{Client: s.Client(t)}
		ses, err := rlock.NewSession(context.Background(), client, rlock.Config{Trace: p.Trace()})
		must(t, err)
		defer ses.Close()
		m := rlock.New(ses, "x")
		section, h, err := m.Lock(within(t, 30*time.Second))
		must(t, err)
		locktest.Unhurried(ses, "x")
		next := locktest.QueueUp(t, ses, "x", within(t, 30*time.Second))
		client.lose(locktest.Calls(t, "acquire"))
		ctx, cancel := context.WithCancel(section)
		nested := locktest.GoLock(m, ctx)
		redistest.Eventually(t, 5*time.Second, "the nested command is astray", func() bool { return client.lost() != nil })
		cancel()
		locktest.Is(t, "nested Lock", locktest.Get(t, nested, 5*time.Second, "nested Lock").Err, rlock.ErrNotAcquired, context.Canceled)
		locktest.Quiet(t, ses) // the undo is answered
		if n := locktest.Field(t, s, "x", h.Owner()); n != "1" {
			t.Fatalf("Redis counts %q holds, want 1", n)
		}
		must(t, s.Do(t, client.lost()...).Error())
		if n := locktest.Field(t, s, "x", h.Owner()); n != "2" {
			t.Fatalf("Redis counts %q holds, want 2: this test is about a late command", n)
		}
		must(t, h.Unlock())
		got := locktest.Get(t, next, 5*time.Second, "the next owner")
		must(t, got.Err)
		if got.Hold.Owner() == h.Owner() || p.Count() != 0 {
			t.Errorf("the claim was handed over")
		}
		must(t, got.Hold.Unlock())
		locktest.NothingLeft(t, s, ses)
		if lost := p.Losses(); len(lost) > 0 {
			t.Errorf("lost: %q", lost)
		}
	})
}

// A nested hold had a lease of an hour. The claim is not handed over when it is unlocked, so
// that the lock of a process that dies is free one session lease later, not an hour.
func TestALongNestedLeaseIsNotInherited(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		st := locktest.NewStage(t, s, rlock.Config{})
		section, h := st.Lock(st.Ctx)
		next := st.Queue(st.Ctx)
		_, nested, err := st.Mutex.Lock(section, rlock.Lease(time.Hour))
		must(t, err)
		must(t, nested.Unlock())
		must(t, h.Unlock())
		got := st.In(next)
		ttl, err := s.Do(t, "PTTL", st.Name).AsInt64()
		must(t, err)
		if ttl > rlock.DefaultLease.Milliseconds() {
			t.Errorf("the next owner's lock lives for %d ms without it", ttl)
		}
		must(t, got.Hold.Unlock())
		locktest.NothingLeft(t, s, st.Session)
	})
}

// The release of an ordinary lock names the lock and its line; one that has had nested holds names the key
// of their ids too. No other key can be split from the lock while a slot moves; the line can, and then the
// release is sent again without it, see TestAHalfMovedSlotHandsPlainLocksOverByMessage.
func TestAnOrdinaryReleaseNamesLockAndLine(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		st := locktest.NewStage(t, s, rlock.Config{})
		keys := func() string {
			for _, line := range slices.Backward(st.Proxy.Log()) {
				if cmd := strings.Fields(line); locktest.Calls(t, "release")(cmd) {
					n, _ := strconv.Atoi(cmd[2])
					return strings.Join(cmd[2:3+n], " ")
				}
			}
			return ""
		}
		_, h := st.Lock(st.Ctx)
		in := st.HandOver(h, st.Queue(st.Ctx))
		must(t, in.Hold.Unlock())
		if n := keys(); n != "2 "+st.Name+" relock_line1:{"+st.Name+"}" {
			t.Errorf("the release names %q, want the lock and its line", n)
		}
		section, h := st.Lock(st.Ctx)
		_, nested, err := st.Mutex.Lock(section)
		must(t, err)
		must(t, nested.Unlock())
		must(t, h.Unlock())
		if n := keys(); n != "3 "+st.Name+" relock_line1:{"+st.Name+"} relock_holds:{"+st.Name+"}" {
			t.Errorf("the release after a nested hold names %q, want the lock, its line, and the ids", n)
		}
		locktest.NothingLeft(t, s, st.Session)
	})
}

// Two callers act for one name, one of them behind a foreign waiter in the queue, while that
// very name holds the lock elsewhere: both get in.
func TestTwoCallersOfANameThatHoldsTheLockElsewhere(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		a, b := dial(t, s, rlock.Config{}), dial(t, s, rlock.Config{PollFloor: time.Minute})
		ctx := within(t, 20*time.Second)
		me := rlock.WithOwner(ctx, "me")
		_, there, err := rlock.New(a, "x").Lock(me)
		must(t, err)
		foreign := locktest.QueueUp(t, b, "x", ctx)
		for range 2 {
			first, second := locktest.GoLock(rlock.New(b, "x"), me), locktest.GoLock(rlock.New(b, "x"), me)
			one := locktest.Get(t, first, 5*time.Second, "the first caller")
			must(t, one.Err)
			two := locktest.Get(t, second, 5*time.Second, "the second caller")
			must(t, two.Err)
			if n := locktest.Field(t, s, "x", "me"); n != "3" {
				t.Errorf("Redis counts %q holds, want 3", n)
			}
			must(t, one.Hold.Unlock())
			must(t, two.Hold.Unlock())
		}
		must(t, there.Unlock())
		got := locktest.Get(t, foreign, 5*time.Second, "the foreign waiter")
		must(t, got.Err)
		must(t, got.Hold.Unlock())
		locktest.NothingLeft(t, s, a, b)
	})
}

// The session's lock is lost in a failover. Until Redis has confirmed the claim no section
// begins on it, and its Unlock asks Redis.
func TestADoubtfulClaimIsNotHandedOver(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		st := locktest.NewStage(t, s, rlock.Config{})
		_, h := st.Lock(st.Ctx)
		next := st.Queue(st.Ctx)
		seen, answer := st.Proxy.HoldRequest(locktest.Calls(t, "renew"))
		defer answer()
		s.FlushAll(t)
		st.Proxy.Cut()
		locktest.Get(t, seen, 10*time.Second, "the session has connected anew, and asks for its claim")
		unlocked := locktest.Go(h.Unlock)
		redistest.Eventually(t, 5*time.Second, "the release is sent", func() bool {
			_, _, _, scheduled, _ := locktest.Books(st.Session)
			return scheduled == 0 || st.Count() > 0
		})
		answer()
		locktest.Is(t, "Unlock", locktest.Get(t, unlocked, 5*time.Second, "Unlock"), rlock.ErrLost)
		got := st.In(next)
		if owner := locktest.OnlyOwner(t, st); owner != got.Hold.Owner() || owner == h.Owner() || st.Count() > 0 {
			t.Errorf("the next owner is %q, by Redis %q, %d hand-overs", got.Hold.Owner(), owner, st.Count())
		}
		must(t, got.Ctx.Err())
		must(t, got.Hold.Unlock())
		locktest.NothingLeft(t, s, st.Session)
	})
}

// A lock is lost while a nested Lock waits for its turn, and all holds that it had are being
// unlocked. The nested Lock leaves last, so it is the one to have released what may still stand.
func TestALockLostUnderAWaitingNestedLockIsReleased(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ses, p := locktest.DialProxy(t, s, rlock.Config{Lease: 2 * time.Second})
		m := rlock.New(ses, redistest.Name(t))
		section, outer, err := m.Lock(within(t, 30*time.Second))
		must(t, err)
		_, inner, err := m.Lock(section)
		must(t, err)
		seen, answer := p.HoldReply(locktest.Calls(t, "release"))
		defer answer()
		first := locktest.Go(inner.Unlock)
		locktest.Get(t, seen, 5*time.Second, "the release of the inner hold")
		nested := locktest.GoLock(m, section)
		redistest.Eventually(t, 5*time.Second, "the nested Lock to wait", func() bool { return locktest.Awaited(outer) })
		second := locktest.Go(outer.Unlock)
		locktest.Is(t, "nested Lock", locktest.Get(t, nested, 20*time.Second, "the nested Lock").Err, rlock.ErrLost)
		locktest.Is(t, "outer Unlock", locktest.Get(t, second, 5*time.Second, "the outer Unlock"), rlock.ErrLost)
		answer()
		locktest.Get(t, first, 5*time.Second, "the inner Unlock")
		redistest.Eventually(t, 5*time.Second, "the rest to be released", func() bool { return locktest.CallsSent(t, p, "release") >= 2 })
	})
}
