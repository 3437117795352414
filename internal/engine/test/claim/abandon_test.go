package claim_test

import (
	"context"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// What an abandoned hold has left stands until its lease is over, whatever becomes of the other holds
// of its owner.
func TestAnAbandonedLockStandsWhateverItsOtherHoldsDo(t *testing.T) {
	t.Parallel()
	const interval = time.Hour
	for name, then := range map[string]func(t *testing.T, ses *rlock.Session, m *rlock.Mutex, section context.Context, h *rlock.Hold){
		"the session is closed": func(t *testing.T, ses *rlock.Session, m *rlock.Mutex, section context.Context, h *rlock.Hold) {
			_, inner, err := m.Lock(section)
			must(t, err)
			must(t, h.Abandon())
			must(t, ses.Close())
			locktest.Is(t, "Unlock", inner.Unlock(), rlock.ErrClosed)
		},
		"an inner hold runs out": func(t *testing.T, _ *rlock.Session, m *rlock.Mutex, section context.Context, h *rlock.Hold) {
			inside, inner, err := m.Lock(section, rlock.Lease(200*time.Millisecond))
			must(t, err)
			must(t, h.Abandon())
			locktest.Ends(t, inside, 10*time.Second, rlock.ErrLost)
			locktest.Is(t, "Unlock", inner.Unlock(), rlock.ErrLost)
		},
		"an inner hold is unlocked": func(t *testing.T, _ *rlock.Session, m *rlock.Mutex, section context.Context, h *rlock.Hold) {
			_, one, err := m.Lock(section, rlock.Lease(time.Minute))
			must(t, err)
			_, other, err := m.Lock(section, rlock.Lease(time.Minute))
			must(t, err)
			must(t, h.Abandon())
			must(t, one.Unlock())
			must(t, other.Unlock())
		},
		"an inner hold is extended": func(t *testing.T, _ *rlock.Session, m *rlock.Mutex, section context.Context, h *rlock.Hold) {
			_, inner, err := m.Lock(section, rlock.Lease(time.Minute))
			must(t, err)
			must(t, h.Abandon())
			must(t, inner.Extend(section, 2*time.Minute))
			if left := inner.Remaining(); left > 2*time.Minute {
				t.Errorf("%v remain of two minutes", left)
			}
			must(t, inner.Unlock())
		},
	} {
		t.Run(name, func(t *testing.T) {
			redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
				ctx, ses := within(t, 30*time.Second), dial(t, s, rlock.Config{})
				m := rlock.New(ses, "x")
				section, h, err := m.Lock(ctx, rlock.Lease(interval))
				must(t, err)
				then(t, ses, m, section, h)
				must(t, ses.Close()) // it waits for releases in the background
				if ttl := locktest.PTTL(t, s, "x"); ttl < interval-time.Minute {
					t.Errorf("the abandoned lock stands for %v, want an hour", ttl)
				}
			})
		})
	}
}

// A nested Lock that fails does not take the lock along that its section has abandoned meanwhile.
func TestAnAbandonedLockStandsBehindANestedLockThatFails(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		st := locktest.NewStage(t, s, rlock.Config{})
		section, h := st.Lock(st.Ctx)
		seen, send := st.Proxy.HoldRequest(locktest.Calls(t, "acquire"))
		ctx, cancel := context.WithCancel(section)
		nested := locktest.Go(func() error { _, _, err := st.Mutex.Lock(ctx); return err })
		st.Reached(seen)
		must(t, h.Abandon())
		cancel()
		locktest.Is(t, "the nested Lock", locktest.Get(t, nested, 5*time.Second, "it"), context.Canceled)
		send()
		must(t, st.Session.Close())
		if locktest.Free(t, s, st.Name) {
			t.Error("the abandoned lock was released")
		}
		must(t, s.Do(t, "DEL", st.Name, "relock_holds:{"+st.Name+"}").Error())
	})
}
