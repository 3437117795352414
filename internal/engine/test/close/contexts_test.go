package close_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"relock/internal/engine"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/rwlock"
)

// endSlowly takes some locks in contexts of the caller's own. The first of these that Close ends runs fn.
func endSlowly(t *testing.T, ses *rlock.Session, fn func(), names ...string) (sections []context.Context) {
	t.Helper()
	var armed atomic.Bool
	for _, name := range names {
		section, _, err := rlock.New(ses, name).Lock(&slowEnd{Context: within(t, time.Minute), done: make(chan struct{}), stop: func() {
			if armed.CompareAndSwap(true, false) {
				fn()
			}
		}})
		must(t, err)
		_ = section.Done()
		sections = append(sections, section)
	}
	armed.Store(true)
	return sections
}

// standing is how many of some locks stand.
func standing(t *testing.T, s *redistest.Server, names ...string) (n int) {
	t.Helper()
	for _, name := range names {
		if !locktest.Free(t, s, name) {
			n++
		}
	}
	return n
}

// Code of one caller's context blocks Close: all other locks are released meanwhile. That one is left to its lease, for its
// caller may rely on it yet, and Close says so.
func TestCloseBehindAContextThatBlocks(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ses := dialed(t, s, 5*time.Second)
		goOn := make(chan struct{})
		free := sync.OnceFunc(func() { close(goOn) })
		t.Cleanup(free)
		names := []string{"x", "y", "z"}
		sections := endSlowly(t, ses, func() { <-goOn }, names...)
		closed := locktest.Go(ses.Close)
		redistest.Eventually(t, 10*time.Second, "the others to be released", func() bool { return standing(t, s, names...) == 1 })
		for _, x := range sections {
			if x.Err() != nil {
				locktest.Is(t, "a section", context.Cause(x), rlock.ErrClosed)
			}
		}
		locktest.Is(t, "Close", locktest.Get(t, closed, 20*time.Second, "Close"), rlock.ErrUnavailable)
		if n := standing(t, s, names...); n != 1 {
			t.Errorf("%d locks stand, want the one whose caller may rely on it", n)
		}
		free()
	})
}

// Code of one caller's context panics in Close: the caller of Close sees that, and all locks are released.
func TestCloseWithAContextThatPanics(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ses := dialed(t, s, 5*time.Second)
		names := []string{"x", "y", "z"}
		endSlowly(t, ses, func() { panic("on purpose") }, names...)
		func() {
			defer func() {
				if p := recover(); p != "on purpose" {
					t.Errorf("Close panics with %v", p)
				}
			}()
			_ = ses.Close()
		}()
		if n := standing(t, s, names...); n > 0 {
			t.Errorf("%d locks stand", n)
		}
		must(t, ses.Close())
	})
}

// Code of a context closes the session that is about to end it: both return.
func TestCloseInAContextThatCloseEnds(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		ses := dialed(t, s, time.Second)
		inner := make(chan error, 1)
		endSlowly(t, ses, func() { inner <- ses.Close() }, "x", "y")
		outer := locktest.Get(t, locktest.Go(ses.Close), 20*time.Second, "Close")
		locktest.Is(t, "Close", outer, rlock.ErrUnavailable)
		locktest.Is(t, "Close inside", locktest.Get(t, inner, 20*time.Second, "Close inside"), rlock.ErrUnavailable)
		if n := standing(t, s, "x", "y"); n != 1 {
			t.Errorf("%d locks stand, want the one whose context closes the session", n)
		}
	})
}

// dialed makes a session that the test closes itself.
func dialed(t *testing.T, s *redistest.Server, releaseTimeout time.Duration) *rlock.Session {
	t.Helper()
	ses, err := rlock.NewSession(within(t, time.Minute), s.Client(t), rlock.Config{ReleaseTimeout: releaseTimeout})
	must(t, err)
	return ses
}

// Two callers share a lock, and the context of the first blocks when Close ends it: the second hears of the end all the same,
// since the lock is left to its lease.
func TestCloseEndsASectionBesideAContextThatBlocks(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		goOn := make(chan struct{})
		t.Cleanup(sync.OnceFunc(func() { close(goOn) }))
		for what, c := range map[string]struct {
			ctx  context.Context
			take func(*rlock.Session, context.Context) (context.Context, error)
		}{
			"by name": {rlock.WithOwner(within(t, time.Minute), "me"), func(ses *rlock.Session, ctx context.Context) (context.Context, error) {
				section, _, err := rlock.New(ses, "x").Lock(ctx)
				return section, err
			}},
			"readers": {within(t, time.Minute), func(ses *rlock.Session, ctx context.Context) (context.Context, error) {
				section, _, err := rwlock.New(ses, "y").RLock(ctx)
				(*engine.Session)(ses).SliceFor("rw", "y", time.Minute) // readers may join for so long
				return section, err
			}},
		} {
			ses := dialed(t, s, time.Second)
			var armed atomic.Bool
			first, err := c.take(ses, &slowEnd{Context: c.ctx, done: make(chan struct{}), stop: func() {
				if armed.Load() {
					<-goOn
				}
			}})
			must(t, err)
			first.Done()
			var others []<-chan struct{}
			for range 3 {
				other, err := c.take(ses, c.ctx)
				must(t, err)
				others = append(others, other.Done())
			}
			armed.Store(true)
			closed := locktest.Go(ses.Close)
			for _, other := range others {
				locktest.Get(t, other, 10*time.Second, what+": the end of another section")
			}
			locktest.Is(t, what+": Close", locktest.Get(t, closed, 20*time.Second, "Close"), rlock.ErrUnavailable)
		}
	})
}
