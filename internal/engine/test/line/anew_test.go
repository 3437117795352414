package line_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// An anew is a release that enters its session's next caller in the line, since another session waits.
type anew struct {
	*locktest.Stage
	other  *rlock.Session
	hold   *rlock.Hold
	behind <-chan locktest.Locked // the other session's caller
	back   <-chan locktest.Locked // the one that the release enters
	leave  context.CancelFunc
}

func newAnew(t *testing.T, s *redistest.Server) *anew {
	t.Helper()
	cfg := rlock.Config{PollFloor: time.Hour, HandOverLimit: -1}
	a := &anew{Stage: locktest.NewStage(t, s, cfg), other: dial(t, s, cfg)}
	_, a.hold = a.Lock(a.Ctx)
	a.behind = locktest.GoLock(rlock.New(a.other, a.Name), a.Ctx)
	locktest.AwaitInLine(t, s, a.Name, a.other)
	own, leave := context.WithCancel(a.Ctx)
	t.Cleanup(leave)
	a.leave, a.back = leave, a.Queue(own)
	return a
}

// stand checks how many entries the session has in the line.
func (a *anew) stand(want int, when string) {
	a.T.Helper()
	if all := entriesOf(a.T, a.Server, a.Name, a.Session); len(all) != want {
		a.T.Errorf("%s the session has %d entries, want %d: %q", when, len(all), want, all)
	}
}

// owned checks that the owner of a hold has the lock, alone and once.
func (a *anew) owned(by locktest.Locked, when string) {
	a.T.Helper()
	if h := a.Hash(); len(h) != 1 || h[by.Hold.Owner()] != "1" || by.Ctx.Err() != nil {
		a.T.Errorf("%s the lock is %v, want it to be of %q once; the section's end: %v", when, h, by.Hold.Owner(), by.Ctx.Err())
	}
}

// A release that enters its session anew gets lost, is sent again, and the first one arrives late: at any moment
// it enters nobody, and ends nothing. The caller who waits has one entry, and is served by message (scenario 46).
func TestALateReleaseEntersNobodyAnew(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		for _, moment := range []string{"while the next has the lock", "when the caller has left", "while the caller has the lock",
			"when the lock is free", "while a third session has the lock"} {
			a := newAnew(t, s)
			late := locktest.DropLate(a.Proxy, enters(t), nil)
			must(t, a.hold.Unlock())
			in := a.In(a.behind)
			arrive := func(by *locktest.Locked, entries int) {
				late.Arrive(t, s)
				a.stand(entries, moment)
				if by != nil {
					a.owned(*by, moment)
				} else if h := a.Hash(); len(h) != 0 {
					t.Errorf("%s it is %v", moment, h)
				}
			}
			locktest.AwaitInLine(t, s, a.Name, a.Session)
			if moment == "while the next has the lock" {
				arrive(&in, 1)
			}
			if moment == "when the caller has left" {
				a.leave()
				locktest.Is(t, "the caller's Lock", locktest.Get(t, a.back, 5*time.Second, "the caller").Err, context.Canceled)
				locktest.Quiet(t, a.Session)
				a.stand(0, moment)
				arrive(&in, 0)
				must(t, in.Hold.Unlock())
			} else {
				must(t, in.Hold.Unlock())
				got := a.In(a.back)
				if moment == "while the caller has the lock" {
					arrive(&got, 0)
				}
				must(t, got.Hold.Unlock())
			}
			switch moment {
			case "when the lock is free":
				arrive(nil, 0)
			case "while a third session has the lock":
				section, h, err := rlock.New(dial(t, s, rlock.Config{}), a.Name).Lock(a.Ctx)
				must(t, err)
				third := locktest.Locked{Ctx: section, Hold: h}
				arrive(&third, 0)
				must(t, h.Unlock())
			}
			if left := a.Losses(); len(left) > 0 {
				t.Errorf("%s: lost: %q", moment, left)
			}
			locktest.NothingLeft(t, s, a.Session, a.other)
		}
	})
}

// The release has run, and its answer is lost: it is sent again at once, and runs twice. The caller stands in the
// line once, and not at all if it has left meanwhile.
func TestAReleaseThatRunsTwiceEntersItsSessionOnce(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		for _, leaves := range []bool{false, true} {
			a := newAnew(t, s)
			seen, answer := a.Proxy.HoldReply(enters(t))
			defer answer()
			a.Proxy.DropReply(enters(t))
			unlocked := locktest.Go(a.hold.Unlock)
			a.Reached(seen)
			in := a.In(a.behind)
			a.stand(1, "when the release has run")
			if leaves {
				a.leave()
				locktest.Is(t, "the caller's Lock", locktest.Get(t, a.back, 5*time.Second, "the caller").Err, context.Canceled)
			}
			a.Proxy.Cut() // the answer is lost
			answer()
			must(t, locktest.Get(t, unlocked, 10*time.Second, "Unlock"))
			locktest.Quiet(t, a.Session)
			a.owned(in, "when it has run twice")
			if leaves {
				a.stand(0, "when its caller has left")
				must(t, in.Hold.Unlock())
			} else {
				a.stand(1, "when it has run twice")
				must(t, in.Hold.Unlock())
				must(t, a.In(a.back).Hold.Unlock())
			}
			locktest.NothingLeft(t, s, a.Session, a.other)
		}
	})
}

// The caller whom a release enters leaves before the release has run. When both are over, nobody's entry stands in
// the line, and the next owner keeps the lock.
func TestAReleaseThatComesBehindItsCallersEndLeavesNoEntry(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		for _, lost := range []bool{false, true} {
			a := newAnew(t, s)
			seen, goOn := a.Proxy.HoldRequest(enters(t))
			defer goOn()
			unlocked := locktest.Go(a.hold.Unlock)
			a.Reached(seen)
			a.leave()
			locktest.Is(t, "the caller's Lock", locktest.Get(t, a.back, 5*time.Second, "the caller").Err, context.Canceled)
			if lost {
				a.Proxy.Cut() // the release is sent again, and the first one comes all the same
			}
			goOn()
			must(t, locktest.Get(t, unlocked, 10*time.Second, "Unlock"))
			in := a.In(a.behind)
			locktest.Quiet(t, a.Session)
			a.stand(0, "when its caller has left")
			a.owned(in, "when its caller has left")
			must(t, in.Hold.Unlock())
			locktest.NothingLeft(t, s, a.Session, a.other)
		}
	})
}

// So it is when the session closes meanwhile. Nobody would give back then what the next release gives to the entry.
func TestAReleaseThatComesBehindCloseLeavesNoEntry(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		for _, lost := range []bool{false, true} {
			a := newAnew(t, s)
			reached, matches := make(chan struct{}), enters(t)
			seen, goOn := (<-chan struct{})(reached), func() {}
			if lost { // it is sent again in a moment, and what takes the entry out has run in vain by then
				a.Proxy.DropRequest(func(cmd []string) bool {
					found := matches(cmd)
					if found {
						close(reached)
					}
					return found
				})
			} else {
				seen, goOn = a.Proxy.HoldRequest(matches)
				defer goOn()
			}
			unlocked := locktest.Go(a.hold.Unlock)
			a.Reached(seen)
			closed := locktest.Go(a.Session.Close)
			locktest.Is(t, "the caller's Lock", locktest.Get(t, a.back, 5*time.Second, "the caller").Err, rlock.ErrClosed)
			goOn()
			must(t, locktest.Get(t, unlocked, 10*time.Second, "Unlock"))
			must(t, locktest.Get(t, closed, 10*time.Second, "Close"))
			a.stand(0, "when it has closed")
			in := a.In(a.behind)
			a.owned(in, "when the session before has closed")
			must(t, in.Hold.Unlock())
			locktest.NothingLeft(t, s, a.other)
		}
	})
}

// enters matches the release that has an entry in its arguments, which is to be entered.
func enters(t *testing.T) func(cmd []string) bool {
	release := locktest.Calls(t, "release")
	return func(cmd []string) bool {
		return release(cmd) && slices.ContainsFunc(cmd, func(arg string) bool { return len(arg) > 20 && arg[0] == 'g' && arg[1] == '0' })
	}
}
