package rlock_test

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
		var p passes
		client := &strayClient{Client: s.Client(t)}
		ses, err := rlock.NewSession(context.Background(), client, rlock.Config{Trace: p.trace()})
		must(t, err)
		defer ses.Close()
		m := rlock.New(ses, "x")
		section, h, err := m.Lock(within(t, 30*time.Second))
		must(t, err)
		ses.Unhurried("x")
		next := queueUp(t, ses, "x", within(t, 30*time.Second))
		client.lose(faultRuns(t, "acquire"))
		ctx, cancel := context.WithCancel(section)
		nested := faultGoLock(m, ctx)
		redistest.Eventually(t, 5*time.Second, "the nested command is astray", func() bool { return client.lost() != nil })
		cancel()
		locktest.Is(t, "nested Lock", locktest.Get(t, nested, 5*time.Second, "nested Lock").err, rlock.ErrNotAcquired, context.Canceled)
		quiet(t, ses) // the undo is answered
		if n := hget(t, s, "x", h.Owner()); n != "1" {
			t.Fatalf("Redis counts %q holds, want 1", n)
		}
		must(t, s.Do(t, client.lost()...).Error())
		if n := hget(t, s, "x", h.Owner()); n != "2" {
			t.Fatalf("Redis counts %q holds, want 2: this test is about a late command", n)
		}
		must(t, h.Unlock())
		got := locktest.Get(t, next, 5*time.Second, "the next owner")
		must(t, got.err)
		if got.hold.Owner() == h.Owner() || p.count() != 0 {
			t.Errorf("the claim was handed over")
		}
		must(t, got.hold.Unlock())
		nothingLeft(t, s, ses)
		if lost := p.losses(); len(lost) > 0 {
			t.Errorf("lost: %q", lost)
		}
	})
}

// A nested hold had a lease of an hour. The claim is not handed over when it is unlocked, so
// that the lock of a process that dies is free one session lease later, not an hour.
func TestALongNestedLeaseIsNotInherited(t *testing.T) {
	faultEach(t, func(t *testing.T, s *redistest.Server) {
		st := newStage(t, s, rlock.Config{})
		section, h := st.lock(st.ctx)
		next := st.queue(st.ctx)
		_, nested, err := st.m.Lock(section, rlock.Lease(time.Hour))
		must(t, err)
		must(t, nested.Unlock())
		must(t, h.Unlock())
		got := st.in(next)
		ttl, err := s.Do(t, "PTTL", st.name).AsInt64()
		must(t, err)
		if ttl > rlock.DefaultLease.Milliseconds() {
			t.Errorf("the next owner's lock lives for %d ms without it", ttl)
		}
		must(t, got.hold.Unlock())
		nothingLeft(t, s, st.ses)
	})
}

// The release of an ordinary lock names the lock and its line; one that has had nested holds names the key
// of their ids too. No other key can be split from the lock while a slot moves; the line can, and then the
// release is sent again without it, see TestAHalfMovedSlotHandsPlainLocksOverByMessage.
func TestAnOrdinaryReleaseNamesLockAndLine(t *testing.T) {
	faultEach(t, func(t *testing.T, s *redistest.Server) {
		st := newStage(t, s, rlock.Config{})
		keys := func() string {
			for _, line := range slices.Backward(st.p.Log()) {
				if cmd := strings.Fields(line); faultRuns(t, "release")(cmd) {
					n, _ := strconv.Atoi(cmd[2])
					return strings.Join(cmd[2:3+n], " ")
				}
			}
			return ""
		}
		_, h := st.lock(st.ctx)
		in := st.handOver(h, st.queue(st.ctx))
		must(t, in.hold.Unlock())
		if n := keys(); n != "2 "+st.name+" relock_line1:{"+st.name+"}" {
			t.Errorf("the release names %q, want the lock and its line", n)
		}
		section, h := st.lock(st.ctx)
		_, nested, err := st.m.Lock(section)
		must(t, err)
		must(t, nested.Unlock())
		must(t, h.Unlock())
		if n := keys(); n != "3 "+st.name+" relock_line1:{"+st.name+"} relock_holds:{"+st.name+"}" {
			t.Errorf("the release after a nested hold names %q, want the lock, its line, and the ids", n)
		}
		nothingLeft(t, s, st.ses)
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
		foreign := queueUp(t, b, "x", ctx)
		for range 2 {
			first, second := faultGoLock(rlock.New(b, "x"), me), faultGoLock(rlock.New(b, "x"), me)
			one := locktest.Get(t, first, 5*time.Second, "the first caller")
			must(t, one.err)
			two := locktest.Get(t, second, 5*time.Second, "the second caller")
			must(t, two.err)
			if n := hget(t, s, "x", "me"); n != "3" {
				t.Errorf("Redis counts %q holds, want 3", n)
			}
			must(t, one.hold.Unlock())
			must(t, two.hold.Unlock())
		}
		must(t, there.Unlock())
		got := locktest.Get(t, foreign, 5*time.Second, "the foreign waiter")
		must(t, got.err)
		must(t, got.hold.Unlock())
		nothingLeft(t, s, a, b)
	})
}

// The session's lock is lost in a failover. Until Redis has confirmed the claim no section
// begins on it, and its Unlock asks Redis.
func TestADoubtfulClaimIsNotHandedOver(t *testing.T) {
	faultEach(t, func(t *testing.T, s *redistest.Server) {
		st := newStage(t, s, rlock.Config{})
		_, h := st.lock(st.ctx)
		next := st.queue(st.ctx)
		seen, answer := st.p.HoldRequest(faultRuns(t, "renew"))
		defer answer()
		s.FlushAll(t)
		st.p.Cut()
		locktest.Get(t, seen, 10*time.Second, "the session has connected anew, and asks for its claim")
		unlocked := faultGo(h.Unlock)
		redistest.Eventually(t, 5*time.Second, "the release is sent", func() bool {
			_, _, _, scheduled, _ := st.ses.Books()
			return scheduled == 0 || st.count() > 0
		})
		answer()
		locktest.Is(t, "Unlock", locktest.Get(t, unlocked, 5*time.Second, "Unlock"), rlock.ErrLost)
		got := st.in(next)
		if owner := onlyOwner(t, st); owner != got.hold.Owner() || owner == h.Owner() || st.count() > 0 {
			t.Errorf("the next owner is %q, by Redis %q, %d hand-overs", got.hold.Owner(), owner, st.count())
		}
		must(t, got.ctx.Err())
		must(t, got.hold.Unlock())
		nothingLeft(t, s, st.ses)
	})
}

// A lock is lost while a nested Lock waits for its turn, and all holds that it had are being
// unlocked. The nested Lock leaves last, so it is the one to have released what may still stand.
func TestALockLostUnderAWaitingNestedLockIsReleased(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ses, p := faultDial(t, s, rlock.Config{Lease: 2 * time.Second})
		m := rlock.New(ses, redistest.Name(t))
		section, outer, err := m.Lock(within(t, 30*time.Second))
		must(t, err)
		_, inner, err := m.Lock(section)
		must(t, err)
		seen, answer := p.HoldReply(faultRuns(t, "release"))
		defer answer()
		first := faultGo(inner.Unlock)
		locktest.Get(t, seen, 5*time.Second, "the release of the inner hold")
		nested := faultGoLock(m, section)
		redistest.Eventually(t, 5*time.Second, "the nested Lock to wait", outer.Awaited)
		second := faultGo(outer.Unlock)
		locktest.Is(t, "nested Lock", locktest.Get(t, nested, 20*time.Second, "the nested Lock").err, rlock.ErrLost)
		locktest.Is(t, "outer Unlock", locktest.Get(t, second, 5*time.Second, "the outer Unlock"), rlock.ErrLost)
		answer()
		locktest.Get(t, first, 5*time.Second, "the inner Unlock")
		redistest.Eventually(t, 5*time.Second, "the rest to be released", func() bool { return faultSent(t, p, "release") >= 2 })
	})
}
