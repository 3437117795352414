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

// Close and Shutdown give back what is kept, and do not wait for its time.
func TestTheEndOfASessionGivesBackWhatItKeeps(t *testing.T) {
	eachKeep(t, 15*time.Second, func(t *testing.T, st *keepStage) {
		began := time.Now()
		st.lockOnce(t, st.m)
		must(t, st.ses.Shutdown(st.ctx))
		if st.stands(t) {
			t.Error("Shutdown has left the lock")
		}
		ses := dial(t, st.s, rlock.Config{})
		st.lockOnce(t, st.of(ses, rlock.Keep(15*time.Second)))
		must(t, ses.Close())
		if st.stands(t) {
			t.Error("Close has left the lock")
		}
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

// A kept lock that was deleted, or force-unlocked, ends nobody's section; the next Lock asks Redis.
func TestTheLossOfAKeptLockEndsNoSection(t *testing.T) {
	eachKeep(t, 15*time.Second, func(t *testing.T, st *keepStage) {
		st.lockOnce(t, st.m)
		st.granted()
		ended, err := st.theirs.(interface {
			ForceUnlock(context.Context) (bool, error)
		}).ForceUnlock(st.ctx)
		if err != nil || !ended {
			t.Fatalf("ForceUnlock: %v, %v", ended, err)
		}
		redistest.Eventually(t, 5*time.Second, "the session to hear of it", func() bool {
			held, _, _, _, _ := locktest.Books(st.ses)
			return held == 0
		})
		st.lockOnce(t, st.m)
		if g := st.granted(); g != locktrace.GrantRedis {
			t.Errorf("the lock came from %q", g)
		}
		must(t, st.ses.Close()) // which waits for the hooks
		if n := len(st.losses); n > 0 {
			t.Errorf("%d losses were told of, and nobody was inside", n)
		}
	})
}

// What was kept when the connection was lost is not entered again before Redis has confirmed it: it may be another's.
func TestAKeptLockIsNotEnteredBehindAReconnect(t *testing.T) {
	eachKeep(t, 15*time.Second, func(t *testing.T, st *keepStage) {
		st.lockOnce(t, st.m)
		st.granted()
		must(t, st.s.Do(t, "DEL", "x").Error())
		_, h, err := st.theirs.TryLock(st.ctx)
		must(t, err)
		st.p.Cut()
		redistest.Eventually(t, 10*time.Second, "the session to notice", func() bool {
			held, _, _, _, _ := locktest.Books(st.ses)
			return held == 0
		})
		_, _, err = st.m.TryLock(st.ctx)
		locktest.Is(t, "TryLock", err, rlock.ErrNotAcquired)
		must(t, h.Unlock())
	})
}

// Nor is it while that answer is awaited.
func TestAKeptLockInDoubtIsNotEntered(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		st := locktest.NewStage(t, s, rlock.Config{})
		m, theirs := rlock.New(st.Session, st.Name, rlock.Keep(15*time.Second)), rlock.New(dial(t, s, rlock.Config{}), st.Name)
		_, h, err := m.Lock(st.Ctx)
		must(t, err)
		must(t, h.Unlock())
		must(t, s.Do(t, "DEL", st.Name).Error())
		_, h, err = theirs.TryLock(st.Ctx)
		must(t, err)
		seen, send := st.Proxy.HoldRequest(locktest.Calls(t, "renew"))
		defer send()
		st.Proxy.Cut()
		st.Reached(seen)
		if _, _, err = m.TryLock(st.Ctx); err == nil { // it has no answer, for the connection waits for that question
			t.Error("the lock was entered, and is another's")
		}
		must(t, h.Unlock())
	})
}
