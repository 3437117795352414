package line_test

import (
	"context"
	"testing"
	"time"

	"relock/internal/test/faulttest"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/locktrace"
	"relock/rlock"
	"relock/rwlock"
)

// The tests of this file are those of a lock that was granted by another session's release: the session has
// not asked for it. Redis keeps such a lock for a short time only until it is confirmed (scenario 28).

// grantLease is for how long Redis keeps a lock that was granted by another's release until it is confirmed.
const grantLease = 1250 * time.Millisecond

// A granting session knows how often it was refused, and where each lock of it came from.
type granting struct {
	refused chan struct{}
	came    chan locktrace.Grant
}

func newGranting() *granting {
	return &granting{make(chan struct{}, 100), make(chan locktrace.Grant, 100)}
}

func (g *granting) trace() *rlock.Trace {
	return &rlock.Trace{
		Attempt: func(e locktrace.Attempt) {
			if e.Err == nil && !e.Granted {
				g.refused <- struct{}{}
			}
		},
		AcquireEnd: func(_ context.Context, e locktrace.AcquireEnd) {
			if e.Err == nil {
				g.came <- e.Grant
			}
		},
	}
}

// lock has another session's release grant a lock to the session, which must not have asked for it at that time.
func (g *granting) lock(t *testing.T, s *redistest.Server, ctx context.Context, ses *rlock.Session, name string) locktest.Locked {
	t.Helper()
	_, h, err := rlock.New(dial(t, s, rlock.Config{}), name).Lock(ctx)
	must(t, err)
	next := locktest.GoLock(rlock.New(ses, name), ctx)
	for range 2 { // the first of the line asks again when it listens
		locktest.Get(t, g.refused, 10*time.Second, "a refusal")
	}
	must(t, h.Unlock())
	got := locktest.Get(t, next, 10*time.Second, "the lock that was granted")
	must(t, got.Err)
	if from := locktest.Get(t, g.came, 10*time.Second, "where the lock came from"); from != locktrace.GrantLine {
		t.Errorf("the lock came from %q, want it granted by the other's release", from)
	}
	return got
}

// Who was the first for a while, and has said when it came that it listens, is taken for a client outside the line neither
// while it waits nor when it has just been let in. To such a client a release leaves the lock for a moment, and the next one
// is called instead of granted it.
func TestAFirstThatHasWaitedIsNoClientOutsideTheLine(t *testing.T) {
	for what, lock := range map[string]func(ses *rlock.Session, name string) locktest.Mutex{
		"plain":  func(ses *rlock.Session, name string) locktest.Mutex { return rlock.New(ses, name) },
		"writer": func(ses *rlock.Session, name string) locktest.Mutex { return rwlock.New(ses, name) },
	} {
		t.Run(what, func(t *testing.T) {
			redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
				name, ctx := redistest.Name(t), within(t, time.Minute)
				h, err := hold(lock(dial(t, s, calledConfig), name), ctx)
				must(t, err)
				var all []<-chan locktest.Locked
				var came []chan locktrace.Grant
				for i := range 4 {
					g, cfg := newGranting(), calledConfig
					cfg.Trace = g.trace()
					all, came = append(all, locktest.GoLock(lock(dial(t, s, cfg), name), ctx)), append(came, g.came)
					stands(t, s, name, i+1)
					if i == 0 {
						for range 2 { // it asks again when it listens
							locktest.Get(t, g.refused, 10*time.Second, "a refusal")
						}
					}
					locktest.Stays(t, ctx, time.Millisecond) // in a bubble two would come at the same time, and stand in any order
				}
				locktest.Stays(t, ctx, map[bool]time.Duration{true: 20 * time.Second, false: time.Second}[redistest.MadeUpClock()])
				for i, next := range all {
					must(t, h.Unlock())
					got := locktest.Get(t, next, 10*time.Second, "the next")
					must(t, got.Err)
					h = got.Hold
					if from := locktest.Get(t, came[i], 10*time.Second, "where the lock came from"); from != locktrace.GrantLine && redistest.MadeUpClock() { // a busy machine may be later
						t.Errorf("waiter %d was let in by %q, want by a release", i, from)
					}
				}
				must(t, h.Unlock())
			})
		})
	}
}

// A session that has listened some seconds ago, and is the first for a moment only, does not listen: a client outside the line
// has its turn beside it.
func TestWhoHasListenedOnceIsNotTakenForAListener(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		if !redistest.MadeUpClock() {
			t.Skip("whether a round is left open is decided by chance; where times are made up it always is")
		}
		name, ctx, ses := redistest.Name(t), within(t, time.Minute), dial(t, s, calledConfig)
		hears := locktest.Hears(t, s, locktest.Channel(name))
		h, err := hold(rlock.New(dial(t, s, calledConfig), name), ctx)
		must(t, err)
		next := locktest.GoLock(rlock.New(ses, name), ctx)
		stands(t, s, name, 1)
		// As the line has it of a session that has left, where others have stood since; see line.lua.
		lapsed := score(6_000_000_000_000_000 - time.Now().UnixMilli() + 2000)
		must(t, s.Do(t, "ZADD", locktest.LineOf(name), lapsed, "l"+ses.ID()).Error())
		must(t, h.Unlock())
		locktest.Get(t, hears, time.Second, "the round that is left open")
		got := locktest.Get(t, next, 10*time.Second, "the lock")
		must(t, got.Err)
		must(t, got.Hold.Unlock())
	})
}

// A lock that was granted by another's release is as safe as one that was asked for: it has a full lease 20 ms
// later, and survives a network that is silent for half a lease, and one that is cut for 60 % of it.
func TestAGrantedLockSurvivesAnOutage(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		lease := s.Slowed(3 * time.Second) // half of it is longer than a grant's lease
		type outage struct {
			begins, lasts time.Duration
			set           func(p *faulttest.Proxy, on bool)
		}
		var all []outage
		for _, begins := range []time.Duration{20 * time.Millisecond, 700 * time.Millisecond} {
			all = append(all, outage{begins, lease / 2, (*faulttest.Proxy).BlackHole}, outage{begins, lease * 6 / 10, (*faulttest.Proxy).Refuse})
		}
		locktest.Together(t, all, func(o outage) {
			g := newGranting()
			ses, p := locktest.DialProxy(t, s, rlock.Config{Lease: lease, Trace: g.trace()})
			name := redistest.Name(t)
			got := g.lock(t, s, within(t, 90*time.Second), ses, name)
			locktest.Stays(t, got.Ctx, o.begins)
			// A busy machine may be later. Then the outage begins when the lock has its full lease.
			redistest.Eventually(t, s.Slack(), "a full lease", func() bool {
				return got.Hold.Remaining() > lease*9/10-time.Since(got.At)
			})
			if d := time.Since(got.At); redistest.MadeUpClock() && d != o.begins {
				t.Errorf("the lock had its full lease %v after the grant, and not within %v", d, o.begins)
			}
			o.set(p, true)
			locktest.Stays(t, got.Ctx, o.lasts)
			o.set(p, false)
			locktest.Stays(t, got.Ctx, 2*lease)
			if n := locktest.Field(t, s, name, got.Hold.Owner()); n != "1" {
				t.Errorf("count %q", n)
			}
			must(t, got.Hold.Unlock())
			if !locktest.Free(t, s, name) {
				t.Error("not free")
			}
		})
	})
}

// Redis stands still as a whole for half a lease, on a lock that was granted 20 or 700 ms before.
func TestAGrantedLockSurvivesAStalledServer(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		if !s.CanPause() {
			t.Skip("miniredis cannot be paused")
		}
		redistest.SkipShort(t)
		lease := s.Slowed(3 * time.Second)
		for _, begins := range []time.Duration{20 * time.Millisecond, 700 * time.Millisecond} {
			g := newGranting()
			ses := dial(t, s, rlock.Config{Lease: lease, Trace: g.trace()})
			name := redistest.Name(t)
			got := g.lock(t, s, within(t, 90*time.Second), ses, name)
			locktest.Stays(t, got.Ctx, begins)
			redistest.Eventually(t, s.Slack(), "a full lease", func() bool {
				return got.Hold.Remaining() > lease*9/10-time.Since(got.At)
			})
			s.Pause()
			locktest.Stays(t, got.Ctx, lease/2)
			s.Resume()
			locktest.Stays(t, got.Ctx, lease/2)
			if n := locktest.Field(t, s, name, got.Hold.Owner()); n != "1" {
				t.Errorf("count %q", n)
			}
			must(t, got.Hold.Unlock())
		}
	})
}

// Redis goes away in the first moment after the grant: the lock is lost cleanly. Its section ends with ErrLost
// before the grant's lease is over, and before another session has the lock; what arrives late harms nobody.
func TestAGrantedLockIsLostCleanlyBeforeItIsConfirmed(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		stalls := locktest.WatchStalls(t)
		g := newGranting()
		ses, p := locktest.DialProxy(t, s, rlock.Config{ReleaseTimeout: 500 * time.Millisecond, Trace: g.trace()})
		name, ctx := redistest.Name(t), within(t, 60*time.Second)
		_, release := p.HoldRequest(locktest.Calls(t, "renew")) // also if this goroutine is late
		defer release()
		got := g.lock(t, s, ctx, ses, name)
		p.BlackHole(true)
		ended := make(chan time.Time, 1)
		context.AfterFunc(got.Ctx, func() { ended <- time.Now() })
		if left := got.Hold.Remaining(); left > grantLease*19/20 {
			t.Errorf("the hold is trusted for %v, and nobody has confirmed it", left)
		}
		next := locktest.Get(t, locktest.GoLock(rlock.New(dial(t, s, rlock.Config{}), name), ctx), 30*time.Second, "another session's Lock")
		must(t, next.Err)
		if got.Ctx.Err() == nil && stalls.Longest() < grantLease/100 {
			t.Error("another session has the lock while the section goes on")
		}
		locktest.Ends(t, got.Ctx, s.Slack(), rlock.ErrLost)
		at := locktest.Get(t, ended, s.Slack(), "the end")
		if d := at.Sub(got.At); d > grantLease && stalls.Longest() < grantLease/100 {
			t.Errorf("the section ended %v after the grant; its lease is %v", d, grantLease)
		}
		locktest.Is(t, "Unlock", got.Hold.Unlock(), rlock.ErrLost)
		p.BlackHole(false)
		release()
		locktest.Stays(t, next.Ctx, 700*time.Millisecond)
		if n := locktest.Field(t, s, name, next.Hold.Owner()); n != "1" {
			t.Errorf("the next owner's count is %q", n)
		}
		must(t, next.Hold.Unlock())
	})
}

// A lock that was granted passes on in memory when it is confirmed, and not before: the next section of the session
// has at least half of a full lease, as after a hand-over of a lock that was asked for.
func TestAGrantedLockIsHandedOverWhenItIsConfirmed(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		st := locktest.NewStage(t, s, rlock.Config{Lease: 20 * time.Second})
		_, block, err := rlock.New(dial(t, s, rlock.Config{}), st.Name).Lock(st.Ctx)
		must(t, err)
		first := st.Queue(st.Ctx)
		st.AsksNoMore()
		second := st.Queue(st.Ctx)
		seen, release := st.Proxy.HoldRequest(locktest.Calls(t, "renew"))
		defer release()
		must(t, block.Unlock())
		in := st.In(first)
		locktest.Unhurried(st.Session, st.Name)
		st.Reached(seen) // it is confirmed at once, for another one waits
		must(t, in.Hold.Unlock())
		locktest.Quiet(t, st.Session)
		locktest.Stays(t, st.Ctx, 100*time.Millisecond)
		st.Outside(second, "before Redis has confirmed the lock")
		if st.Count() != 0 {
			t.Errorf("%d hand-overs before that", st.Count())
		}
		release()
		got := st.In(second)
		if got.Hold.Owner() != in.Hold.Owner() {
			t.Error("it was not handed over in memory")
		}
		if left := got.Hold.Remaining(); left < 19*time.Second/2 {
			t.Errorf("the next section is trusted for %v, which is less than half of a lease", left)
		}
		must(t, got.Hold.Unlock())
		locktest.NothingLeft(t, s, st.Session)
	})
}
