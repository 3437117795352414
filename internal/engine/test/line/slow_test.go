package line_test

import (
	"sync/atomic"
	"testing"
	"time"

	"relock/internal/test/faulttest"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// slowScene has a lock, the session that holds it, and a slow taker: the first session that waits for the lock, and that
// does not run.
type slowScene struct {
	*locktest.Stage
	other *rlock.Session
	hold  *rlock.Hold
	waits <-chan locktest.Locked
}

// newSlowScene has a session take long from a grant to its section, for its network stands still meanwhile; then
// it waits once more as the first of the line, and its network stands still again.
func newSlowScene(t *testing.T, s *redistest.Server) *slowScene {
	t.Helper()
	cfg := rlock.Config{PollFloor: time.Hour}
	sc := &slowScene{Stage: locktest.NewStage(t, s, cfg), other: dial(t, s, cfg)}
	lock := func() *rlock.Hold {
		_, h, err := rlock.New(sc.other, sc.Name).Lock(sc.Ctx)
		must(t, err)
		return h
	}
	h := lock()
	first := locktest.GoLock(sc.Mutex, sc.Ctx)
	// It asks once more as the first of the line: then no attempt is on its way, and it has the lock by the message.
	redistest.Eventually(t, 10*time.Second, "the first to have asked for the last time", sc.Settled)
	sc.Proxy.BlackHole(true)
	must(t, h.Unlock())
	locktest.Stays(t, sc.Ctx, 50*time.Millisecond) // so late it hears of the grant
	sc.Proxy.BlackHole(false)
	must(t, sc.In(first).Hold.Unlock())
	sc.hold = lock()
	sc.waits = locktest.GoLock(sc.Mutex, sc.Ctx)
	locktest.AwaitInLine(t, s, sc.Name, sc.Session)
	sc.Proxy.BlackHole(true)
	locktest.Stays(t, sc.Ctx, 20*time.Millisecond) // it has not been heard of just now
	return sc
}

// holds fails the test unless a session holds the lock by Redis's word.
func (sc *slowScene) holds(t *testing.T, when string, ses *rlock.Session) {
	t.Helper()
	if owner := locktest.OnlyOwner(t, sc.Stage); !locktest.OfSession(ses, owner) {
		t.Errorf("%s the lock is held by %q, want session %q", when, owner, ses.ID())
	}
}

// served has the slow taker, which was given the lock, hear of that.
func (sc *slowScene) served(t *testing.T) {
	t.Helper()
	sc.Proxy.BlackHole(false)
	must(t, sc.In(sc.waits).Hold.Unlock())
}

// A session that has needed long from a grant to its section is passed by while it is not heard of: the session
// behind it has the lock. It is not starved: when it was passed by for 100 ms the next release gives it the lock (scenario 40).
func TestASlowTakerIsPassedByForAWhile(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		if !s.IsMini() {
			t.Skip("who is slow by the wall clock of a busy machine is chance")
		}
		sc := newSlowScene(t, s)
		behind := dial(t, s, rlock.Config{PollFloor: time.Hour})
		second := locktest.GoLock(rlock.New(behind, sc.Name), sc.Ctx)
		locktest.AwaitInLine(t, s, sc.Name, behind)
		must(t, sc.hold.Unlock())
		got := sc.In(second)
		sc.holds(t, "after the first release", behind)
		third := locktest.GoLock(rlock.New(sc.other, sc.Name), sc.Ctx)
		locktest.AwaitInLine(t, s, sc.Name, sc.other)
		locktest.Stays(t, sc.Ctx, 110*time.Millisecond)
		must(t, got.Hold.Unlock())
		sc.holds(t, "110 ms after the slow taker was passed by", sc.Session)
		sc.served(t)
		must(t, sc.In(third).Hold.Unlock())
	})
}

// Where no other session waits, a slow taker is given the lock as any session is (scenario 40).
func TestASlowTakerThatWaitsAloneIsGivenTheLock(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		sc := newSlowScene(t, s)
		must(t, sc.hold.Unlock())
		sc.holds(t, "after a release that only the slow taker waits for", sc.Session)
		sc.served(t)
	})
}

// blinks has a network work for 10 of every 100 ms, until the contest is over: as a process is stopped and goes on that
// has used up its share of a processor.
func (r *contest) blinks(p *faulttest.Proxy) {
	r.wg.Go(func() {
		defer p.BlackHole(false)
		for r.ctx.Err() == nil {
			p.BlackHole(true)
			select {
			case <-r.ctx.Done():
			case <-time.After(90 * time.Millisecond):
			}
			p.BlackHole(false)
			time.Sleep(10 * time.Millisecond)
		}
	})
}

// One of sixteen sessions hears and says something in 10 of every 100 ms only. It is passed by meanwhile, and has the
// lock when it runs: the others keep 0.7 of what they have without it, and it is not starved (scenario 40). Without that
// they would have a seventh, for each turn of the slow one would last until it runs.
func TestOneSlowSessionOfSixteenHoldsNobodyUp(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		const lasts = 2 * time.Second
		r := newContest(t, s)
		r.join(15, time.Millisecond)
		r.turns(50)
		counted := func(n *atomic.Int64) func() int64 {
			before := n.Load()
			return func() int64 { return n.Load() - before }
		}
		without := counted(&r.sections)
		locktest.Stays(t, r.ctx, lasts)
		alone := without()

		slow, p := locktest.DialProxy(t, s, rlock.Config{})
		var turns atomic.Int64
		r.blinks(p)
		r.loop(rlock.New(slow, r.name), time.Millisecond, &turns)
		redistest.Eventually(t, 20*time.Second, "the first turn of the slow one", func() bool { return turns.Load() > 0 })
		theirs, its := counted(&r.sections), counted(&turns)
		locktest.Stays(t, r.ctx, lasts)
		beside, of := theirs(), its()
		r.end()
		t.Logf("the others had the lock %d times without the slow one, and %d times beside %d turns of it", alone, beside, of)
		most, least := beside >= alone*7/10, int64(10)
		if !s.IsMini() {
			// A busy machine makes all of them slow. In turns the others would have the lock 15 times as often as the slow one.
			most, least = beside >= alone*35/100 || beside >= 17*of, 2
		}
		if !most {
			t.Errorf("the others had the lock %d times, and %d times beside the slow one, which had it %d times", alone, beside, of)
		}
		if of < least {
			t.Errorf("the slow one had the lock %d times in %v", of, lasts)
		}
	})
}
