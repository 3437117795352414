package rwlock_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/rwlock"
)

// slow is a Config in which only messages wake anybody within a test.
var slow = rlock.Config{PollFloor: time.Minute}

func TestReadersShareAndWritersAreAlone(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		a, b := rwlock.New(dial(t, s, slow), "x"), rwlock.New(dial(t, s, slow), "x")
		ctx := within(t, 30*time.Second)
		_, r1 := hold(t, ctx, a.RLock)
		_, r2 := hold(t, ctx, a.TryRLock)
		_, r3 := hold(t, ctx, b.RLock)
		refused(t, ctx, a.TryLock, "a writer among readers of its session")
		refused(t, ctx, b.TryLock, "a writer among readers")
		must(t, r1.Unlock())
		must(t, r2.Unlock())
		refused(t, ctx, a.TryLock, "a writer beside the last reader")
		must(t, r3.Unlock())
		_, w := hold(t, ctx, a.TryLock)
		for _, m := range []*rwlock.RWMutex{a, b} {
			refused(t, ctx, m.TryLock, "a second writer")
			refused(t, ctx, m.TryRLock, "a reader beside a writer")
		}
		must(t, w.Unlock())
		is(t, "a second Unlock", w.Unlock(), rlock.ErrNotHeld)
		is(t, "a second Unlock", r1.Unlock(), rlock.ErrNotHeld)
		nothingLeft(t, s)
	})
}

// The last reader wakes a waiting writer, whose end wakes all waiting readers: of
// every session, with one message.
func TestMessagesWakeWhoWaits(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		a, b, c := rwlock.New(dial(t, s, slow), "x"), rwlock.New(dial(t, s, slow), "x"), rwlock.New(dial(t, s, slow), "x")
		ctx := within(t, 30*time.Second)
		heard, stop := messages(t, s, "x")
		_, r1 := hold(t, ctx, a.RLock)
		_, r2 := hold(t, ctx, b.RLock)
		w := goLock(ctx, b.Lock)
		listening(t, s, "x", 2)
		must(t, r1.Unlock())
		notIn(t, w, "one reader is left")
		must(t, r2.Unlock())
		writer := in(t, w, 10*time.Second, "the writer, when the last reader has left")
		if m := locktest.Get(t, heard, 5*time.Second, "the message"); m != "0" {
			t.Errorf("the last reader's message is %q, want 0", m)
		}
		var readers []<-chan locked
		for range 10 {
			readers = append(readers, goLock(ctx, a.RLock), goLock(ctx, c.RLock))
		}
		readersWait(t, s, "x", 2)
		must(t, writer.hold.Unlock())
		for _, r := range readers {
			must(t, in(t, r, 10*time.Second, "a reader, when the writer has left").hold.Unlock())
		}
		if m := locktest.Get(t, heard, 5*time.Second, "the message"); m != "1" {
			t.Errorf("the writer's message is %q, want 1", m)
		}
		stop()
		nothingLeft(t, s)
	})
}

func TestHoldsNestAndEndInAnyOrder(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		a, b := rwlock.New(dial(t, s, slow), "x"), rwlock.New(dial(t, s, slow), "x")
		ctx := within(t, 30*time.Second)
		for _, named := range []bool{false, true} {
			ctx := ctx
			if named {
				ctx = rlock.WithOwner(ctx, "me")
			}
			out := context.Background() // another owner
			section, w1 := hold(t, ctx, a.Lock)
			inner, r1 := hold(t, section, a.RLock)
			_, w2 := hold(t, inner, a.Lock)
			_, r2 := hold(t, section, a.TryRLock)
			st, err := b.State(ctx)
			must(t, err)
			if st.Mode != "write" || len(st.Owners) != 1 || st.Owners[w1.Owner()] != 4 || st.TTL <= 0 {
				t.Errorf("State %+v", st)
			}
			must(t, w1.Unlock())
			refused(t, out, b.TryRLock, "a reader while a write hold is left")
			must(t, r1.Unlock())
			must(t, w2.Unlock())
			if err := section.Err(); err != nil {
				t.Errorf("the section ended although a read hold is left: %v", context.Cause(section))
			}
			_, other := hold(t, out, b.TryRLock)
			if st, err = b.State(ctx); err != nil || st.Mode != "read" || len(st.Owners) != 2 || st.Owners[r2.Owner()] != 1 {
				t.Errorf("State %+v, %v", st, err)
			}
			must(t, other.Unlock())
			must(t, r2.Unlock())
			ends(t, section, s.Slack(), rlock.ErrReleased)
			ends(t, inner, s.Slack(), rlock.ErrReleased)
			if st, err = b.State(ctx); err != nil || st.Mode != "" || len(st.Owners) != 0 || st.TTL != 0 {
				t.Errorf("State of a free lock %+v, %v", st, err)
			}
		}
		nothingLeft(t, s)
	})
}

// A nested read does not wait for a writer that waits for it.
func TestNestedReadPassesAWaitingWriter(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		a, b, c := rwlock.New(dial(t, s, slow), "x"), rwlock.New(dial(t, s, slow), "x"), rwlock.New(dial(t, s, slow), "x")
		ctx := within(t, 30*time.Second)
		section, r1 := hold(t, ctx, a.RLock)
		w := goLock(ctx, b.Lock)
		listening(t, s, "x", 1)
		_, r2 := hold(t, section, a.RLock, rlock.Wait(5*time.Second))
		refused(t, ctx, c.TryRLock, "a reader from outside")
		must(t, r1.Unlock())
		notIn(t, w, "a read hold is left")
		must(t, r2.Unlock())
		must(t, in(t, w, 10*time.Second, "the writer").hold.Unlock())
		nothingLeft(t, s)
	})
}

// Do and RDo release on return, panic and Goexit (R11).
func TestDoReleases(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		m := rwlock.New(dial(t, s, slow), "x")
		ctx := within(t, 30*time.Second)
		boom := errors.New("boom")
		for _, do := range []func(context.Context, func(context.Context) error, ...rlock.LockOption) error{m.Do, m.RDo} {
			is(t, "Do", do(ctx, func(context.Context) error { return boom }), boom)
			nothingLeft(t, s)
			func() {
				defer func() {
					if recover() != boom {
						t.Error("the panic did not go on")
					}
				}()
				_ = do(ctx, func(context.Context) error { panic(boom) })
			}()
			nothingLeft(t, s)
			gone := make(chan struct{})
			go func() {
				defer close(gone)
				_ = do(ctx, func(context.Context) error { runtime.Goexit(); return nil })
			}()
			<-gone
			nothingLeft(t, s)
			is(t, "a lost lock", do(ctx, func(context.Context) error { return s.Do(t, "DEL", "x").Error() }), rlock.ErrLost)
			s.FlushAll(t)
		}
	})
}

// A hold is a value: any goroutine may unlock it; and two goroutines without a common
// context are two owners (R28), or two readers that share one and end by themselves.
func TestOwnerIsAValue(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		m := rwlock.New(dial(t, s, slow), "x")
		ctx := within(t, 30*time.Second)
		_, w := hold(t, ctx, m.Lock)
		refused(t, ctx, m.TryRLock, "another goroutine's owner")
		done := make(chan error)
		go func() { done <- w.Unlock() }()
		must(t, <-done)
		_, r1 := hold(t, ctx, m.RLock)
		section, r2 := hold(t, ctx, m.RLock)
		must(t, r1.Unlock())
		is(t, "a second Unlock", r1.Unlock(), rlock.ErrNotHeld)
		if section.Err() != nil || field(t, s, "x", r2.Owner()) != "1" {
			t.Errorf("one reader's Unlock ended the other: %v", context.Cause(section))
		}
		must(t, r2.Unlock())
		off := rwlock.New(dial(t, s, rlock.Config{HandOverLimit: -1}), "x")
		_, r1 = hold(t, ctx, off.RLock)
		_, r2 = hold(t, ctx, off.RLock)
		if r1.Owner() == r2.Owner() {
			t.Error("two readers are one owner, and HandOverLimit is -1")
		}
		must(t, r1.Unlock())
		must(t, r2.Unlock())
	})
}

// ForceUnlock ends readers and writers, told at once (the first renewal is 10 s away), and
// wakes who waits.
func TestForceUnlock(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		a, b, op := rwlock.New(dial(t, s, slow), "x"), rwlock.New(dial(t, s, slow), "x"), rwlock.New(dial(t, s, slow), "x")
		ctx := within(t, 30*time.Second)
		if found, err := op.ForceUnlock(ctx); found || err != nil {
			t.Errorf("ForceUnlock of a free lock: %v, %v", found, err)
		}
		force := func() {
			t.Helper()
			if found, err := op.ForceUnlock(ctx); !found || err != nil {
				t.Errorf("ForceUnlock: %v, %v", found, err)
			}
		}
		sec1, r1 := hold(t, ctx, a.RLock)
		sec2, r2 := hold(t, rlock.WithOwner(ctx, "named"), b.RLock)
		w := goLock(ctx, op.Lock)
		listening(t, s, "x", 1)
		force()
		for i, sec := range []context.Context{sec1, sec2} {
			ends(t, sec, 5*time.Second, rlock.ErrLost)
			is(t, "Unlock", []*rlock.Hold{r1, r2}[i].Unlock(), rlock.ErrLost)
		}
		writer := in(t, w, 5*time.Second, "the waiting writer")
		_, nested := hold(t, writer.ctx, op.RLock)
		waiting := []<-chan locked{goLock(ctx, a.RLock), goLock(ctx, b.RLock)}
		readersWait(t, s, "x", 2)
		force()
		ends(t, writer.ctx, 5*time.Second, rlock.ErrLost)
		is(t, "Unlock", writer.hold.Unlock(), rlock.ErrLost)
		is(t, "Unlock", nested.Unlock(), rlock.ErrLost)
		for _, c := range waiting {
			must(t, in(t, c, 5*time.Second, "a waiting reader").hold.Unlock())
		}
	})
}

// ForceUnlock tells a named owner at once, although no context wants its lock to be renewed.
func TestForceUnlockOfAnOwnerThatIsNotRenewed(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		a, op := rwlock.New(dial(t, s, slow), "x"), rwlock.New(dial(t, s, slow), "x")
		ctx, end := context.WithCancel(within(t, 30*time.Second))
		_, h := hold(t, rlock.WithOwner(ctx, "me"), a.Lock)
		w := goLock(context.Background(), a.Lock)
		end()
		if found, err := op.ForceUnlock(context.Background()); !found || err != nil {
			t.Errorf("ForceUnlock: %v, %v", found, err)
		}
		must(t, in(t, w, 5*time.Second, "the next writer of its session").hold.Unlock())
		is(t, "Unlock", h.Unlock(), rlock.ErrLost)
	})
}

// Close releases what is held, of both sides, and wakes who waits (R12).
func TestClose(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		sa, other := dial(t, s, slow), rwlock.New(dial(t, s, slow), "r")
		ctx := within(t, 30*time.Second)
		w, r := rwlock.New(sa, "w"), rwlock.New(sa, "r")
		section, hw := hold(t, ctx, w.Lock)
		_, hr := hold(t, section, w.RLock)
		rsection, rr := hold(t, ctx, r.RLock)
		_, foreign := hold(t, ctx, other.RLock)
		waiting := []<-chan locked{goLock(ctx, w.RLock), goLock(ctx, r.Lock)}
		redistest.Eventually(t, 5*time.Second, "the mark of the writer", func() bool { return writersWaiting(t, s, "r") == 1 })
		must(t, sa.Close())
		for _, c := range waiting {
			is(t, "a waiter's Lock", locktest.Get(t, c, 5*time.Second, "a waiter").err, rlock.ErrClosed)
		}
		ends(t, section, s.Slack(), rlock.ErrClosed)
		ends(t, rsection, s.Slack(), rlock.ErrClosed)
		for _, h := range []*rlock.Hold{hw, hr, rr} {
			is(t, "Unlock", h.Unlock(), rlock.ErrClosed)
		}
		_, _, err := w.RLock(ctx)
		is(t, "RLock", err, rlock.ErrClosed)
		_, err = w.State(ctx)
		is(t, "State", err, rlock.ErrClosed)
		must(t, sa.Close())
		must(t, foreign.Unlock())
		nothingLeft(t, s)
	})
}
