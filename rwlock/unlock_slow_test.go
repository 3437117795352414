package rwlock_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"relock/internal/engine"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/rwlock"
)

// A slowEnd is a context that runs code of its own when what hangs on it is cancelled, once that is set:
// an Unlock runs it between the end of its section and the release.
type slowEnd struct {
	context.Context
	between atomic.Pointer[func()]
}

func (c *slowEnd) Value(any) any { return nil } // else package context would not ask AfterFunc

func (c *slowEnd) AfterFunc(f func()) (stop func() bool) {
	drop := context.AfterFunc(c.Context, f)
	return func() bool {
		if fn := c.between.Swap(nil); fn != nil {
			(*fn)()
		}
		return drop()
	}
}

// slowReader returns the hold of a reader whose Unlock runs fn before it releases.
func slowReader(t *testing.T, m *rwlock.RWMutex, fn func()) *rlock.Hold {
	base, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	ctx := &slowEnd{Context: base}
	_, h := hold(t, ctx, m.RLock)
	ctx.between.Store(&fn)
	return h
}

// The lock of two readers that share a hold is lost while the Unlock of the first has closed its
// section, and cancels its context: both hear that it was lost.
func TestUnlockOfAReaderWhoseLockIsLostMeanwhile(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		session := locktest.Dial(t, s, rlock.Config{})
		m := rwlock.New(session, "x")
		var other context.Context
		var second *rlock.Hold
		first := slowReader(t, m, func() {
			_, err := m.ForceUnlock(t.Context())
			must(t, err)
			locktest.Ends(t, other, 10*time.Second, rlock.ErrLost)
		})
		(*engine.Session)(session).SliceFor("rw", "x", time.Minute) // readers may join for so long
		other, second = hold(t, t.Context(), m.RLock)
		if first.Owner() != second.Owner() {
			t.Fatal("the readers do not share a hold")
		}
		locktest.Is(t, "Unlock of the first", first.Unlock(), rlock.ErrLost)
		locktest.Is(t, "Unlock of the second", second.Unlock(), rlock.ErrLost)
	})
}

// The same when nothing says that the lock is gone, and the second has unlocked before the first goes on.
func TestUnlockOfAReaderBehindOneThatHasNoticedTheLoss(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		session, p := locktest.DialProxy(t, s, rlock.Config{Lease: 1500 * time.Millisecond})
		m := rwlock.New(session, "x")
		var other context.Context
		var second *rlock.Hold
		first := slowReader(t, m, func() {
			p.BlackHole(true)
			locktest.Ends(t, other, 20*time.Second, rlock.ErrLost)
			locktest.Is(t, "Unlock of the second", second.Unlock(), rlock.ErrLost)
			p.BlackHole(false)
		})
		(*engine.Session)(session).SliceFor("rw", "x", time.Minute)
		other, second = hold(t, t.Context(), m.RLock)
		if first.Owner() != second.Owner() {
			t.Fatal("the readers do not share a hold")
		}
		locktest.Is(t, "Unlock of the first", first.Unlock(), rlock.ErrLost)
		redistest.Eventually(t, 20*time.Second, "nothing is left", func() bool { return len(s.Keys(t)) == 0 })
	})
}

// Close begins and ends while an Unlock has closed its section: Close has released the lock then, and
// tells of what it could not release, so that the Unlock has nothing to say.
func TestUnlockThatCloseOvertakes(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		session := locktest.Dial(t, s, rlock.Config{})
		h := slowReader(t, rwlock.New(session, "x"), func() {
			must(t, session.Close())
			if keys := redistest.LockKeys(s.Keys(t)); len(keys) > 0 {
				t.Errorf("Close has left %q", keys)
			}
		})
		must(t, h.Unlock())
	})
}

// A second reader unlocks while the Unlock of the first still cancels contexts: the hold that they share
// stands until these have ended, or a writer would begin before. The first Unlock releases it.
func TestUnlockBesideAReaderWhoseContextsHaveNotEnded(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		session := locktest.Dial(t, s, rlock.Config{})
		m := rwlock.New(session, "x")
		var second *rlock.Hold
		first := slowReader(t, m, func() {
			must(t, second.Unlock())
			if st, err := m.State(t.Context()); err != nil || st.Mode != "read" {
				t.Errorf("State %+v, %v, want a lock that is read", st, err)
			}
		})
		(*engine.Session)(session).SliceFor("rw", "x", time.Minute)
		_, second = hold(t, t.Context(), m.RLock)
		must(t, first.Unlock())
		if st, err := m.State(t.Context()); err != nil || st.Mode != "" {
			t.Errorf("State %+v, %v, want a free lock", st, err)
		}
	})
}

// The lease that the second of two readers has chosen runs out while the Unlock of the first cancels
// contexts: that is a loss of the second alone.
func TestUnlockBesideAReaderWhoseOwnLeaseRunsOut(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		session := locktest.Dial(t, s, rlock.Config{})
		m := rwlock.New(session, "x")
		for _, unlocksFirst := range []bool{false, true} {
			var second context.Context
			var fixed *rlock.Hold
			first := slowReader(t, m, func() {
				locktest.Ends(t, second, 10*time.Second, rlock.ErrLost)
				if unlocksFirst {
					locktest.Is(t, "Unlock of the second", fixed.Unlock(), rlock.ErrLost)
				}
			})
			(*engine.Session)(session).SliceFor("rw", "x", time.Minute)
			var renewed *rlock.Hold
			second, renewed = hold(t, t.Context(), m.RLock)
			_, fixed = hold(t, second, m.RLock, rlock.Lease(2*time.Second))
			must(t, renewed.Unlock())
			must(t, first.Unlock())
			if !unlocksFirst {
				locktest.Is(t, "Unlock of the second", fixed.Unlock(), rlock.ErrLost)
			}
			nothingLeft(t, s)
		}
	})
}

// The outermost hold of a section is unlocked while a nested Lock is being asked for, which then fails: that
// ends the section, whose contexts have ended before the claim does.
func TestANestedLockFailsBehindItsSectionsLastUnlock(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		session, gated := locktest.DialGated(t, s, rlock.Config{})
		m := rwlock.New(session, "x")
		var ended atomic.Bool
		fn := func() {
			if n := (*engine.Session)(session).Counts(); ended.Swap(true) || n.Held != 1 {
				t.Errorf("contexts are cancelled, and there are %+v", n)
			}
		}
		base := &slowEnd{Context: t.Context()}
		section, outer := hold(t, base, m.Lock)
		base.between.Store(&fn)
		ctx, cancel := context.WithCancel(section)
		defer cancel()
		seen, release := gated.Hold(calls("acquire_write"))
		nested, unlocked := goLock(ctx, m.Lock), make(chan error, 1)
		locktest.Get(t, seen, 10*time.Second, "the nested Lock is sent")
		go func() { unlocked <- outer.Unlock() }()
		redistest.Eventually(t, 10*time.Second, "Unlock waits for it", (*engine.Hold)(outer).Awaited)
		cancel()
		release()
		locktest.Is(t, "the nested Lock", locktest.Get(t, nested, 10*time.Second, "the nested Lock").err, context.Canceled)
		must(t, locktest.Get(t, unlocked, 10*time.Second, "Unlock"))
		if !ended.Load() {
			t.Error("no context was cancelled")
		}
		nothingLeft(t, s)
	})
}
