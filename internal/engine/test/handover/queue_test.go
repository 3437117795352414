package handover_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"relock/internal/test/faulttest"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// The lease is so short that it is over before many a waiter has woken up: its Lock does not
// return, and asks Redis again.
func TestHandOverOfALeaseThatIsOver(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		lease := 2 * time.Millisecond
		if s.IsMini() { // a script takes it longer than that with the race detector: then no answer is in time
			lease = 10 * time.Millisecond
		}
		st := locktest.NewStage(t, s, rlock.Config{Lease: lease})
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range 200 {
					_, h, err := st.Mutex.Lock(st.Ctx)
					if err != nil {
						t.Error(err)
						return
					}
					if err := h.Unlock(); err != nil && !errors.Is(err, rlock.ErrLost) {
						t.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
		locktest.NothingLeft(t, s, st.Session)
		t.Logf("%d hand-overs, %d lost", st.Count(), len(st.Losses()))
	})
}

// The waiter is still about to subscribe, for a lock that was held elsewhere, when it is
// handed over. The subscription ends when nobody needs it.
func TestHandOverToAWaiterWhoSubscribes(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		st := locktest.NewStage(t, s, rlock.Config{PollFloor: 30 * time.Second})
		other := dial(t, s, rlock.Config{})
		_, block, err := rlock.New(other, st.Name).Lock(st.Ctx)
		must(t, err)
		seen, confirm := st.Proxy.HoldReply(faulttest.Is("SUBSCRIBE"))
		defer confirm()
		b := st.Queue(st.Ctx)
		locktest.Get(t, seen, 5*time.Second, "the subscription")
		must(t, s.Do(t, "DEL", st.Name).Error()) // a release would give the lock to the waiter
		_, h, err := st.Mutex.TryLock(st.Ctx)
		must(t, err)
		locktest.Unhurried(st.Session, st.Name)
		must(t, h.Unlock())
		confirm()
		must(t, st.In(b).Hold.Unlock())
		locktest.Is(t, "Unlock", block.Unlock(), rlock.ErrLost)
		locktest.NothingLeft(t, s, st.Session, other)
	})
}

// After a slice the release gives the lock to another session, and enters the next caller anew. The grant
// that the other's release brings is heard, also when it is there before the answer that says that the
// caller stands in the line: that of the release, or of an attempt of the front.
func TestHandOverTheReleaseAfterASliceIsHeard(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		for range 3 {
			releaseAfterASlice(t, s, "release")
			releaseAfterASlice(t, s, "acquire")
		}
	})
}

// releaseAfterASlice holds back the answer of that script until the next grant was heard.
func releaseAfterASlice(t *testing.T, s *redistest.Server, script string) {
	t.Helper()
	st := locktest.NewStage(t, s, rlock.Config{HandOverLimit: 1, PollFloor: time.Minute})
	other := dial(t, s, rlock.Config{PollFloor: time.Minute})
	theirs := rlock.New(other, st.Name)
	_, block, err := theirs.Lock(st.Ctx)
	must(t, err)
	signal, _, err := rlock.New(st.Session, st.Name+"3").Lock(st.Ctx)
	must(t, err)

	var c <-chan locktest.Locked
	var unlocked <-chan error
	var ran <-chan struct{}
	var answer func()
	if script == "acquire" {
		ran, answer = st.Proxy.HoldReply(locktest.Calls(t, script))
		defer answer()
		c = st.Queue(st.Ctx)
		st.Reached(ran)
	} else {
		a, b := st.Queue(st.Ctx), st.Queue(st.Ctx)
		c = st.Queue(st.Ctx)
		locktest.AwaitInLine(t, s, st.Name, st.Session)
		must(t, block.Unlock())
		in := st.In(a)
		d := locktest.GoLock(theirs, st.Ctx)
		locktest.AwaitInLine(t, s, st.Name, other)
		locktest.Unhurried(st.Session, st.Name)
		in = st.HandOver(in.Hold, b)
		st.Stands("1")
		ran, answer = st.Proxy.HoldReply(locktest.Calls(t, script))
		defer answer()
		unlocked = locktest.Go(in.Hold.Unlock) // the second: that is as far as the limit goes
		st.Reached(ran)
		block = st.In(d).Hold
	}
	locktest.AwaitInLine(t, s, st.Name, st.Session)
	must(t, block.Unlock())
	if owner := locktest.OnlyOwner(t, st); !locktest.OfSession(st.Session, owner) {
		t.Errorf("the release gave the lock to %q", owner)
	}
	_, err = rlock.New(other, st.Name+"3").ForceUnlock(st.Ctx)
	must(t, err)
	locktest.Ends(t, signal, 5*time.Second, rlock.ErrLost) // this was told after the grant
	st.Outside(c, "the front, whose answer is still to come")
	answer()
	if unlocked != nil {
		must(t, locktest.Get(t, unlocked, 5*time.Second, "the release"))
	}
	must(t, st.In(c).Hold.Unlock())
}
