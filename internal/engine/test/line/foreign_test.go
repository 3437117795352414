package line_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// foreignHolds has a client that knows no line, as Redisson, hold a lock for a while.
func foreignHolds(t *testing.T, s *redistest.Server, name string, lease time.Duration) {
	t.Helper()
	must(t, s.Do(t, "HSET", name, "8743c9c0-0795-4907-87fd-6c719a6b4586:1", "1").Error())
	must(t, s.Do(t, "PEXPIRE", name, fmt.Sprint(lease.Milliseconds())).Error())
}

// foreignLeaves has it release the lock.
func foreignLeaves(t *testing.T, s *redistest.Server, name string) {
	t.Helper()
	must(t, s.Do(t, "HDEL", name, "8743c9c0-0795-4907-87fd-6c719a6b4586:1").Error())
	must(t, s.Do(t, "PUBLISH", locktest.Channel(name), "0").Error())
}

// The first of a line leaves, again and again, while a client that knows no line has the lock, and releases it or
// crashes. The session behind it has been told that it is the first: it hears of the release, and knows when the
// lease ends. Its own look is an hour away (scenario 32).
func TestTheSecondHearsOfAForeignReleaseWhenTheFirstHasLeft(t *testing.T) {
	t.Parallel()
	for what, f := range map[string]firstLeaves{
		"it has left just now":                           {rounds: 1},
		"it has left often":                              {rounds: 5},
		"it waits once more":                             {rounds: 3, inLine: true},
		"the holder has crashed":                         {rounds: 1, crash: true},
		"the holder has crashed, and it waits once more": {rounds: 3, inLine: true, crash: true},
	} {
		t.Run(what, func(t *testing.T) { redistest.EachBubble(t, f.run) })
	}
}

// firstLeaves is one way in which the first of a line leaves while a foreign client has the lock.
type firstLeaves struct {
	rounds int  // how often the first leaves
	inLine bool // the one that has left waits once more when the lock comes free
	crash  bool // so the lock comes free; else by a release
}

func (f firstLeaves) run(t *testing.T, s *redistest.Server) {
	cfg := rlock.Config{PollFloor: time.Hour}
	hasty, patient := dial(t, s, cfg), dial(t, s, cfg)
	name, ctx := redistest.Name(t), within(t, time.Minute)
	const lease = 2 * time.Second // of the one that crashes
	foreignHolds(t, s, name, time.Hour)
	left, leave := waitsUntil(t, ctx, s, hasty, name)
	locktest.Stays(t, ctx, time.Millisecond) // in a bubble both would come at the same time, and stand in any order
	if f.crash {
		foreignHolds(t, s, name, lease)
	}
	ends := time.Now().Add(lease)
	next := locktest.GoLock(rlock.New(patient, name), ctx)
	locktest.AwaitInLine(t, s, name, patient)
	for i := range f.rounds {
		if i > 0 {
			left, leave = waitsUntil(t, ctx, s, hasty, name)
		}
		leave()
		hasLeft(t, left)
	}
	if f.inLine {
		left, leave = waitsUntil(t, ctx, s, hasty, name)
		defer leave()
	}
	if f.crash {
		leave()
	} else {
		ends = time.Now()
		foreignLeaves(t, s, name)
	}
	got := locktest.Get(t, next, lease+s.Slack(), "the second's Lock")
	must(t, got.Err)
	if d := got.At.Sub(ends); d > s.Slack() {
		t.Errorf("it has the lock %v after that came free", d)
	}
	must(t, got.Hold.Unlock())
	switch {
	case f.inLine && f.crash:
		hasLeft(t, left)
	case f.inLine:
		l := locktest.Get(t, left, 10*time.Second, "the other")
		must(t, l.Err)
		must(t, l.Hold.Unlock())
	}
	locktest.NothingLeft(t, s, hasty, patient)
}

// waitsUntil has a caller of the session stand in the line until leave is called.
func waitsUntil(t *testing.T, ctx context.Context, s *redistest.Server, ses *rlock.Session, name string) (caller <-chan locktest.Locked, leave context.CancelFunc) {
	t.Helper()
	own, leave := context.WithCancel(ctx)
	t.Cleanup(leave)
	caller = locktest.GoLock(rlock.New(ses, name), own)
	locktest.AwaitInLine(t, s, name, ses)
	return caller, leave
}

// hasLeft waits until the Lock of a caller whose context has ended says so.
func hasLeft(t *testing.T, caller <-chan locktest.Locked) {
	t.Helper()
	locktest.Is(t, "the Lock of the one that leaves", locktest.Get(t, caller, 10*time.Second, "the one that leaves").Err, context.Canceled)
}

// As before, but each session of the line gives up in its turn while the lock is held, also the one that has just
// become the first. The last one hears of the release.
func TestTheLastHearsOfAForeignReleaseWhenAllInFrontHaveLeft(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		cfg := rlock.Config{PollFloor: time.Hour}
		name, ctx := redistest.Name(t), within(t, time.Minute)
		foreignHolds(t, s, name, time.Hour)
		var all []<-chan locktest.Locked
		var leave []context.CancelFunc
		for range 4 {
			ses := dial(t, s, cfg)
			caller, cancel := waitsUntil(t, ctx, s, ses, name)
			all, leave = append(all, caller), append(leave, cancel)
			locktest.Stays(t, ctx, time.Millisecond) // in a bubble all would come at the same time, and stand in any order
		}
		last := len(all) - 1
		for i, c := range all[:last] {
			leave[i]()
			hasLeft(t, c)
		}
		began := time.Now()
		foreignLeaves(t, s, name)
		got := locktest.Get(t, all[last], s.Slack(), "the last one's Lock")
		must(t, got.Err)
		if d := got.At.Sub(began); d > s.Slack() {
			t.Errorf("it has the lock %v after that came free", d)
		}
		must(t, got.Hold.Unlock())
	})
}
