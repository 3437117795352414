package rlock_test

import (
	"errors"
	"slices"
	"strings"
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
		st := newStage(t, s, rlock.Config{Lease: lease})
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

// After a slice the release gives the lock to another session, and enters the next caller anew. The grant
// that the other's release brings is heard, also when it is there before the answer that says that the
// caller stands in the line: that of the release, or of an attempt of the front.
func TestHandOverTheReleaseAfterASliceIsHeard(t *testing.T) {
	faultEach(t, func(t *testing.T, s *redistest.Server) {
		for range 3 {
			releaseAfterASlice(t, s, "release")
			releaseAfterASlice(t, s, "acquire")
		}
	})
}

// releaseAfterASlice holds back the answer of that script until the next grant was heard.
func releaseAfterASlice(t *testing.T, s *redistest.Server, script string) {
	t.Helper()
	st := newStage(t, s, rlock.Config{HandOverLimit: 1, PollFloor: time.Minute})
	other := dial(t, s, rlock.Config{PollFloor: time.Minute})
	theirs := rlock.New(other, st.name)
	_, block, err := theirs.Lock(st.ctx)
	must(t, err)
	signal, _, err := rlock.New(st.ses, st.name+"3").Lock(st.ctx)
	must(t, err)

	var c <-chan faultLocked
	var unlocked <-chan error
	var ran <-chan struct{}
	var answer func()
	if script == "acquire" {
		ran, answer = st.p.HoldReply(faultRuns(t, script))
		defer answer()
		c = st.queue(st.ctx)
		st.reached(ran)
	} else {
		a, b := st.queue(st.ctx), st.queue(st.ctx)
		c = st.queue(st.ctx)
		awaitInLine(t, s, st.name, st.ses)
		must(t, block.Unlock())
		in := st.in(a)
		d := faultGoLock(theirs, st.ctx)
		awaitInLine(t, s, st.name, other)
		st.ses.Unhurried(st.name)
		in = st.handOver(in.hold, b)
		st.stands("1")
		ran, answer = st.p.HoldReply(faultRuns(t, script))
		defer answer()
		unlocked = faultGo(in.hold.Unlock) // the second: that is as far as the limit goes
		st.reached(ran)
		block = st.in(d).hold
	}
	awaitInLine(t, s, st.name, st.ses)
	must(t, block.Unlock())
	if owner := onlyOwner(t, st); !ofSession(st.ses, owner) {
		t.Errorf("the release gave the lock to %q", owner)
	}
	_, err = rlock.New(other, st.name+"3").ForceUnlock(st.ctx)
	must(t, err)
	locktest.Ends(t, signal, 5*time.Second, rlock.ErrLost) // this was told after the grant
	st.outside(c, "the front, whose answer is still to come")
	answer()
	if unlocked != nil {
		must(t, locktest.Get(t, unlocked, 5*time.Second, "the release"))
	}
	must(t, st.in(c).hold.Unlock())
}

// awaitInLine waits until a session stands in the line of a lock.
func awaitInLine(t *testing.T, s *redistest.Server, name string, ses *rlock.Session) {
	t.Helper()
	redistest.Eventually(t, 5*time.Second, "the session to stand in the line", func() bool {
		members, err := s.Do(t, "ZRANGE", faultLine(name), "0", "-1").AsStrSlice()
		return err == nil && slices.ContainsFunc(members, func(m string) bool {
			return strings.Contains("gzan", m[:1]) && strings.Contains(m, ses.ID())
		})
	})
}

// faultLine is the key of the line of a lock.
func faultLine(name string) string { return "relock_line1:{" + name + "}" }

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
