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

// sides runs fn for readers and for writers, on both kinds of server, with the names of
// the scripts of that side.
func sides(t *testing.T, fn func(t *testing.T, s *redistest.Server, side func(*rwlock.RWMutex) lockFunc, acquire, release string)) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		t.Run("read", func(t *testing.T) {
			fn(t, s, func(m *rwlock.RWMutex) lockFunc { return m.RLock }, "acquire_read", "release_read")
		})
		s.FlushAll(t)
		t.Run("write", func(t *testing.T) {
			fn(t, s, func(m *rwlock.RWMutex) lockFunc { return m.Lock }, "acquire_write", "release_write")
		})
	})
}

// sidesBubble is sides for tests that judge by the clock.
func sidesBubble(t *testing.T, fn func(t *testing.T, s *redistest.Server, side func(*rwlock.RWMutex) lockFunc)) {
	t.Parallel()
	for name, side := range map[string]func(*rwlock.RWMutex) lockFunc{
		"read":  func(m *rwlock.RWMutex) lockFunc { return m.RLock },
		"write": func(m *rwlock.RWMutex) lockFunc { return m.Lock },
	} {
		t.Run(name, func(t *testing.T) {
			redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) { fn(t, s, side) })
		})
	}
}

// The context ends while the acquire is in flight: the caller gets an error, and within a
// second nothing is held, outermost or nested (R7). Nested readers ask Redis if their owner is
// named.
func TestFaultAcquireInFlightIsTakenBack(t *testing.T) {
	sides(t, func(t *testing.T, s *redistest.Server, side func(*rwlock.RWMutex) lockFunc, acquire, _ string) {
		ses, p := locktest.DialProxy(t, s, slow)
		m := rwlock.New(ses, "x")
		ctx := within(t, 30*time.Second)
		end := func(ctx context.Context) {
			t.Helper()
			ctx, cancel := context.WithCancel(ctx)
			seen, release := p.HoldReply(calls(acquire))
			c := goLock(ctx, side(m))
			locktest.Get(t, seen, 5*time.Second, "the script to have run")
			cancel()
			is(t, "Lock", locktest.Get(t, c, 5*time.Second, "Lock to return").err, rlock.ErrNotAcquired, context.Canceled)
			release()
		}
		end(ctx)
		redistest.Eventually(t, time.Second+s.Slack(), "nothing to be held", func() bool { return len(s.Keys(t)) == 0 })
		section, h := hold(t, rlock.WithOwner(ctx, "me"), side(m))
		end(section)
		redistest.Eventually(t, time.Second+s.Slack(), "one hold to be held", func() bool {
			st, err := m.State(ctx)
			return err == nil && st.Owners[h.Owner()] == 1
		})
		must(t, h.Unlock())
		nothingLeft(t, s)

		done, cancel := context.WithCancel(ctx)
		cancel()
		p.Reset()
		_, _, err := side(m)(done)
		is(t, "Lock with a context that is done", err, context.Canceled)
		if errors.Is(err, rlock.ErrNotAcquired) || p.Count() != 0 {
			t.Errorf("%v; %d commands", err, p.Count())
		}
	})
}

// The reply of an acquire is dropped and the command sent again: the count is 1, or 2 for
// a nested one (R8). That of a private reader stays 1: its nested holds are counted in memory.
func TestFaultAcquireReplyDropped(t *testing.T) {
	sides(t, func(t *testing.T, s *redistest.Server, side func(*rwlock.RWMutex) lockFunc, acquire, _ string) {
		ses, p := locktest.DialProxy(t, s, slow)
		m := rwlock.New(ses, "x")
		for i, ctx := range []context.Context{within(t, 30*time.Second), rlock.WithOwner(within(t, 30*time.Second), "me")} {
			nested := 2
			if i == 0 && acquire == "acquire_read" {
				nested = 1
			}
			count := func(h *rlock.Hold, want int) {
				t.Helper()
				if st, err := m.State(ctx); err != nil || st.Owners[h.Owner()] != want {
					t.Errorf("State %+v, %v, want %d", st, err, want)
				}
			}
			p.Reset()
			p.DropReply(calls(acquire))
			section, h := hold(t, ctx, side(m))
			count(h, 1)
			if nested == 2 {
				p.DropReply(calls(acquire))
			}
			_, h2 := hold(t, section, side(m))
			count(h, nested)
			if n := locktest.Sent(p, calls(acquire)); n != 2*nested {
				t.Errorf("%d attempts were sent, want %d", n, 2*nested)
			}
			must(t, h2.Unlock())
			count(h, 1)
			must(t, h.Unlock())
			nothingLeft(t, s)
		}
	})
}

// The reply of a release is dropped: Unlock reports success, a second is ErrNotHeld, a
// nested hold is not released one level too far, and a successor is not touched (R9).
func TestFaultReleaseReplyDropped(t *testing.T) {
	sides(t, func(t *testing.T, s *redistest.Server, side func(*rwlock.RWMutex) lockFunc, _, release string) {
		ses, p := locktest.DialProxy(t, s, slow)
		m, next := rwlock.New(ses, "x"), rwlock.New(dial(t, s, rlock.Config{PollFloor: 50 * time.Millisecond}), "x")
		for _, ctx := range []context.Context{within(t, 30*time.Second), rlock.WithOwner(within(t, 30*time.Second), "me")} {
			section, h := hold(t, ctx, side(m))
			_, inner := hold(t, section, side(m))
			waiting := goLock(context.Background(), next.Lock)
			p.DropReply(calls(release))
			must(t, inner.Unlock())
			is(t, "a second Unlock", inner.Unlock(), rlock.ErrNotHeld)
			if st, err := m.State(ctx); err != nil || st.Owners[h.Owner()] != 1 || section.Err() != nil {
				t.Errorf("State %+v, %v; want one hold", st, err)
			}
			p.DropReply(calls(release))
			must(t, h.Unlock())
			writer := in(t, waiting, 10*time.Second, "the successor")
			is(t, "a second Unlock", h.Unlock(), rlock.ErrNotHeld)
			if got := field(t, s, "x", writer.hold.Owner()+":write"); got != "1" {
				t.Errorf("the successor's count is %q", got)
			}
			must(t, writer.hold.Unlock())
			redistest.Eventually(t, 5*time.Second, "no key", func() bool { return len(s.Keys(t)) == 0 })
		}
	})
}

// Every message is lost: waiters of both sides get in within the poll floor (R13).
func TestFaultMessagesLost(t *testing.T) {
	const floor = 300 * time.Millisecond
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		holder := rwlock.New(dial(t, s, slow), "x")
		ses, p := locktest.DialProxy(t, s, rlock.Config{PollFloor: floor})
		p.DropMessages(true)
		m := rwlock.New(ses, "x")
		ctx := within(t, 30*time.Second)
		for _, c := range []struct {
			what     string
			lock     lockFunc
			wait     lockFunc
			downward bool
		}{{"writer after reader", holder.RLock, m.Lock, false}, {"reader after writer", holder.Lock, m.RLock, false}, {"reader at a downgrade", holder.Lock, m.RLock, true}} {
			section, h := hold(t, ctx, c.lock)
			var r *rlock.Hold
			if c.downward {
				_, r = hold(t, section, holder.RLock)
			}
			w := goLock(ctx, c.wait)
			listening(t, s, "x", 1)
			begin := time.Now()
			must(t, h.Unlock())
			got := in(t, w, 20*time.Second, c.what)
			if took := time.Since(begin); took > floor+s.Slack() {
				t.Errorf("%s: got in after %v", c.what, took)
			}
			must(t, got.hold.Unlock())
			if r != nil {
				must(t, r.Unlock())
			}
		}
		nothingLeft(t, s)
	})
}

// The refusal of a waiting writer is lost on its way, and the writer gives up: its mark goes too.
func TestFaultMarkOfAnUnansweredAttemptGoes(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		first, readers := rwlock.New(dial(t, s, slow), "x"), rwlock.New(dial(t, s, slow), "x")
		ses, p := locktest.DialProxy(t, s, slow)
		m := rwlock.New(ses, "x")
		ctx := within(t, 30*time.Second)
		_, r := hold(t, ctx, first.RLock)
		seen, release := p.HoldReply(calls("acquire_write"))
		waitCtx, cancel := context.WithCancel(ctx)
		w := goLock(waitCtx, m.Lock)
		locktest.Get(t, seen, 5*time.Second, "the script to have run")
		refused(t, ctx, readers.TryRLock, "a reader behind the mark")
		reader := goLock(ctx, readers.RLock)
		listening(t, s, "x", 1)
		cancel()
		is(t, "Lock", locktest.Get(t, w, 5*time.Second, "Lock").err, rlock.ErrNotAcquired)
		release()
		must(t, in(t, reader, 5*time.Second, "the reader").hold.Unlock())
		must(t, r.Unlock())
		nothingLeft(t, s)
	})
}

// With the network cut a reader and a writer are told before anybody else can get in (R1).
func TestFaultCutOffHolderIsToldFirst(t *testing.T) {
	sidesBubble(t, func(t *testing.T, s *redistest.Server, side func(*rwlock.RWMutex) lockFunc) {
		lease := s.Slowed(800 * time.Millisecond)
		ses, p := locktest.DialProxy(t, s, rlock.Config{Lease: lease})
		m, next := rwlock.New(ses, "x"), rwlock.New(dial(t, s, slow), "x")
		ctx := within(t, 30*time.Second)
		section, h := hold(t, ctx, side(m))
		stalls := locktest.WatchStalls(t)
		p.BlackHole(true)
		writer := in(t, goLock(ctx, next.Lock), 20*time.Second, "the writer")
		if section.Err() == nil && stalls.Longest() < lease/100 {
			t.Error("the writer is in before the holder is told")
		}
		ends(t, section, s.Slack(), rlock.ErrLost)
		is(t, "Unlock", h.Unlock(), rlock.ErrLost)
		p.BlackHole(false)
		// What the cut off holder releases late must not touch the writer.
		must(t, ses.Close())
		if got := field(t, s, "x", writer.hold.Owner()+":write"); got != "1" {
			t.Errorf("the writer's count is %q", got)
		}
		must(t, writer.hold.Unlock())
	})
}
