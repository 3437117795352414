package rwlock_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"relock/internal/test/faulttest"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/rwlock"
)

// A passer is a session behind a proxy whose writers hand over in memory, and counts that.
type passer struct {
	*rwlock.RWMutex
	ses     *rlock.Session
	proxy   *faulttest.Proxy
	waiting <-chan struct{}
	passed  *atomic.Int64
}

func newPasser(t *testing.T, s *redistest.Server, cfg rlock.Config) *passer {
	t.Helper()
	tr, waiting := locktest.Waiting()
	passed := new(atomic.Int64)
	tr.HandedOver = func(string, string, string) { passed.Add(1) }
	cfg.Trace = tr
	ses, p := locktest.DialProxy(t, s, cfg)
	return &passer{rwlock.New(ses, "x"), ses, p, waiting, passed}
}

// next has a writer wait for what is held.
func (m *passer) next(t *testing.T, ctx context.Context) <-chan locked {
	t.Helper()
	c := goLock(ctx, m.Lock)
	locktest.Get(t, m.waiting, 10*time.Second, "the next writer to wait")
	return c
}

// handed returns a writer that the lock was handed to. On a busy machine some go through
// Redis: then again.
func (m *passer) handed(t *testing.T, ctx context.Context) locked {
	t.Helper()
	for {
		_, h := hold(t, ctx, m.Lock)
		c, before := m.next(t, ctx), m.passed.Load()
		must(t, h.Unlock())
		l := in(t, c, 10*time.Second, "the next writer")
		if m.passed.Load() > before {
			return l
		}
		must(t, l.hold.Unlock())
	}
}

// Redis follows: the one in has the field, the id and the TTL, the one before has nothing
// left, and nobody's mark keeps readers out afterwards.
func TestHandOverIsFollowed(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		m, other := newPasser(t, s, slow), rwlock.New(dial(t, s, slow), "x")
		ctx := within(t, 30*time.Second)
		section, h := hold(t, ctx, m.Lock)
		for m.passed.Load() < 5 { // on a busy machine some go through Redis
			c := m.next(t, ctx)
			must(t, h.Unlock())
			ends(t, section, time.Second, rlock.ErrReleased)
			l := in(t, c, 10*time.Second, "the next writer")
			section, h = l.ctx, l.hold
			refused(t, ctx, other.TryLock, "a writer")
			refused(t, ctx, other.TryRLock, "a reader")
		}
		owner := h.Owner()
		redistest.Eventually(t, 10*time.Second, "Redis to follow", func() bool { return field(t, s, "x", owner+":write") == "1" })
		if keys := strings.Join(s.Keys(t), " "); keys != "relock_holds:{x}:"+owner+" x" {
			t.Errorf("in Redis are %s", keys)
		}
		must(t, h.Unlock())
		_, r := hold(t, ctx, other.TryRLock)
		must(t, r.Unlock())
		nothingLeft(t, s)
	})
}

// Nested holds of either side do not keep the lock from being handed over once they are
// unlocked, in any order but a downgrade; that lets readers in, and nobody is handed the
// write side.
func TestHandOverAfterNestedHolds(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		m := newPasser(t, s, slow)
		ctx := within(t, 30*time.Second)
		for i, nest := range []lockFunc{m.RLock, m.Lock} {
			before := m.passed.Load()
			for range 50 { // on a busy machine some go through Redis
				section, h := hold(t, ctx, m.Lock)
				_, inner := hold(t, section, nest)
				c := m.next(t, ctx)
				must(t, inner.Unlock())
				must(t, h.Unlock())
				must(t, in(t, c, 10*time.Second, "the next writer").hold.Unlock())
			}
			if m.passed.Load() == before {
				t.Errorf("case %d: never handed over", i)
			}
		}
		section, w := hold(t, ctx, m.Lock)
		_, r := hold(t, section, m.RLock)
		c := m.next(t, ctx)
		before := m.passed.Load()
		must(t, w.Unlock())
		notIn(t, c, "a writer beside readers")
		if section.Err() != nil || m.passed.Load() != before {
			t.Errorf("the downgraded section: %v; %d hand-overs", context.Cause(section), m.passed.Load()-before)
		}
		must(t, r.Unlock())
		must(t, in(t, c, 10*time.Second, "the writer").hold.Unlock())
		nothingLeft(t, s)
	})
}

// The reply to a transfer is lost: it is sent again, and nobody is told of a loss (R8).
func TestFaultTransferReplyLost(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		m := newPasser(t, s, slow)
		ctx := within(t, 30*time.Second)
		m.proxy.DropReply(calls("transfer_write"))
		l := m.handed(t, ctx)
		_, nested := hold(t, l.ctx, m.RLock) // waits for its turn
		if n := locktest.Sent(m.proxy, calls("transfer_write")); n < 2 {
			t.Errorf("%d transfers were sent, want the lost one again", n)
		}
		must(t, l.hold.Unlock())
		must(t, nested.Unlock())
		nothingLeft(t, s)
	})
}

// Unlock while a transfer is under way waits for it; Close does as well, and releases what
// is held. Nothing is left, and a writer of another session gets in.
func TestFaultUnlockDuringATransfer(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		for _, closes := range []bool{false, true} {
			m, other := newPasser(t, s, slow), rwlock.New(dial(t, s, slow), "x")
			ctx := within(t, 30*time.Second)
			seen, release := m.proxy.HoldReply(calls("transfer_write"))
			l := m.handed(t, ctx)
			locktest.Get(t, seen, 10*time.Second, "the transfer")
			unlocked, closed := make(chan error, 1), make(chan error, 1)
			if closes {
				go func() { closed <- m.ses.Close() }()
				ends(t, l.ctx, 10*time.Second, rlock.ErrClosed)
				release()
				must(t, locktest.Get(t, closed, 10*time.Second, "Close"))
				is(t, "Unlock", l.hold.Unlock(), rlock.ErrClosed)
			} else {
				go func() { unlocked <- l.hold.Unlock() }()
				refused(t, ctx, other.TryLock, "another writer, while the transfer is under way")
				release()
				must(t, locktest.Get(t, unlocked, 10*time.Second, "Unlock"))
				is(t, "a second Unlock", l.hold.Unlock(), rlock.ErrNotHeld)
			}
			_, w := hold(t, ctx, other.TryLock)
			must(t, w.Unlock())
			nothingLeft(t, s)
		}
	})
}

// The lock is gone when Redis is told of a hand-over: the one who is in is told, and not
// later than by a renewal; whoever has it then is not touched.
func TestFaultTransferFindsTheLockGone(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		m, other := newPasser(t, s, slow), rwlock.New(dial(t, s, slow), "x")
		ctx := within(t, 30*time.Second)
		seen, release := m.proxy.HoldRequest(calls("transfer_write"))
		l := m.handed(t, ctx)
		locktest.Get(t, seen, 10*time.Second, "the transfer")
		must(t, s.Do(t, "DEL", "x").Error())
		_, w := hold(t, ctx, other.TryLock)
		release()
		ends(t, l.ctx, 10*time.Second, rlock.ErrLost)
		is(t, "Unlock", l.hold.Unlock(), rlock.ErrLost)
		if got := field(t, s, "x", w.Owner()+":write"); got != "1" {
			t.Errorf("the successor's count is %q", got)
		}
		must(t, w.Unlock())
	})
}
