package rlock_test

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
		st := newStage(t, s, rlock.Config{Lease: 2 * time.Millisecond})
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range 200 {
					_, h, err := st.m.Lock(st.ctx)
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
		nothingLeft(t, s, st.ses)
		t.Logf("%d hand-overs, %d lost", st.count(), len(st.losses()))
	})
}

// The waiter is still about to subscribe, for a lock that was held elsewhere, when it is
// handed over. The subscription ends when nobody needs it.
func TestHandOverToAWaiterWhoSubscribes(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		st := newStage(t, s, rlock.Config{PollFloor: 30 * time.Second})
		other := dial(t, s, rlock.Config{})
		_, block, err := rlock.New(other, st.name).Lock(st.ctx)
		must(t, err)
		seen, confirm := st.p.HoldReply(faulttest.Is("SUBSCRIBE"))
		defer confirm()
		b := st.queue(st.ctx)
		locktest.Get(t, seen, 5*time.Second, "the subscription")
		must(t, s.Do(t, "DEL", st.name).Error()) // a release would give the lock to the waiter
		_, h, err := st.m.TryLock(st.ctx)
		must(t, err)
		st.ses.Unhurried(st.name)
		must(t, h.Unlock())
		confirm()
		must(t, st.in(b).hold.Unlock())
		locktest.Is(t, "Unlock", block.Unlock(), rlock.ErrLost)
		nothingLeft(t, s, st.ses, other)
	})
}

// After a slice the lock is left to others, and the message of the own release is no news.
// That of the next one is, also when both arrive together while the front asks Redis.
func TestHandOverTheReleaseAfterASliceIsHeard(t *testing.T) {
	faultEach(t, func(t *testing.T, s *redistest.Server) {
		tried := 0
		for round := 0; round < 20 && tried < 3; round++ {
			if releaseAfterASlice(t, s) {
				tried++
			}
		}
		if tried == 0 {
			t.Error("no release ever came before the question of the front")
		}
	})
}

// releaseAfterASlice reports whether the release of the slice came before the question of the front,
// and so the next one was to be heard.
func releaseAfterASlice(t *testing.T, s *redistest.Server) (heard bool) {
	st := newStage(t, s, rlock.Config{HandOverLimit: 1, PollFloor: time.Minute})
	other := dial(t, s, rlock.Config{PollFloor: time.Minute})
	theirs, channel := rlock.New(other, st.name), faultLockChannel(st.name)
	_, block, err := theirs.Lock(st.ctx)
	must(t, err)
	a, b, c := st.queue(st.ctx), st.queue(st.ctx), st.queue(st.ctx)
	awaitListeners(t, s, channel, 1)
	must(t, block.Unlock())
	in := st.in(a)
	d := faultGoLock(theirs, st.ctx)
	awaitListeners(t, s, channel, 2)
	st.ses.Unhurried(st.name)
	in = st.handOver(in.hold, b)
	st.stands("1")
	signal, _, err := rlock.New(st.ses, st.name+"3").Lock(st.ctx)
	must(t, err)

	// What follows on the subscriber's connection is held back behind this.
	_, aside, err := rlock.New(other, st.name+"2").Lock(st.ctx)
	must(t, err)
	seen, release := st.p.HoldReply(faulttest.Is("SUBSCRIBE"))
	defer release()
	asideToo := faultGoLock(rlock.New(st.ses, st.name+"2"), st.ctx)
	locktest.Get(t, seen, 5*time.Second, "another subscription")

	// The front looks when the time for the others is over; its question is kept until one
	// of them has got the lock, so that it is certainly refused.
	asks, ask := st.p.HoldRequest(faultRuns(t, "acquire"))
	defer ask()
	asked, answer := st.p.HoldReply(faultRuns(t, "acquire"))
	defer answer()
	unlocked := faultGo(in.hold.Unlock) // the second: that is as far as the limit goes
	locktest.Get(t, asks, 5*time.Second, "the front looks")
	select {
	case err := <-unlocked:
		must(t, err)
		theirTurn := st.in(d)
		ask()
		locktest.Get(t, asked, 5*time.Second, "the front is refused")
		heard = true
		must(t, theirTurn.hold.Unlock())
		release()
		_, err = rlock.New(other, st.name+"3").ForceUnlock(st.ctx)
		must(t, err)
		locktest.Ends(t, signal, 5*time.Second, rlock.ErrLost) // this was told after the release
		answer()
		must(t, st.in(c).hold.Unlock())
	case <-time.After(time.Second): // the release is kept as well, behind the question
		ask()
		answer()
		release()
		must(t, locktest.Get(t, unlocked, 5*time.Second, "the release"))
		st.inAndOut(c, d)
	}
	must(t, aside.Unlock())
	must(t, st.in(asideToo).hold.Unlock())
	return heard
}

// awaitListeners waits until so many sessions listen to the channel.
func awaitListeners(t *testing.T, s *redistest.Server, channel string, n int64) {
	t.Helper()
	redistest.Eventually(t, 5*time.Second, "the sessions listen", func() bool {
		m, err := s.Do(t, "PUBSUB", "NUMSUB", channel).AsIntMap()
		return err == nil && m[channel] == n
	})
}

// inAndOut has two waiters get the lock and release it, in whichever order.
func (st *stage) inAndOut(a, b <-chan faultLocked) {
	st.t.Helper()
	for range 2 {
		var got faultLocked
		select {
		case got = <-a:
		case got = <-b:
		case <-time.After(10 * time.Second):
			st.t.Fatal("neither waiter is let in")
		}
		must(st.t, got.err)
		must(st.t, got.hold.Unlock())
	}
}

// onlyOwner returns who holds the lock by Redis's word.
func onlyOwner(t *testing.T, st *stage) string {
	t.Helper()
	h := st.hash()
	if len(h) != 1 {
		t.Fatalf("the lock is %v, want one owner", h)
	}
	for owner := range h {
		return owner
	}
	return ""
}
