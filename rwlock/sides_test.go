package rwlock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/rwlock"
)

// Read -> write is refused at once, by Lock and TryLock, for owners of all kinds, also
// beside other readers and while a writer waits; and the read hold stays (R23).
func TestUpgradeIsRefusedAtOnce(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		sa, sb := dial(t, s, slow), dial(t, s, slow)
		a, b := rwlock.New(sa, "x"), rwlock.New(sb, "x")
		ctx := within(t, 30*time.Second)
		named := rlock.WithOwner(ctx, "me")
		for _, c := range []struct {
			what string
			ctx  context.Context
			by   *rwlock.RWMutex // who asks for the write side
		}{{"an own owner", ctx, a}, {"a named owner", named, a}, {"a named owner that reads in another session", named, b}} {
			section, r := hold(t, c.ctx, a.RLock)
			_, other := hold(t, ctx, b.RLock)
			ask := section
			if c.by == b {
				ask = named
			}
			for range 2 {
				_, h, err := c.by.TryLock(ask)
				is(t, c.what+", TryLock", err, rwlock.ErrUpgrade)
				got, h2, err := c.by.Lock(ask)
				is(t, c.what+", Lock", err, rwlock.ErrUpgrade)
				if h != nil || h2 != nil || got != ask {
					t.Errorf("%s: a hold, or another context", c.what)
				}
				if errors.Is(err, rlock.ErrNotAcquired) || errors.Is(err, rlock.ErrLost) {
					t.Errorf("%s: %v matches another error", c.what, err)
				}
				is(t, c.what+", Do", c.by.Do(ask, func(context.Context) error { t.Error("fn was run"); return nil }), rwlock.ErrUpgrade)
			}
			if section.Err() != nil || field(t, s, "x", r.Owner()) != "1" {
				t.Errorf("%s: the read hold is gone", c.what)
			}
			must(t, r.Unlock())
			must(t, other.Unlock())
		}
		nothingLeft(t, s)
	})
}

// A downgrade lets readers in that wait, in every session, by message (Redisson sends
// none), and no writer.
func TestDowngradeWakesReaders(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		a, b, c := rwlock.New(dial(t, s, slow), "x"), rwlock.New(dial(t, s, slow), "x"), rwlock.New(dial(t, s, slow), "x")
		ctx := within(t, 30*time.Second)
		heard, stop := messages(t, s, "x")
		section, w := hold(t, ctx, a.Lock)
		_, r := hold(t, section, a.RLock)
		waiting := []<-chan locked{goLock(ctx, b.RLock), goLock(ctx, b.RLock), goLock(ctx, c.RLock), goLock(ctx, a.RLock)}
		readersWait(t, s, "x", 2) // of b and c: the writer's own session knows by itself
		must(t, w.Unlock())
		var readers []*rlock.Hold
		for _, c := range waiting {
			readers = append(readers, in(t, c, 10*time.Second, "a reader, at the downgrade").hold)
		}
		if m := locktest.Get(t, heard, 5*time.Second, "the message"); m != "1" {
			t.Errorf("the message is %q, want 1", m)
		}
		refused(t, ctx, c.TryLock, "a writer after the downgrade")
		if section.Err() != nil {
			t.Error("the section ended with the downgrade")
		}
		for _, h := range append(readers, r) {
			must(t, h.Unlock())
		}
		stop()
		nothingLeft(t, s)
	})
}

// A downgrade lets another owner of the same session in before the answer to it is here:
// that is no sign that the lock was lost.
func TestReaderOfTheSameSessionAtADowngrade(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		m := rwlock.New(dial(t, s, slow), "x")
		ctx := within(t, 60*time.Second)
		for range redistest.Rounds(100) {
			section, w := hold(t, ctx, m.Lock)
			_, r := hold(t, section, m.RLock)
			got := make(chan error, 4)
			for range cap(got) {
				go func() {
					for {
						_, h, err := m.TryRLock(ctx)
						if err == nil {
							got <- h.Unlock()
							return
						}
						// On a busy machine there may be no answer within a second.
						if !errors.Is(err, rlock.ErrNotAcquired) && !errors.Is(err, rlock.ErrUnavailable) {
							got <- err
							return
						}
					}
				}()
			}
			must(t, w.Unlock())
			for range cap(got) {
				must(t, <-got)
			}
			if section.Err() != nil {
				t.Fatalf("the owner that downgraded: %v", context.Cause(section))
			}
			must(t, r.Unlock())
		}
	})
}

// What a downgrade keeps stands for as long as its owner trusts it: for the longest lease.
func TestDowngradeKeepsTheLongerLease(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		m := rwlock.New(dial(t, s, rlock.Config{Lease: 20 * time.Second}), "x")
		ctx := within(t, 30*time.Second)
		section, w := hold(t, ctx, m.Lock, rlock.Lease(5*time.Minute))
		_, r := hold(t, section, m.RLock)
		must(t, w.Unlock())
		trusted := r.Remaining()
		for _, key := range []string{"x", "relock_readers:{x}", "relock_rw_holds:{x}:" + r.Owner(), "{x}:" + r.Owner() + ":rwlock_timeout:1"} {
			if got := pttl(t, s, key); got < trusted {
				t.Errorf("%s lives for %v, the hold is trusted for %v", key, got, trusted)
			}
		}
		score, err := s.Do(t, "ZSCORE", "relock_readers:{x}", r.Owner()).AsFloat64()
		must(t, err)
		if left := time.Until(time.UnixMilli(int64(score))); left < trusted {
			t.Errorf("the reader expires in %v, the hold is trusted for %v", left, trusted)
		}
		must(t, r.Unlock())

		// With fixed leases all round the read hold keeps its own (R24).
		section, w = hold(t, ctx, m.Lock, rlock.Lease(5*time.Minute))
		_, r = hold(t, section, m.RLock, rlock.Lease(10*time.Second))
		must(t, w.Unlock())
		if got := pttl(t, s, "x"); got > 10*time.Second+rounding || r.Remaining() > 10*time.Second {
			t.Errorf("the lock lives for %v after the downgrade to a lease of 10s, trusted for %v", got, r.Remaining())
		}
		must(t, r.Unlock())
		nothingLeft(t, s)
	})
}
