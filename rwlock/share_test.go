package rwlock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"relock/internal/test/faulttest"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/rwlock"
)

// A guest is a reader that a test has let in.
type guest struct {
	section context.Context
	hold    *rlock.Hold
	end     context.CancelFunc // of the context that it was given
}

// A sharer is a session behind a proxy, the lock "x" there, and a word for each Lock that
// begins to wait.
type sharer struct {
	*rwlock.RWMutex
	ses     *rlock.Session
	proxy   *faulttest.Proxy
	waiting <-chan struct{}
}

func newSharer(t *testing.T, s *redistest.Server, cfg rlock.Config) *sharer {
	t.Helper()
	tr, waiting := locktest.Waiting()
	cfg.Trace = tr
	ses, p := locktest.DialProxy(t, s, cfg)
	return &sharer{rwlock.New(ses, "x"), ses, p, waiting}
}

// gather has n readers wait behind a writer of another session, and lets them in together,
// so that they share. That holds for those whose answer took less than the time in which a
// host takes readers in.
func (m *sharer) gather(t *testing.T, s *redistest.Server, n int) []guest {
	t.Helper()
	ses, err := rlock.Dial(context.Background(), s.Option(), slow)
	must(t, err)
	_, w := hold(t, within(t, 60*time.Second), rwlock.New(ses, "x").Lock)
	var waiting []<-chan locked
	var all []guest
	for range n {
		own, end := context.WithCancel(context.Background())
		t.Cleanup(end)
		all = append(all, guest{end: end})
		waiting = append(waiting, goLock(own, m.RLock))
	}
	for range n {
		locktest.Get(t, m.waiting, 10*time.Second, "the readers to wait")
	}
	must(t, w.Unlock())
	must(t, ses.Close())
	for i, c := range waiting {
		l := in(t, c, 10*time.Second, "a reader")
		all[i].section, all[i].hold = l.ctx, l.hold
	}
	return all
}

// share is gather, done again on a machine so busy that not all of them share one hold.
func (m *sharer) share(t *testing.T, s *redistest.Server, n int) []guest {
	t.Helper()
	for {
		all := m.gather(t, s, n)
		owners := map[string]bool{}
		for _, r := range all {
			owners[r.hold.Owner()] = true
		}
		if len(owners) == 1 {
			return all
		}
		unlockAll(t, all)
	}
}

// unlockAll unlocks them.
func unlockAll(t *testing.T, all []guest) {
	t.Helper()
	for _, r := range all {
		must(t, r.hold.Unlock())
	}
}

// Readers that share stand in Redis as one, for as long as any of them is in, wherever it
// is unlocked from; and no longer.
func TestShareLastsUntilTheLastLeaves(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		m, other := newSharer(t, s, slow), rwlock.New(dial(t, s, slow), "x")
		ctx := within(t, 30*time.Second)
		all := m.share(t, s, 5)
		host := all[0].hold.Owner()
		for i, r := range all {
			if got := field(t, s, "x", host); got != "1" {
				t.Fatalf("the host's count is %q, want 1", got)
			}
			refused(t, ctx, other.TryLock, "a writer")
			if r.section.Err() != nil || r.hold.Remaining() <= 0 {
				t.Errorf("reader %d: %v, %v remain", i, r.section.Err(), r.hold.Remaining())
			}
			done := make(chan error, 2)
			for range 2 { // from elsewhere, and twice
				go func() { done <- r.hold.Unlock() }()
			}
			if a, b := <-done, <-done; (a == nil) == (b == nil) || !errors.Is(errors.Join(a, b), rlock.ErrNotHeld) {
				t.Errorf("two Unlocks: %v and %v", a, b)
			}
			ends(t, r.section, s.Slack(), rlock.ErrReleased)
		}
		_, w := hold(t, ctx, other.TryLock)
		for _, r := range all {
			is(t, "Unlock", r.hold.Unlock(), rlock.ErrNotHeld)
		}
		must(t, w.Unlock())
		nothingLeft(t, s)
	})
}

// A guest nests in memory: readers and fixed leases, no upgrade; and each hold ends by itself.
func TestShareNests(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		m := newSharer(t, s, slow)
		ctx := within(t, 30*time.Second)
		all := m.share(t, s, 2)
		section, h := all[0].section, all[0].hold
		m.proxy.Reset()
		for _, lock := range []lockFunc{m.Lock, m.TryLock} {
			got, none, err := lock(section)
			is(t, "upgrade", err, rwlock.ErrUpgrade)
			if none != nil || got != section || section.Err() != nil {
				t.Error("a hold, another context, or the section ended")
			}
		}
		_, inner := hold(t, section, m.RLock)
		_, try := hold(t, section, m.TryRLock)
		short, leased := hold(t, section, m.RLock, rlock.Lease(time.Hour))
		is(t, "Extend", h.Extend(ctx, time.Hour), rlock.ErrArgument)
		must(t, leased.Extend(ctx, 50*time.Millisecond))
		ends(t, short, 5*time.Second, rlock.ErrLost)
		is(t, "Extend", leased.Extend(ctx, time.Hour), rlock.ErrLost)
		is(t, "Unlock", leased.Unlock(), rlock.ErrLost)
		must(t, h.Unlock())
		must(t, inner.Unlock())
		if section.Err() != nil || m.proxy.Count() != 0 {
			t.Errorf("%v, %d commands", section.Err(), m.proxy.Count())
		}
		must(t, all[1].hold.Unlock())
		if got := field(t, s, "x", try.Owner()); got != "1" {
			t.Errorf("the host's count is %q while a nested hold is left", got)
		}
		must(t, try.Unlock())
		ends(t, section, s.Slack(), rlock.ErrReleased)
		nothingLeft(t, s)
	})
}

// The owner of a shared hold is nobody's name: its holds are counted in memory, so nobody may
// act under it, in the same session or in another.
func TestShareOwnerIsNobodysName(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		m := newSharer(t, s, slow)
		other := rwlock.New(dial(t, s, slow), "x")
		all := m.share(t, s, 2)
		if name, ok := rlock.OwnerFrom(all[0].section); ok {
			t.Errorf("the section of a private owner names %q", name)
		}
		ctx := rlock.WithOwner(within(t, 30*time.Second), all[0].hold.Owner())
		for _, lock := range []lockFunc{m.RLock, m.Lock, other.RLock, other.TryLock} {
			_, _, err := lock(ctx)
			is(t, "Lock", err, rlock.ErrArgument)
		}
		unlockAll(t, all)
		nothingLeft(t, s)
	})
}
