package fault_test

import (
	"context"
	"testing"
	"time"

	"relock/internal/test/faulttest"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// R9: nothing answers. Unlock gives up within ReleaseTimeout, with the client's error,
// and the release goes on in the background: when the network is back the lock gets
// free long before its lease ends.
type faultSilence struct {
	owner  string
	nested bool // the last of two Unlocks is looked at as well
	on     func(p *faulttest.Proxy, on bool)
	cut    time.Duration // how long after the Unlock
	cfg    rlock.Config
	opts   []rlock.LockOption
}

func (f faultSilence) run(t *testing.T) {
	const timeout = 500 * time.Millisecond
	f.cfg.ReleaseTimeout = timeout
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ses, p := locktest.DialProxy(t, s, f.cfg)
		ctx := within(t, 30*time.Second)
		if f.owner != "" {
			ctx = rlock.WithOwner(ctx, f.owner)
		}
		name := redistest.Name(t)
		m := rlock.New(ses, name)
		section, h, err := m.Lock(ctx, f.opts...)
		must(t, err)
		left := ""
		var outer *rlock.Hold
		if f.nested {
			outer, left = h, "1"
			_, h, err = m.Lock(section, f.opts...)
			must(t, err)
		}
		f.on(p, true)
		from := time.Now()
		err = h.Unlock()
		if d := time.Since(from); d > timeout+s.Slack() {
			t.Errorf("Unlock took %v; the release timeout is %v", d, timeout)
		}
		faultNoSentinel(t, "Unlock", err)
		locktest.Is(t, "second Unlock", h.Unlock(), rlock.ErrNotHeld)
		if f.nested {
			locktest.Stays(t, section, f.cut)
		} else {
			locktest.Ends(t, section, s.Slack(), rlock.ErrReleased)
			<-time.After(f.cut)
		}
		f.on(p, false)
		redistest.Eventually(t, 5*time.Second, "the release in the background", func() bool {
			return locktest.Field(t, s, name, h.Owner()) == left
		})
		if f.nested {
			must(t, outer.Unlock())
			if !locktest.Free(t, s, name) {
				t.Fatal("not free")
			}
		}
	})
}

func TestFaultUnlockWithoutAnAnswerReturnsInTime(t *testing.T) {
	faultSilence{on: (*faulttest.Proxy).BlackHole}.run(t)
}

func TestFaultUnlockWithoutAConnectionIsMadeUpFor(t *testing.T) {
	faultSilence{on: (*faulttest.Proxy).Refuse}.run(t)
}

func TestFaultUnlockWithoutAConnectionIsMadeUpForWithANamedOwner(t *testing.T) {
	faultSilence{on: (*faulttest.Proxy).Refuse, owner: "order-17"}.run(t)
}

// A fixed lease may be longer than the session's: the background release must go on
// until that ends, not until the session's would.
func TestFaultUnlockWithoutAConnectionIsMadeUpForWithALongFixedLease(t *testing.T) {
	faultSilence{
		on: (*faulttest.Proxy).Refuse, cut: 1500 * time.Millisecond,
		cfg: rlock.Config{Lease: 500 * time.Millisecond}, opts: []rlock.LockOption{rlock.Lease(time.Minute)},
	}.run(t)
}

func TestFaultNestedUnlockWithoutAnAnswerIsMadeUpFor(t *testing.T) {
	faultSilence{on: (*faulttest.Proxy).BlackHole, nested: true}.run(t)
}

func TestFaultNestedUnlockWithoutAConnectionIsMadeUpFor(t *testing.T) {
	faultSilence{on: (*faulttest.Proxy).Refuse, nested: true}.run(t)
}

func TestFaultNestedUnlockWithoutAConnectionIsMadeUpForWithANamedOwner(t *testing.T) {
	faultSilence{on: (*faulttest.Proxy).Refuse, nested: true, owner: "order-17"}.run(t)
}

// R9: however an inner release went wrong, the outer Unlock makes the lock free.
func TestFaultOuterUnlockFreesTheLockAfterAnInnerOneGotNoAnswer(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ses, p := locktest.DialProxy(t, s, rlock.Config{ReleaseTimeout: 500 * time.Millisecond})
		ctx := within(t, 30*time.Second)
		for _, lockCtx := range []context.Context{ctx, rlock.WithOwner(ctx, "order-17")} {
			name := redistest.Name(t)
			m := rlock.New(ses, name)
			section, h, err := m.Lock(lockCtx)
			must(t, err)
			_, h2, err := m.Lock(section)
			must(t, err)
			p.Refuse(true)
			faultNoSentinel(t, "inner Unlock", h2.Unlock())
			p.Refuse(false)
			_, h3, err := m.Lock(section)
			must(t, err)
			must(t, h3.Unlock())
			must(t, h.Unlock())
			redistest.Eventually(t, 5*time.Second, "the lock is free", func() bool { return locktest.Free(t, s, name) })
		}
	})
}

// R9: the outer hold is unlocked while a nested Lock of the same owner is stuck in the
// network. Unlock gives up in time; when the nested Lock has given up too and the
// network is back, nothing is held.
func TestFaultUnlockBehindAStuckNestedLockIsMadeUpFor(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		const timeout = 500 * time.Millisecond
		ses, p := locktest.DialProxy(t, s, rlock.Config{ReleaseTimeout: timeout})
		name := redistest.Name(t)
		m := rlock.New(ses, name)
		section, h, err := m.Lock(within(t, 30*time.Second))
		must(t, err)
		nested, cancel := context.WithCancel(section)
		defer cancel()
		seen, release := p.HoldReply(locktest.Calls(t, "acquire"))
		defer release()
		stuck := locktest.GoLock(m, nested)
		locktest.Get(t, seen, 5*time.Second, "the nested attempt")
		from := time.Now()
		err = h.Unlock()
		if d := time.Since(from); d > timeout+s.Slack() {
			t.Errorf("Unlock took %v; the release timeout is %v", d, timeout)
		}
		faultNoSentinel(t, "Unlock", err)
		cancel()
		locktest.Is(t, "nested Lock", locktest.Get(t, stuck, 5*time.Second, "the nested Lock").Err, rlock.ErrNotAcquired, context.Canceled)
		release()
		redistest.Eventually(t, 5*time.Second, "the lock is free", func() bool { return locktest.Free(t, s, name) })
		locktest.Ends(t, section, 5*time.Second, rlock.ErrReleased)
	})
}
