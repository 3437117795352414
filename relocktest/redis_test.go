package relocktest_test

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"relock/fairlock"
	"relock/relocktest"
	"relock/rlock"
	"relock/rwlock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestSessionsOfOneRedisExcludeEachOther(t *testing.T) {
	r := relocktest.Start(t)
	a, b := rlock.New(r.Session(t, rlock.Config{}), "job"), rlock.New(r.Session(t, rlock.Config{}), "job")
	_, h, err := a.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := b.TryLock(t.Context()); !errors.Is(err, rlock.ErrNotAcquired) {
		t.Errorf("TryLock beside a holder: %v, want ErrNotAcquired", err)
	}
	if err := h.Unlock(); err != nil {
		t.Error(err)
	}
	_, h, err = b.TryLock(t.Context())
	if err != nil {
		t.Fatalf("TryLock of a free lock: %v", err)
	}
	if err := h.Unlock(); err != nil {
		t.Error(err)
	}
}

func TestEachRedisIsItsOwn(t *testing.T) {
	for range 2 {
		_, h, err := rlock.New(relocktest.Session(t), "job").TryLock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer h.Unlock()
	}
}

func TestLoseEndsTheSection(t *testing.T) {
	r := relocktest.Start(t)
	s := r.Session(t, rlock.Config{})
	m, f, rw := rlock.New(s, "m"), fairlock.New(s, "f"), rwlock.New(s, "rw")
	for name, l := range map[string]interface {
		relocktest.Locker
		Lock(context.Context, ...rlock.LockOption) (context.Context, *rlock.Hold, error)
	}{"rlock": m, "fairlock": f, "rwlock": rw} {
		ctx, h, err := l.Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		r.Lose(t, l)
		<-ctx.Done()
		if cause := context.Cause(ctx); !errors.Is(cause, rlock.ErrLost) {
			t.Errorf("%s: the cause is %v, want ErrLost", name, cause)
		}
		if err := h.Unlock(); !errors.Is(err, rlock.ErrLost) {
			t.Errorf("%s: Unlock: %v, want ErrLost", name, err)
		}
	}
}

// A test that waits for a lease of half a minute takes no time in a bubble.
func TestLeasesPassInABubble(t *testing.T) {
	began := time.Now()
	synctest.Test(t, func(t *testing.T) {
		r := relocktest.Start(t)
		m := rlock.New(r.Session(t, rlock.Config{}), "job")
		ctx, h, err := m.Lock(t.Context(), rlock.Lease(30*time.Second))
		if err != nil {
			t.Fatal(err)
		}
		<-ctx.Done()
		if err := h.Unlock(); !errors.Is(err, rlock.ErrLost) {
			t.Errorf("Unlock after the lease: %v, want ErrLost", err)
		}
		other := rlock.New(r.Session(t, rlock.Config{}), "job")
		_, h, err = other.Lock(t.Context(), rlock.Wait(5*time.Second))
		if err != nil {
			t.Fatalf("the lease is over, yet: %v", err)
		}
		if err := h.Unlock(); err != nil {
			t.Error(err)
		}
	})
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("the bubble took %v of real time", took)
	}
}

func TestStopLosesTheLockAndResumeHeals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := relocktest.Start(t)
		s := r.Session(t, rlock.Config{Lease: 300 * time.Millisecond})
		m := rlock.New(s, "job")
		ctx, h, err := m.Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		r.Stop()
		<-ctx.Done()
		if cause := context.Cause(ctx); !errors.Is(cause, rlock.ErrLost) {
			t.Errorf("the cause is %v, want ErrLost", cause)
		}
		if err := h.Unlock(); !errors.Is(err, rlock.ErrLost) {
			t.Errorf("Unlock: %v, want ErrLost", err)
		}
		r.Resume()
		_, h, err = m.Lock(t.Context())
		if err != nil {
			t.Fatalf("Lock after Resume: %v", err)
		}
		if err := h.Unlock(); err != nil {
			t.Error(err)
		}
	})
}

// In a bubble a session can be closed beside a Close that waits for Redis, as that of the test's end is where the tested
// code closes it too. The bubble stood still for ever: its time passes only while all in it wait for channels and the like.
func TestClosedTwiceInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := relocktest.Start(t)
		s := r.Session(t, rlock.Config{})
		_, _, err := rlock.New(s, "job").Lock(t.Context())
		must(t, err)
		r.Stop()
		first := make(chan error, 1)
		go func() { first <- s.Close() }()
		synctest.Wait()
		second := s.Close()
		if err := <-first; !errors.Is(err, rlock.ErrUnavailable) || err != second {
			t.Errorf("Close says %v, and the one beside it %v", err, second)
		}
	})
}

// What connects while Redis is being stopped does not reach it behind Stop.
func TestStopStopsThoseWhoConnect(t *testing.T) {
	r := relocktest.Start(t)
	dial := r.Option().DialCtxFn
	for range 2000 {
		var connecting sync.WaitGroup
		made := make(chan net.Conn, 4)
		for range cap(made) {
			connecting.Go(func() {
				for last := net.Conn(nil); ; {
					c, err := dial(t.Context(), "", nil, nil)
					if err != nil {
						if last != nil {
							made <- last
						}
						return
					}
					if last != nil {
						_ = last.Close()
					}
					last = c
				}
			})
		}
		r.Stop()
		connecting.Wait()
		close(made)
		for c := range made {
			if _, err := c.Write([]byte("PING\r\n")); err == nil {
				t.Fatal("a connection stands although Redis is stopped")
			}
			_ = c.Close()
		}
		r.Resume()
	}
}

func TestRefuseIsAnswered(t *testing.T) {
	r := relocktest.Start(t)
	m := rlock.New(r.Session(t, rlock.Config{}), "job")
	r.Refuse("LOADING Redis is loading the dataset in memory")
	if _, _, err := m.TryLock(t.Context()); err == nil || errors.Is(err, rlock.ErrArgument) {
		t.Errorf("TryLock while Redis is loading: %v", err)
	}
	r.Refuse("")
	_, h, err := m.TryLock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Unlock(); err != nil {
		t.Error(err)
	}
}
