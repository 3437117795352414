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
	"relock/locktrace"
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
	tr.HandedOver = func(locktrace.HandedOver) { passed.Add(1) }
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

// Redis hears nothing of a hand-over: the owner, its one hold and its key stay while callers follow each other;
// the section before has ended, and no mark keeps readers out afterwards.
func TestHandOverSendsNothing(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		m, other := newPasser(t, s, slow), rwlock.New(dial(t, s, slow), "x")
		ctx := within(t, 30*time.Second)
		section, h := hold(t, ctx, m.Lock)
		for m.passed.Load() < 5 { // on a busy machine some go through Redis
			c, before, passed := m.next(t, ctx), h.Owner(), m.passed.Load()
			m.proxy.Reset()
			must(t, h.Unlock())
			ends(t, section, s.Slack(), rlock.ErrReleased)
			l := in(t, c, 10*time.Second, "the next writer")
			section, h = l.ctx, l.hold
			if inMemory := m.passed.Load() > passed; inMemory != (h.Owner() == before) || inMemory && m.proxy.Count("EVALSHA") > 0 {
				t.Errorf("handed over in memory: %v; owner %q after %q, %q were sent", inMemory, h.Owner(), before, m.proxy.Log())
			}
			refused(t, ctx, other.TryLock, "a writer")
			refused(t, ctx, other.TryRLock, "a reader")
		}
		owner := h.Owner()
		if got := field(t, s, "x", owner+":write"); got != "1" {
			t.Errorf("the writer's count is %q", got)
		}
		if keys := strings.Join(s.Keys(t), " "); keys != "x" {
			t.Errorf("in Redis are %s", keys)
		}
		must(t, h.Unlock())
		_, r := hold(t, ctx, other.TryRLock)
		must(t, r.Unlock())
		nothingLeft(t, s)
	})
}

// Nested holds of the write side do not keep the lock from being handed over once they are
// unlocked. A claim that had the read side too is released; and a downgrade lets readers in,
// and hands the write side to nobody.
func TestHandOverAfterNestedHolds(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		m := newPasser(t, s, slow)
		ctx := within(t, time.Minute)
		round := func(nest lockFunc) {
			section, h := hold(t, ctx, m.Lock)
			_, inner := hold(t, section, nest)
			c := m.next(t, ctx)
			must(t, inner.Unlock())
			must(t, h.Unlock())
			must(t, in(t, c, 10*time.Second, "the next writer").hold.Unlock())
		}
		for m.passed.Load() == 0 { // a busy machine takes longer than a slice for most rounds; these go through Redis
			round(m.Lock)
		}
		handed := m.passed.Load()
		for range redistest.Rounds(50) {
			round(m.RLock)
		}
		if n := m.passed.Load() - handed; n != 0 {
			t.Errorf("a claim that had the read side too was handed over %d times", n)
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

// The lock is gone when it is handed over: the writer that is in by then is told by its
// Unlock, and the owner that has the lock in Redis is not touched.
func TestHandOverOfALostLock(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		m, other := newPasser(t, s, slow), rwlock.New(dial(t, s, slow), "x")
		ctx := within(t, 30*time.Second)
		l := m.handed(t, ctx)
		must(t, s.Do(t, "DEL", "x").Error())
		_, w := hold(t, ctx, other.Lock) // which gives a busy machine more than the second of a TryLock
		is(t, "Unlock", l.hold.Unlock(), rlock.ErrLost)
		if got := field(t, s, "x", w.Owner()+":write"); got != "1" {
			t.Errorf("the successor's count is %q", got)
		}
		must(t, w.Unlock())
	})
}
