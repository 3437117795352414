package rwlock_test

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"relock/internal/engine"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/rwlock"
)

// Two of three readers that share a hold unlock, and their contexts take their time to end; the third has
// none. Whichever is the last to be done releases the hold, once, and then the writers that wait get in.
func TestUnlocksOfThreeReadersAtOnce(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		cfg := rlock.Config{PollFloor: time.Hour} // the writers hear of the release
		session, p := locktest.DialProxy(t, s, cfg)
		other := locktest.Dial(t, s, cfg)
		for i, order := range [][3]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
			name := fmt.Sprint("x", i)
			m := rwlock.New(session, name)
			var slow [2]*rlock.Hold
			begun, goOn := make(chan bool), [2]chan bool{make(chan bool), make(chan bool)}
			for i := range slow {
				slow[i] = slowReader(t, m, func() { begun <- true; <-goOn[i] })
				(*engine.Session)(session).SliceFor("rw", name, time.Minute)
			}
			_, plain := hold(t, t.Context(), m.RLock)
			if slow[0].Owner() != slow[1].Owner() || slow[0].Owner() != plain.Owner() {
				t.Fatal("the readers do not share a hold")
			}
			writer, elsewhere := goLock(t.Context(), m.Lock), goLock(t.Context(), rwlock.New(other, name).Lock)
			redistest.Eventually(t, 10*time.Second, "two writers wait", func() bool {
				return (*engine.Session)(session).WaitersOf("rw", name) == 1 && (*engine.Session)(other).WaitersOf("rw", name) == 1
			})
			p.Reset()
			unlocked := [2]chan error{make(chan error, 1), make(chan error, 1)}
			for i := range slow {
				go func() { unlocked[i] <- slow[i].Unlock() }()
				locktest.Get(t, begun, 10*time.Second, "an Unlock cancels contexts")
			}
			for done, who := range order {
				if st, err := m.State(t.Context()); err != nil || st.Mode != "read" {
					t.Errorf("order %v, %d are done: State %+v, %v, want a lock that is read", order, done, st, err)
				}
				notIn(t, writer, "before the last reader has left")
				notIn(t, elsewhere, "before the last reader has left")
				if who == 2 {
					must(t, plain.Unlock())
				} else {
					close(goOn[who])
					must(t, locktest.Get(t, unlocked[who], 10*time.Second, "Unlock"))
				}
			}
			bothWrite(t, writer, elsewhere, fmt.Sprint("order ", order))
			if n := locktest.Sent(p, calls("release_read")); n != 1 {
				t.Errorf("order %v: the hold was released %d times", order, n)
			}
		}
		must(t, session.Close())
		must(t, other.Close())
		nothingLeft(t, s)
	})
}

// bothWrite: both writers get in, in any order, and unlock.
func bothWrite(t *testing.T, one, other <-chan locked, what string) {
	t.Helper()
	for range 2 {
		var l locked
		select {
		case l = <-one:
		case l = <-other:
		case <-time.After(20 * time.Second):
			t.Fatalf("%s: a writer still waits", what)
		}
		must(t, l.err)
		must(t, l.hold.Unlock())
	}
}

// What the goroutine of one reader's Unlock runs into while it cancels contexts, a panic or a Goexit,
// does not keep the others from releasing the hold.
func TestUnlockBesideAReaderWhoseContextPanics(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		session := locktest.Dial(t, s, rlock.Config{})
		for name, end := range map[string]func(){"panic": func() { panic("on purpose") }, "Goexit": runtime.Goexit} {
			m := rwlock.New(session, name)
			first := slowReader(t, m, end)
			(*engine.Session)(session).SliceFor("rw", name, time.Minute)
			_, second := hold(t, t.Context(), m.RLock)
			ended := make(chan any)
			go func() {
				defer close(ended)
				defer func() { _ = recover() }()
				_ = first.Unlock()
				t.Errorf("%s: Unlock has returned", name)
			}()
			<-ended
			locktest.Is(t, "Unlock once more", first.Unlock(), rlock.ErrNotHeld)
			must(t, second.Unlock())
			nothingLeft(t, s)
		}
	})
}

// A lateErr is a context that has ended when it is asked for the n-th time.
type lateErr struct {
	context.Context
	asked atomic.Int64
	n     int64
}

func (c *lateErr) Err() error {
	if c.asked.Add(1) >= c.n {
		return context.Canceled
	}
	return nil
}

// A reader comes while the Unlock of the only other one cancels contexts, and shares its hold: for good, or
// its context ends at any time on the way. The hold stands until both have gone.
func TestAReaderComesWhileAnUnlockCancelsContexts(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		session := locktest.Dial(t, s, rlock.Config{})
		for stays := range 2 {
			m := rwlock.New(session, "x")
			var third *rlock.Hold
			first := slowReader(t, m, func() {
				(*engine.Session)(session).SliceFor("rw", "x", time.Minute)
				for n := int64(1); third == nil; n++ {
					var err error
					if _, third, err = m.RLock(&lateErr{Context: t.Context(), n: n}); err != nil {
						locktest.Is(t, "RLock", err, context.Canceled)
					}
					if st, err := m.State(t.Context()); err != nil || st.Mode != "read" {
						t.Fatalf("State %+v, %v, want a lock that is read", st, err)
					}
				}
				if stays == 0 {
					must(t, third.Unlock())
				}
			})
			must(t, first.Unlock())
			if stays == 1 {
				if st, err := m.State(t.Context()); err != nil || st.Mode != "read" || first.Owner() != third.Owner() {
					t.Errorf("State %+v, %v, want a lock that is read", st, err)
				}
				must(t, third.Unlock())
			}
			nothingLeft(t, s)
		}
	})
}

// A hold of the second of two readers is abandoned while the Unlock of the first cancels contexts, and the
// rest of what the second has is lost and unlocked: the lock stands until the lease is over.
func TestUnlockBesideAReaderThatAbandonsAndLoses(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		session, _ := locktest.DialProxy(t, s, rlock.Config{Lease: 6 * time.Second})
		m := rwlock.New(session, "x")
		var second context.Context
		var left, fixed *rlock.Hold
		first := slowReader(t, m, func() {
			must(t, left.Abandon())
			locktest.Ends(t, second, 10*time.Second, rlock.ErrLost)
			locktest.Is(t, "Unlock of the second", fixed.Unlock(), rlock.ErrLost)
		})
		(*engine.Session)(session).SliceFor("rw", "x", time.Minute)
		second, left = hold(t, t.Context(), m.RLock)
		_, fixed = hold(t, second, m.RLock, rlock.Lease(time.Second))
		must(t, first.Unlock())
		if st, err := m.State(t.Context()); err != nil || st.Mode != "read" {
			t.Errorf("State %+v, %v, want a lock that stands", st, err)
		}
		redistest.Eventually(t, 20*time.Second, "the lease is over", func() bool {
			st, err := m.State(t.Context())
			return err == nil && st.Mode == ""
		})
	})
}

// A reader is given a section beside another one, and its context ends before its RLock returns, while the
// Unlock of the other one cancels contexts: that Unlock releases the hold.
func TestUnlockBesideAReaderThatComesTooLate(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		session := locktest.Dial(t, s, rlock.Config{})
		m := rwlock.New(session, "x")
		waiting := func(n int) {
			redistest.Eventually(t, 10*time.Second, "they wait", func() bool {
				return (*engine.Session)(session).WaitersOf("rw", "x") == n
			})
		}
		_, writer := hold(t, t.Context(), rwlock.New(locktest.Dial(t, s, rlock.Config{}), "x").Lock)
		slow := &slowEnd{Context: t.Context()}
		first := goLock(slow, m.RLock)
		waiting(1)
		base, cancel := context.WithCancel(t.Context())
		defer cancel()
		late, goOn := &locktest.Stopped{Context: base}, make(chan struct{})
		second := goLock(late, m.RLock)
		waiting(2)
		late.InErr.Until(goOn)
		must(t, writer.Unlock())
		reader := in(t, first, 10*time.Second, "the first reader").hold
		redistest.Eventually(t, 10*time.Second, "the second has its section", late.InErr.Reached)
		fn := func() {
			cancel()
			close(goOn)
			locktest.Is(t, "RLock", locktest.Get(t, second, 10*time.Second, "RLock").err, rlock.ErrNotAcquired, context.Canceled)
			if st, err := m.State(t.Context()); err != nil || st.Mode != "read" || st.Owners[reader.Owner()] != 1 {
				t.Errorf("State %+v, %v, want the hold of the first", st, err)
			}
			if n := (*engine.Session)(session).Counts(); n.Held != 1 {
				t.Errorf("there are %+v, want the claim of the first", n)
			}
		}
		slow.between.Store(&fn)
		must(t, reader.Unlock())
		if st, err := m.State(t.Context()); err != nil || st.Mode != "" {
			t.Errorf("State %+v, %v, want a free lock", st, err)
		}
		nothingLeft(t, s)
	})
}

// The second of two readers has unlocked while the Unlock of the first cancels contexts; what happens to the
// hold then is for the first to tell. It is not renewed, for no section is open.
func TestUnlockThatGoesOnForAnotherReader(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		for name, c := range map[string]struct {
			then func(session *rlock.Session, m *rwlock.RWMutex)
			want error
		}{
			"a writer tries": {func(_ *rlock.Session, m *rwlock.RWMutex) { refused(t, t.Context(), m.TryLock, "TryLock") }, nil},
			"force": {func(_ *rlock.Session, m *rwlock.RWMutex) {
				forced, err := m.ForceUnlock(t.Context())
				if must(t, err); !forced {
					t.Error("nothing was there to be forced")
				}
			}, rlock.ErrLost},
			"Close": {func(session *rlock.Session, _ *rwlock.RWMutex) { must(t, session.Close()) }, nil},
			"the lease ends": {func(_ *rlock.Session, m *rwlock.RWMutex) {
				redistest.Eventually(t, 10*time.Second, "the lease is over", func() bool {
					st, err := m.State(t.Context())
					return err == nil && st.Mode == ""
				})
			}, rlock.ErrLost},
		} {
			session, _ := locktest.DialProxy(t, s, rlock.Config{Lease: 2 * time.Second})
			m := rwlock.New(session, name)
			var second *rlock.Hold
			first := slowReader(t, m, func() {
				must(t, second.Unlock())
				c.then(session, m)
			})
			(*engine.Session)(session).SliceFor("rw", name, time.Minute)
			_, second = hold(t, t.Context(), m.RLock)
			if err := first.Unlock(); c.want == nil {
				must(t, err)
			} else {
				locktest.Is(t, name, err, c.want)
			}
			if name != "Close" {
				if st, err := m.State(t.Context()); err != nil || st.Mode != "" {
					t.Errorf("%s: State %+v, %v, want a free lock", name, st, err)
				}
				must(t, session.Close())
			}
			nothingLeft(t, s)
		}
	})
}
