package keep_test

import (
	"context"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/locktrace"
	"relock/rlock"
)

// The hooks hear of each lock that is kept when that begins, and once how it ends, and of each time that it is asked for.
func TestKeptLocksAreTraced(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		k := &keptTrace{events: make(chan locktrace.Kept, 1000)}
		k.ses = dial(t, s, rlock.Config{Trace: &rlock.Trace{Kept: func(e locktrace.Kept) { k.events <- e }}})
		k.other, k.ctx = dial(t, s, rlock.Config{}), within(t, time.Minute)
		for _, step := range []func(*testing.T){k.askedBack, k.inUse, k.over, k.unfit, k.forced, k.closed} {
			step(t)
		}
		if n := len(k.events); n > 0 {
			t.Errorf("%d events more, the first %+v", n, <-k.events)
		}
	})
}

// A keptTrace has a session that keeps locks, whose hooks are listened to, and another one that asks for them.
type keptTrace struct {
	ses, other *rlock.Session
	ctx        context.Context
	events     chan locktrace.Kept
}

const keptFor = 15 * time.Second

// locked locks and unlocks m, and returns the owner.
func (k *keptTrace) locked(t *testing.T, m *rlock.Mutex, opts ...rlock.LockOption) (owner string) {
	t.Helper()
	_, h, err := m.Lock(k.ctx, opts...)
	must(t, err)
	must(t, h.Unlock())
	return h.Owner()
}

// told checks that the hooks have heard just this next.
func (k *keptTrace) told(t *testing.T, name, owner string, whats ...locktrace.KeptEvent) {
	t.Helper()
	for _, what := range whats {
		want := locktrace.Kept{Name: name, Kind: "mutex", Owner: owner, What: what}
		if e := locktest.Get(t, k.events, 10*time.Second, string(what)); e != want {
			t.Fatalf("the hooks heard %+v, want %+v", e, want)
		}
	}
}

func (k *keptTrace) askedBack(t *testing.T) {
	m := rlock.New(k.ses, "asked back", rlock.Keep(keptFor))
	owner := k.locked(t, m)
	k.told(t, "asked back", owner, locktrace.KeptBegins)
	k.locked(t, m)
	k.told(t, "asked back", owner, locktrace.KeptReused, locktrace.KeptBegins)
	k.locked(t, rlock.New(k.other, "asked back"))
	k.told(t, "asked back", owner, locktrace.KeptWanted, locktrace.KeptGivenBack)
}

func (k *keptTrace) inUse(t *testing.T) {
	_, h, err := rlock.New(k.ses, "in use", rlock.Keep(keptFor)).Lock(k.ctx)
	must(t, err)
	_, _, err = rlock.New(k.other, "in use").TryLock(k.ctx)
	locktest.Is(t, "TryLock", err, rlock.ErrNotAcquired)
	k.told(t, "in use", h.Owner(), locktrace.KeptWanted)
	must(t, h.Unlock()) // which keeps nothing
}

func (k *keptTrace) over(t *testing.T) {
	m := rlock.New(k.ses, "over", rlock.Keep(20*time.Millisecond))
	k.told(t, "over", k.locked(t, m), locktrace.KeptBegins, locktrace.KeptOver)
}

func (k *keptTrace) unfit(t *testing.T) {
	m := rlock.New(k.ses, "unfit", rlock.Keep(keptFor))
	k.told(t, "unfit", k.locked(t, m), locktrace.KeptBegins)
	k.locked(t, m, rlock.Lease(time.Minute))
	if e := locktest.Get(t, k.events, 10*time.Second, "its end"); e.What != locktrace.KeptOver || e.Name != "unfit" {
		t.Errorf("the hooks heard %+v", e)
	}
}

func (k *keptTrace) forced(t *testing.T) {
	owner := k.locked(t, rlock.New(k.ses, "forced", rlock.Keep(keptFor)))
	k.told(t, "forced", owner, locktrace.KeptBegins)
	found, err := rlock.New(k.other, "forced").ForceUnlock(k.ctx)
	if err != nil || !found {
		t.Fatalf("ForceUnlock: %v, %v", found, err)
	}
	k.told(t, "forced", owner, locktrace.KeptOver)
}

// closed comes last, since it closes the session.
func (k *keptTrace) closed(t *testing.T) {
	owner := k.locked(t, rlock.New(k.ses, "closed", rlock.Keep(keptFor)))
	k.told(t, "closed", owner, locktrace.KeptBegins)
	must(t, k.ses.Close())
	k.told(t, "closed", owner, locktrace.KeptOver)
}

// Waiters counts those that wait for a kept lock, which nobody has to be inside of; and a Shutdown gives the lock to
// them.
func TestShutdownGivesAKeptLockToWhoWaits(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		ses, p := locktest.DialProxy(t, s, rlock.Config{})
		other, ctx, name := dial(t, s, rlock.Config{}), within(t, time.Minute), redistest.Name(t)
		_, h, err := rlock.New(ses, name, rlock.Keep(15*time.Second)).Lock(ctx)
		must(t, err)
		must(t, h.Unlock())
		p.DropMessages(true) // the session does not hear that it is asked
		m := rlock.New(other, name)
		waiter := locktest.GoLock(m, ctx)
		redistest.Eventually(t, 10*time.Second, "one caller to wait", func() bool {
			n, err := m.Waiters(context.Background())
			return err == nil && n == 1
		})
		began := time.Now()
		must(t, ses.Shutdown(ctx))
		got := locktest.Get(t, waiter, 10*time.Second, "the lock")
		must(t, got.Err)
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("it took %v", took)
		}
		if n, err := m.Waiters(ctx); n != 0 || err != nil {
			t.Errorf("%d waiters, %v", n, err)
		}
		must(t, got.Hold.Unlock())
	})
}
