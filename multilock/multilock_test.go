package multilock_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"testing"
	"time"

	"relock/fairlock"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/multilock"
	"relock/rlock"
	"relock/rwlock"
	"relock/semaphore"
)

// parts are one of each kind.
func parts(s *rlock.Session) (p struct {
	plain *rlock.Mutex
	fair  *fairlock.Mutex
	write *rwlock.RWMutex
	read  *rwlock.RWMutex
	sem   *semaphore.Semaphore
	all   *multilock.Mutex
}) {
	p.plain, p.fair = rlock.New(s, "plain", rlock.Fenced()), fairlock.New(s, "fair", rlock.Fenced())
	p.write, p.read = rwlock.New(s, "write"), rwlock.New(s, "read")
	p.sem = semaphore.New(s, "permits", 3)
	p.all = multilock.New(p.plain, p.fair, p.write, multilock.Read(p.read), multilock.Permits(p.sem, 2))
	return p
}

// Parts names each lock once, in the order of the keys.
func TestParts(t *testing.T) {
	s := dial(t, redistest.Mini(t), slow())
	a, b := rlock.New(s, "a"), fairlock.New(s, "b")
	if got := multilock.New(b, a, rlock.New(s, "a")).Parts(); !slices.Equal(got, []multilock.Part{a, b}) {
		t.Errorf("Parts: %v, want %v and %v", got, a, b)
	}
	for what, m := range map[string]*multilock.Mutex{"nil": nil, "zero": {}, "none": multilock.New(), "a nil one": multilock.New(a, nil)} {
		if got := m.Parts(); got != nil {
			t.Errorf("Parts of %s: %v", what, got)
		}
	}
}

// Locks of every kind are taken together, keep others out, are re-entered on the context, and
// leave nothing behind.
func TestEveryKind(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, 20*time.Second)
		mine, theirs := parts(dial(t, s, slow())), parts(dial(t, s, slow()))
		section, h, err := mine.all.Lock(ctx)
		must(t, err)
		held(t, ctx, theirs.plain, theirs.fair, theirs.write, multilock.Read(theirs.write), theirs.read, multilock.Permits(theirs.sem, 2))
		free(t, ctx, multilock.Read(theirs.read), multilock.Permits(theirs.sem, 1))
		free(t, section, mine.plain, mine.fair, mine.write, multilock.Read(mine.write), multilock.Read(mine.read))
		for _, fenced := range []multilock.Part{mine.plain, mine.fair} {
			if h.Token(fenced) != 1 {
				t.Errorf("the token of %s is %d, want 1", fenced.Name(), h.Token(fenced))
			}
		}
		if n := h.Token(theirs.plain) + h.Token(mine.write) + h.Token(nil); n != 0 {
			t.Errorf("tokens of what is not fenced or not held: %d", n)
		}
		inner, h2, err := mine.all.TryLock(rlock.WithoutOwner(section))
		if inner == nil || h2 != nil {
			t.Error("another owner got in")
		}
		is(t, "another owner", err, rlock.ErrNotAcquired)
		must(t, h.Unlock())
		ends(t, section, 10*time.Second, rlock.ErrReleased)
		is(t, "a second Unlock", h.Unlock(), rlock.ErrNotHeld)
		must(t, theirs.all.Do(ctx, func(ctx context.Context) error { return ctx.Err() }))
		if got := locktest.Describe(t, s); got != "permits=3 redisson_lock_token:{fair}=2 redisson_lock_token:{plain}=2" {
			t.Errorf("left behind: %s", got)
		}
	})
}

// Any set of locks can be re-entered on the context.
func TestNested(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, 20*time.Second)
		ses := dial(t, s, slow())
		a, b, c := rlock.New(ses, "a"), rlock.New(ses, "b"), rlock.New(ses, "c")
		section, h, err := multilock.New(a, b).Lock(ctx)
		must(t, err)
		inner, h2, err := multilock.New(b, c, a).Lock(section)
		must(t, err)
		must(t, h.Unlock())
		held(t, ctx, a, b, c)
		if inner.Err() != nil {
			t.Errorf("the inner section has ended: %v", context.Cause(inner))
		}
		must(t, h2.Unlock())
		free(t, ctx, a, b, c)
	})
}

// If one of the locks is held by another owner, none is: whichever it is, with TryLock and at
// the end of a wait. The wait is bounded as a whole, by Wait and by the context.
func TestAllOrNone(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, time.Minute)
		ses, other := dial(t, s, slow()), dial(t, s, slow())
		names := []string{"a", "b", "c"}
		var locks, theirs []multilock.Part
		for _, n := range names {
			locks, theirs = append(locks, rlock.New(ses, n)), append(theirs, rlock.New(other, n))
		}
		m := multilock.New(locks...)
		for i := range names {
			_, h, err := theirs[i].Lock(ctx)
			must(t, err)
			rest := append(slices.Clone(theirs[:i]), theirs[i+1:]...)
			section, none, err := m.TryLock(ctx)
			is(t, "TryLock", err, rlock.ErrNotAcquired)
			if section != ctx || none != nil {
				t.Error("TryLock returns a section or a hold beside its error")
			}
			free(t, ctx, rest...)
			for _, wait := range []time.Duration{0, 30 * time.Millisecond, time.Duration(i) * 1250 * time.Millisecond} {
				began := time.Now()
				_, _, err = m.Lock(ctx, rlock.Wait(wait))
				is(t, "Wait", err, rlock.ErrNotAcquired)
				if took := time.Since(began); took < wait-1500*time.Millisecond || took > wait+450*time.Millisecond+s.Slack() {
					t.Errorf("Wait(%v) has taken %v", wait, took)
				}
				free(t, ctx, rest...)
			}
			short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
			_, _, err = m.Lock(short)
			cancel()
			if is(t, "the end of ctx", err, context.DeadlineExceeded); s.IsMini() { // else it may be over before
				is(t, "the end of ctx", err, rlock.ErrNotAcquired)
			}
			free(t, ctx, rest...)
			_, _, err = m.Lock(short)
			if is(t, "ctx done before", err, context.DeadlineExceeded); errors.Is(err, rlock.ErrNotAcquired) {
				t.Errorf("ctx was done before, and the error is %v", err)
			}

			waiter := start(ctx, m)
			must(t, h.Unlock())
			got := locktest.Get(t, waiter, 10*time.Second, "all of them")
			must(t, got.err)
			held(t, ctx, theirs...)
			must(t, got.h.Unlock())
		}
		must(t, ses.Close())
		_, _, err := m.Lock(ctx)
		is(t, "after Close", err, rlock.ErrClosed)
		must(t, other.Close())
	})
}

// Each lock that is lost ends the section with its cause. Unlock says so, and the others are
// released.
func TestLost(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, 20*time.Second)
		ses, other := dial(t, s, slow()), dial(t, s, slow())
		for _, name := range []string{"a", "b", "c"} {
			section, h, err := multilock.New(rlock.New(ses, "a"), rlock.New(ses, "b"), rlock.New(ses, "c")).Lock(ctx)
			must(t, err)
			if ok, err := rlock.New(other, name).ForceUnlock(ctx); !ok || err != nil {
				t.Fatalf("ForceUnlock: %v, %v", ok, err)
			}
			ends(t, section, 10*time.Second, rlock.ErrLost)
			if h.Remaining() != 0 {
				t.Errorf("%v remain", h.Remaining())
			}
			is(t, "Unlock", h.Unlock(), rlock.ErrLost)
			free(t, ctx, rlock.New(other, "a"), rlock.New(other, "b"), rlock.New(other, "c"))
		}
		section, _, err := multilock.New(rlock.New(ses, "a"), rlock.New(other, "b")).Lock(ctx)
		must(t, err)
		must(t, ses.Close())
		ends(t, section, 10*time.Second, rlock.ErrClosed)
	})
}

// Do releases on return, panic and Goexit, and returns both errors (R11).
func TestDo(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, 20*time.Second)
		ses := dial(t, s, slow())
		a, b := rlock.New(ses, "a"), rlock.New(ses, "b")
		m := multilock.New(b, a)
		mine := errors.New("mine")
		is(t, "Do", m.Do(ctx, func(section context.Context) error {
			if _, err := a.ForceUnlock(ctx); err != nil {
				t.Error(err)
			}
			<-section.Done()
			return mine
		}), mine, rlock.ErrLost)
		free(t, ctx, a, b)
		for _, fn := range []func(context.Context) error{
			func(context.Context) error { panic("on purpose") },
			func(context.Context) error { runtime.Goexit(); return nil },
		} {
			done := make(chan struct{})
			go func() {
				defer close(done)
				defer func() { _ = recover() }()
				_ = m.Do(ctx, fn)
			}()
			<-done
			free(t, ctx, a, b)
		}
		is(t, "no fn", m.Do(ctx, nil), rlock.ErrArgument)
	})
}

// A fixed lease counts from when the last lock was granted. Extend moves the end of all, and
// Remaining is the least of them.
func TestLease(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, time.Minute)
		ses, other := dial(t, s, slow()), dial(t, s, slow())
		a, b := rlock.New(ses, "a"), rlock.New(ses, "b")
		_, busy, err := rlock.New(other, "b").Lock(ctx)
		must(t, err)
		lease := s.Slowed(4 * time.Second)
		waiter := start(ctx, multilock.New(a, b), rlock.Lease(lease))
		time.Sleep(400 * time.Millisecond) // of which the first lock's lease must not pay
		must(t, busy.Unlock())
		got := locktest.Get(t, waiter, 10*time.Second, "the locks")
		must(t, got.err)
		trusted := lease - lease/20
		if r := got.h.Remaining(); r > trusted || r < trusted-s.Slack() {
			t.Errorf("%v remain, want %v", r, trusted)
		}
		must(t, got.h.Extend(ctx, time.Hour))
		if r := got.h.Remaining(); r < 50*time.Minute {
			t.Errorf("%v remain of an hour", r)
		}
		is(t, "Extend by nothing", got.h.Extend(ctx, 0), rlock.ErrArgument)
		must(t, got.h.Extend(ctx, time.Second))
		ends(t, got.section, 10*time.Second, rlock.ErrLost)
		is(t, "Unlock", got.h.Unlock(), rlock.ErrLost)
		must(t, ses.Close())
		must(t, other.Close())
	})
}
