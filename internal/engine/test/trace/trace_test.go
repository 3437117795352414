package trace_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/locktrace"
	"relock/rlock"
	"relock/rwlock"
)

func TestTraceOfOneLock(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		tr := locktest.NewTracing(t, s, rlock.Config{})
		m := rlock.New(tr.Session, "x")
		section, h, err := m.Lock(tr.Ctx)
		must(t, err)
		_, in, err := m.TryLock(section)
		must(t, err)
		must(t, in.Unlock())
		must(t, h.Unlock())
		locktest.Is(t, "second Unlock", h.Unlock(), rlock.ErrNotHeld)
		tr.Told("acquire mutex x try false", "acquired mutex redis nested false", "hold mutex x",
			"acquire mutex x try true", "acquired mutex redis nested true", "hold mutex x",
			"release mutex", "released <nil>", "released mutex", "release mutex", "released <nil>", "released mutex")
		tr.Closed()
	})
}

func TestTraceOfCallsThatGetNothing(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		tr := locktest.NewTracing(t, s, rlock.Config{})
		m := rlock.New(tr.Session, "x")
		_, h, err := rlock.New(tr.Other, "x").Lock(tr.Ctx)
		must(t, err)
		_, _, err = m.TryLock(tr.Ctx)
		locktest.Is(t, "TryLock", err, rlock.ErrNotAcquired)
		_, _, err = m.Lock(tr.Ctx, rlock.Wait(50*time.Millisecond))
		locktest.Is(t, "Lock", err, rlock.ErrNotAcquired)
		cancelled, cancel := context.WithCancel(tr.Ctx)
		cancel()
		_, _, err = m.Lock(cancelled)
		locktest.Is(t, "Lock", err, context.Canceled)
		_, _, err = m.Lock(tr.Ctx, rlock.Lease(-1))
		locktest.Is(t, "Lock", err, rlock.ErrArgument) // which is not told
		tr.Told("acquire mutex x try true", "refused mutex  nested false",
			"acquire mutex x try false", "waiting", "timeout mutex  nested false",
			"acquire mutex x try false", "cancelled mutex  nested false")
		must(t, h.Unlock())
		tr.Closed()
		_, _, err = m.Lock(tr.Ctx)
		locktest.Is(t, "Lock", err, rlock.ErrClosed)
		tr.Told("acquire mutex x try false", "closed mutex  nested false")
	})
}

func TestTraceOfAHandOver(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		tr := locktest.NewTracing(t, s, rlock.Config{})
		m := rlock.New(tr.Session, "x")
		_, h, err := m.Lock(tr.Ctx)
		must(t, err)
		locktest.Unhurried(tr.Session, "x")
		next := locktest.QueueUp(t, tr.Session, "x", tr.Ctx)
		tr.Told("acquire mutex x try false", "acquired mutex redis nested false", "hold mutex x", "acquire mutex x try false", "waiting")
		must(t, h.Unlock())
		got := locktest.Get(t, next, 5*time.Second, "the lock")
		must(t, got.Err)
		must(t, got.Hold.Unlock())
		if n := tr.Ledger.Count("grant memory"); n != 1 || tr.Ledger.Count("handed over mutex") != 1 {
			t.Errorf("%d grants in memory, %d hand-overs", n, tr.Ledger.Count("handed over mutex"))
		}
		tr.Closed()
	})
}

func TestTraceOfSharedReads(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		tr := locktest.NewTracing(t, s, rlock.Config{})
		m := rwlock.New(tr.Session, "x")
		for tr.Ledger.Count("grant shared") == 0 { // readers join for some milliseconds only
			section, a, err := m.RLock(tr.Ctx)
			must(t, err)
			_, b, err := m.RLock(tr.Ctx)
			must(t, err)
			_, c, err := m.RLock(section)
			must(t, err)
			for _, h := range []*rlock.Hold{a, b, c} {
				must(t, h.Unlock())
			}
		}
		if tr.Ledger.Count("grant memory") == 0 {
			t.Error("no nested read was told to be granted in memory")
		}
		_, h, err := m.Lock(tr.Ctx)
		must(t, err)
		must(t, h.Unlock())
		told := fmt.Sprint(tr.Ledger.Take())
		for _, want := range []string{"acquired read shared nested false", "acquired read memory nested true", "acquired write redis nested false"} {
			if !strings.Contains(told, want) {
				t.Errorf("not told: %s", want)
			}
		}
		tr.Closed()
	})
}

// However a hold ends, it ends once: also when it is unlocked after that.
func TestTraceOfTheEndsOfAHold(t *testing.T) {
	ends := []struct {
		why locktrace.HoldReason
		cfg rlock.Config
		opt []rlock.LockOption
		end func(tr *locktest.Tracing, section context.Context, h *rlock.Hold)
	}{
		{why: locktrace.HoldReleased, end: func(tr *locktest.Tracing, _ context.Context, h *rlock.Hold) { must(tr.T, h.Unlock()) }},
		{why: locktrace.HoldAbandoned, end: func(tr *locktest.Tracing, _ context.Context, h *rlock.Hold) { must(tr.T, h.Abandon()) }},
		{why: locktrace.HoldExpired, opt: []rlock.LockOption{rlock.Lease(60 * time.Millisecond)},
			end: func(tr *locktest.Tracing, section context.Context, _ *rlock.Hold) { <-section.Done() }},
		{why: locktrace.HoldClosed, end: func(tr *locktest.Tracing, _ context.Context, _ *rlock.Hold) { must(tr.T, tr.Session.Close()) }},
		{why: locktrace.HoldLost, end: func(tr *locktest.Tracing, section context.Context, _ *rlock.Hold) { // by a message
			_, err := rlock.New(tr.Other, "x").ForceUnlock(tr.Ctx)
			must(tr.T, err)
			<-section.Done()
		}},
		{why: locktrace.HoldLost, cfg: rlock.Config{Lease: 300 * time.Millisecond}, // at a renewal
			end: func(tr *locktest.Tracing, section context.Context, _ *rlock.Hold) {
				must(tr.T, tr.Server.Do(tr.T, "DEL", "x").Error())
				<-section.Done()
			}},
		{why: locktrace.HoldLost, end: func(tr *locktest.Tracing, _ context.Context, h *rlock.Hold) { // found by Unlock
			must(tr.T, tr.Server.Do(tr.T, "DEL", "x").Error())
			locktest.Is(tr.T, "Unlock", h.Unlock(), rlock.ErrLost)
		}},
	}
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		for i, c := range ends {
			t.Run(fmt.Sprint(c.why, i), func(t *testing.T) {
				s.FlushAll(t)
				tr := locktest.NewTracing(t, s, c.cfg)
				section, h, err := rlock.New(tr.Session, "x").Lock(tr.Ctx, c.opt...)
				must(t, err)
				c.end(tr, section, h)
				redistest.Eventually(t, 5*time.Second, "HoldEnd", func() bool { return tr.Ledger.Count("hold "+string(c.why)) == 1 })
				if h.Unlock() == nil || h.Abandon() == nil {
					t.Error("a hold that has ended was ended again")
				}
				tr.Closed()
				if n := tr.Ledger.Count("hold " + string(c.why)); n != 1 {
					t.Errorf("%d ends", n)
				}
			})
		}
	})
}

// All holds of a section that is lost end, the nested ones too, and each once.
func TestTraceOfALostSection(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		tr := locktest.NewTracing(t, s, rlock.Config{})
		m := rlock.New(tr.Session, "x")
		section, outer, err := m.Lock(tr.Ctx)
		must(t, err)
		var inner []*rlock.Hold
		for range 3 {
			_, h, err := m.Lock(section)
			must(t, err)
			inner = append(inner, h)
		}
		must(t, inner[0].Unlock())
		must(t, outer.Unlock()) // the others keep the section
		_, err = m.ForceUnlock(tr.Ctx)
		must(t, err)
		<-section.Done()
		for _, h := range inner[1:] {
			locktest.Is(t, "Unlock", h.Unlock(), rlock.ErrLost)
		}
		tr.Closed()
		if r, l := tr.Ledger.Count("hold released"), tr.Ledger.Count("hold lost"); r != 2 || l != 2 {
			t.Errorf("%d released and %d lost, want 2 and 2", r, l)
		}
	})
}

// HoldEnd.Held does not contain the round trip of the release.
func TestTraceTellsTheTimeInside(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		const delay = 300 * time.Millisecond
		held, took, wait := time.Duration(-1), time.Duration(-1), time.Duration(-1)
		ses, p := locktest.DialProxy(t, s, rlock.Config{Trace: &rlock.Trace{
			AcquireEnd: func(_ context.Context, e locktrace.AcquireEnd) { wait = e.Wait },
			HoldEnd:    func(_ context.Context, e locktrace.HoldEnd) { held = e.Held },
			ReleaseEnd: func(_ context.Context, e locktrace.ReleaseEnd) { took = e.Took },
		}})
		p.DelayReply(delay, locktest.Calls(t, "acquire"))
		p.DelayReply(delay, locktest.Calls(t, "release"))
		_, h, err := rlock.New(ses, redistest.Name(t)).Lock(within(t, 30*time.Second))
		must(t, err)
		must(t, h.Unlock())
		if wait < delay || took < delay || held < 0 || held >= delay {
			t.Errorf("wait %v, held %v, release %v, with a delay of %v", wait, held, took, delay)
		}
	})
}

// The session's subscription: connected, lost, connected again, closed.
func TestTraceOfTheSubscription(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		ledger := new(locktest.Ledger)
		ses, p := locktest.DialProxy(t, s, rlock.Config{Trace: ledger.Trace()})
		is := func(state string, n int) {
			t.Helper()
			redistest.Eventually(t, 10*time.Second, state, func() bool { return ledger.Count("subscription "+state) == n })
		}
		is("connected", 1)
		p.Cut()
		is("lost", 1)
		is("connected", 2)
		must(t, ses.Close())
		is("closed", 1)
		if got := ledger.Gauges(); got != locktest.AllZero {
			t.Error(got)
		}
	})
}
