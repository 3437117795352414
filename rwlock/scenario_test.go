package rwlock_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/rwlock"
)

// A nested hold with a fixed lease of an hour is unlocked, the lock passes to the next writer
// of the session, and that one's process dies: the lock is free one session lease later. A
// nested reader with such a lease does not lengthen the lock in Redis at all.
func TestLongNestedLeaseEndsWithItsClaim(t *testing.T) {
	const lease = time.Second
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, 30*time.Second)
		other := rwlock.New(dial(t, s, slow), "x")
		dies := func(m *passer) {
			t.Helper()
			if got := pttl(t, s, "x"); got > lease+rounding {
				t.Errorf("the lock lives for %v, the session's lease is %v", got, lease)
			}
			m.proxy.BlackHole(true)
			must(t, in(t, goLock(ctx, other.Lock, rlock.Wait(5*time.Second)), lease+2*time.Second, "a writer of another session").hold.Unlock())
		}

		m := newPasser(t, s, rlock.Config{Lease: lease})
		section, h := hold(t, ctx, m.Lock)
		_, long := hold(t, section, m.Lock, rlock.Lease(time.Hour))
		c := m.next(t, ctx)
		must(t, long.Unlock())
		must(t, h.Unlock())
		in(t, c, 5*time.Second, "the next writer")
		dies(m)

		m = newPasser(t, s, rlock.Config{Lease: lease})
		section, _ = hold(t, ctx, m.RLock)
		hold(t, section, m.RLock, rlock.Lease(time.Hour))
		dies(m)
	})
}

// Readers of one session overlap without end, for as long as the next one comes in: a writer of
// another session gets in (R23).
func TestWriterGetsInAmongReadersThatOverlap(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		m, w := rwlock.New(dial(t, s, slow), "x"), rwlock.New(dial(t, s, slow), "x")
		ctx := within(t, 60*time.Second)
		var came atomic.Int64
		stop := crowd([]*rlock.Session{nil}, 8, func(*rlock.Session) {
			section, r, err := m.RLock(ctx)
			if err != nil {
				t.Error(err)
				return
			}
			// It leaves when two more have come, or if nobody can come any more.
			deadline := time.Now().Add(200 * time.Millisecond)
			for n := came.Add(1); came.Load() < n+2 && time.Now().Before(deadline); {
				busy(section, 100*time.Microsecond)
			}
			if err := r.Unlock(); err != nil {
				t.Error(err)
			}
		})
		defer stop()
		for range 5 {
			before := came.Load()
			redistest.Eventually(t, 10*time.Second, "readers to come", func() bool { return came.Load() > before+10 })
			_, h := hold(t, ctx, w.Lock, rlock.Wait(5*time.Second))
			must(t, h.Unlock())
		}
		stop()
		nothingLeft(t, s)
	})
}

// A reader whose context has ended, and that never unlocks, does not prolong the claim that it
// shares: its own section is over one lease later, and the claim one lease after the last of
// the others has left (R22).
func TestReaderThatNeverUnlocksProlongsNothing(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		lease := s.Slowed(900 * time.Millisecond)
		m, w := newSharer(t, s, rlock.Config{Lease: lease}), rwlock.New(dial(t, s, slow), "x")
		ctx := within(t, 90*time.Second)
		all := m.share(t, s, 2)
		gone, stays := all[0], all[1]
		gone.end()
		redistest.Eventually(t, lease+s.Slack(), "the section to be over", func() bool { return gone.hold.Remaining() == 0 })
		until := time.Now().Add(2 * lease)
		redistest.Eventually(t, 30*time.Second, "leases to pass", func() bool {
			refused(t, ctx, w.TryLock, "a writer beside the other reader")
			return time.Now().After(until)
		})
		if stays.section.Err() != nil {
			t.Errorf("the other reader was lost: %v", context.Cause(stays.section))
		}
		must(t, stays.hold.Unlock())
		writer := in(t, goLock(ctx, w.Lock), lease+s.Slack(), "the writer, when the claim's lease is over")
		is(t, "Unlock", gone.hold.Unlock(), rlock.ErrLost)
		must(t, writer.hold.Unlock())

		all = m.share(t, s, 2)
		all[0].end()
		must(t, all[1].hold.Unlock())
		writer = in(t, goLock(ctx, w.Lock), lease+s.Slack(), "the writer, when the last living reader has left")
		is(t, "Unlock", all[0].hold.Unlock(), rlock.ErrLost)
		must(t, writer.hold.Unlock())
		nothingLeft(t, s)
	})
}

// A downgraded claim is its owner's alone: another reader of the session asks for a claim of
// its own, a writer of the session waits for both, and is not handed the claim.
func TestDowngradedClaimIsNotEntered(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		m := newPasser(t, s, slow)
		ctx := within(t, 90*time.Second)
		section, w := hold(t, ctx, m.Lock)
		_, r := hold(t, section, m.RLock)
		must(t, w.Unlock())
		_, beside := hold(t, ctx, m.RLock)
		if beside.Owner() == r.Owner() {
			t.Error("another reader has joined the downgraded claim")
		}
		writer := m.next(t, ctx)
		redistest.Eventually(t, 5*time.Second, "the writer to be refused", func() bool { return writersWaiting(t, s, "x") == 1 })
		must(t, beside.Unlock())
		notIn(t, writer, "the downgraded reader is left")
		if section.Err() != nil {
			t.Errorf("the downgraded section ended: %v", context.Cause(section))
		}
		must(t, r.Unlock())
		l := in(t, writer, 10*time.Second, "the writer")
		if l.hold.Owner() == r.Owner() || m.passed.Load() != 0 {
			t.Error("the writer was handed the downgraded claim")
		}
		if got := field(t, s, "x", l.hold.Owner()+":write"); got != "1" {
			t.Errorf("Redis counts %q write holds of the writer", got)
		}
		must(t, l.hold.Unlock())

		for range 10 { // at once, while a hand-over would still be in time
			section, w := hold(t, ctx, m.Lock)
			_, r := hold(t, section, m.RLock)
			writer := m.next(t, ctx)
			must(t, w.Unlock())
			must(t, r.Unlock())
			must(t, in(t, writer, 10*time.Second, "the writer").hold.Unlock())
		}
		if n := m.passed.Load(); n != 0 {
			t.Errorf("%d downgraded claims were handed over", n)
		}
		nothingLeft(t, s)
	})
}

// A stubborn context blocks once where it is asked whether it lives.
type stubborn struct {
	context.Context
	armed atomic.Bool
	asked chan struct{}
	goOn  chan struct{}
}

func (c *stubborn) Err() error {
	if c.armed.CompareAndSwap(true, false) {
		close(c.asked)
		<-c.goOn
	}
	return c.Context.Err()
}

// A renewal was made up before a downgrade and is sent after it. Its answer is that the write
// side is gone, which is no news: the reader lives.
func TestDowngradeOutrunsARenewal(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		lease := s.Slowed(3 * time.Second)
		ses, p := locktest.DialProxy(t, s, rlock.Config{Lease: lease})
		x, y := rwlock.New(ses, "x"), rwlock.New(ses, "y")
		ctx := within(t, 90*time.Second)
		slowly := &stubborn{Context: ctx, asked: make(chan struct{}), goOn: make(chan struct{})}
		goOn := sync.OnceFunc(func() { close(slowly.goOn) })
		defer goOn()
		section, w := hold(t, ctx, x.Lock)
		_, r := hold(t, section, x.RLock)
		_, hy := hold(t, slowly, y.Lock) // is renewed together with x, after it
		slowly.armed.Store(true)
		locktest.Get(t, slowly.asked, lease, "the renewal")
		must(t, w.Unlock())
		p.Reset()
		goOn()
		renewed := func() int { return locktest.Sent(p, calls("renew")) }
		redistest.Eventually(t, lease, "the renewal, and another one", func() bool { return renewed() >= 2 })
		if section.Err() != nil || r.Remaining() <= 0 {
			t.Errorf("the reader is lost: %v, %v remain", context.Cause(section), r.Remaining())
		}
		must(t, r.Unlock())
		must(t, hy.Unlock())
		nothingLeft(t, s)
	})
}

// A nested Lock gets no answer for longer than a lease: what its owner holds is renewed all the
// while, and nothing of it is left in the end.
func TestNestedLockThatRetriesKeepsItsClaimRenewed(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		lease := s.Slowed(900 * time.Millisecond)
		ses, p := locktest.DialProxy(t, s, rlock.Config{Lease: lease})
		m := rwlock.New(ses, "x")
		ctx := within(t, 90*time.Second)
		section, w := hold(t, ctx, m.Lock)
		for range 100 {
			p.DropRequest(calls("acquire_read"))
		}
		nestCtx, cancel := context.WithCancel(section)
		defer cancel()
		nested := goLock(nestCtx, m.RLock)
		until := time.Now().Add(4 * lease)
		redistest.Eventually(t, 30*time.Second, "leases to pass", func() bool { return section.Err() != nil || time.Now().After(until) })
		notIn(t, nested, "its attempts get lost")
		if section.Err() != nil || pttl(t, s, "x") <= 0 {
			t.Errorf("the section has ended: %v", context.Cause(section))
		}
		cancel()
		is(t, "nested Lock", locktest.Get(t, nested, 5*time.Second, "the nested Lock").err, context.Canceled)
		must(t, w.Unlock())
		nothingLeft(t, s)
	})
}
