package rlock_test

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

// A tracing is a session whose hooks are checked, beside one without hooks.
type tracing struct {
	t      *testing.T
	ctx    context.Context
	server *redistest.Server
	ledger *locktest.Ledger
	ses    *rlock.Session
	other  *rlock.Session
}

func newTracing(t *testing.T, s *redistest.Server, cfg rlock.Config) *tracing {
	tr := &tracing{t: t, ctx: within(t, 30*time.Second), server: s, ledger: new(locktest.Ledger)}
	cfg.Trace = tr.ledger.Trace()
	tr.ses, tr.other = dial(t, s, cfg), dial(t, s, rlock.Config{})
	tr.ledger.Take()
	return tr
}

// told waits until the hooks have told so much, and checks it.
func (tr *tracing) told(want ...string) {
	tr.t.Helper()
	var got []string
	redistest.Eventually(tr.t, 5*time.Second, "the hooks have told", func() bool {
		got = append(got, tr.ledger.Take()...)
		return len(got) >= len(want)
	})
	if fmt.Sprint(got) != fmt.Sprint(want) {
		tr.t.Errorf("the hooks tell\n%q, want\n%q", got, want)
	}
}

// closed closes the session and checks that everything has ended.
func (tr *tracing) closed() {
	tr.t.Helper()
	must(tr.t, tr.ses.Close())
	if got := tr.ledger.Gauges(); got != locktest.AllZero {
		tr.t.Errorf("after Close: %s", got)
	}
	tr.ledger.Check(tr.t)
}

func TestTraceOfOneLock(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		tr := newTracing(t, s, rlock.Config{})
		m := rlock.New(tr.ses, "x")
		section, h, err := m.Lock(tr.ctx)
		must(t, err)
		_, in, err := m.TryLock(section)
		must(t, err)
		must(t, in.Unlock())
		must(t, h.Unlock())
		locktest.Is(t, "second Unlock", h.Unlock(), rlock.ErrNotHeld)
		tr.told("acquire mutex x try false", "acquired mutex redis nested false", "hold mutex x",
			"acquire mutex x try true", "acquired mutex redis nested true", "hold mutex x",
			"release mutex", "released <nil>", "released mutex", "release mutex", "released <nil>", "released mutex")
		tr.closed()
	})
}

func TestTraceOfCallsThatGetNothing(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		tr := newTracing(t, s, rlock.Config{})
		m := rlock.New(tr.ses, "x")
		_, h, err := rlock.New(tr.other, "x").Lock(tr.ctx)
		must(t, err)
		_, _, err = m.TryLock(tr.ctx)
		locktest.Is(t, "TryLock", err, rlock.ErrNotAcquired)
		_, _, err = m.Lock(tr.ctx, rlock.Wait(50*time.Millisecond))
		locktest.Is(t, "Lock", err, rlock.ErrNotAcquired)
		cancelled, cancel := context.WithCancel(tr.ctx)
		cancel()
		_, _, err = m.Lock(cancelled)
		locktest.Is(t, "Lock", err, context.Canceled)
		_, _, err = m.Lock(tr.ctx, rlock.Lease(-1))
		locktest.Is(t, "Lock", err, rlock.ErrArgument) // which is not told
		tr.told("acquire mutex x try true", "refused mutex  nested false",
			"acquire mutex x try false", "waiting", "timeout mutex  nested false",
			"acquire mutex x try false", "cancelled mutex  nested false")
		must(t, h.Unlock())
		tr.closed()
		_, _, err = m.Lock(tr.ctx)
		locktest.Is(t, "Lock", err, rlock.ErrClosed)
		tr.told("acquire mutex x try false", "closed mutex  nested false")
	})
}

func TestTraceOfAHandOver(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		tr := newTracing(t, s, rlock.Config{})
		m := rlock.New(tr.ses, "x")
		_, h, err := m.Lock(tr.ctx)
		must(t, err)
		tr.ses.Unhurried("x")
		next := queueUp(t, tr.ses, "x", tr.ctx)
		tr.told("acquire mutex x try false", "acquired mutex redis nested false", "hold mutex x", "acquire mutex x try false", "waiting")
		must(t, h.Unlock())
		got := locktest.Get(t, next, 5*time.Second, "the lock")
		must(t, got.err)
		must(t, got.hold.Unlock())
		if n := tr.ledger.Count("grant memory"); n != 1 || tr.ledger.Count("handed over mutex") != 1 {
			t.Errorf("%d grants in memory, %d hand-overs", n, tr.ledger.Count("handed over mutex"))
		}
		tr.closed()
	})
}

func TestTraceOfSharedReads(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		tr := newTracing(t, s, rlock.Config{})
		m := rwlock.New(tr.ses, "x")
		for tr.ledger.Count("grant shared") == 0 { // readers join for some milliseconds only
			section, a, err := m.RLock(tr.ctx)
			must(t, err)
			_, b, err := m.RLock(tr.ctx)
			must(t, err)
			_, c, err := m.RLock(section)
			must(t, err)
			for _, h := range []*rlock.Hold{a, b, c} {
				must(t, h.Unlock())
			}
		}
		if tr.ledger.Count("grant memory") == 0 {
			t.Error("no nested read was told to be granted in memory")
		}
		_, h, err := m.Lock(tr.ctx)
		must(t, err)
		must(t, h.Unlock())
		told := fmt.Sprint(tr.ledger.Take())
		for _, want := range []string{"acquired read shared nested false", "acquired read memory nested true", "acquired write redis nested false"} {
			if !strings.Contains(told, want) {
				t.Errorf("not told: %s", want)
			}
		}
		tr.closed()
	})
}

// However a hold ends, it ends once: also when it is unlocked after that.
func TestTraceOfTheEndsOfAHold(t *testing.T) {
	ends := []struct {
		why locktrace.HoldReason
		cfg rlock.Config
		opt []rlock.LockOption
		end func(tr *tracing, section context.Context, h *rlock.Hold)
	}{
		{why: locktrace.HoldReleased, end: func(tr *tracing, _ context.Context, h *rlock.Hold) { must(tr.t, h.Unlock()) }},
		{why: locktrace.HoldAbandoned, end: func(tr *tracing, _ context.Context, h *rlock.Hold) { must(tr.t, h.Abandon()) }},
		{why: locktrace.HoldExpired, opt: []rlock.LockOption{rlock.Lease(60 * time.Millisecond)},
			end: func(tr *tracing, section context.Context, _ *rlock.Hold) { <-section.Done() }},
		{why: locktrace.HoldClosed, end: func(tr *tracing, _ context.Context, _ *rlock.Hold) { must(tr.t, tr.ses.Close()) }},
		{why: locktrace.HoldLost, end: func(tr *tracing, section context.Context, _ *rlock.Hold) { // by a message
			_, err := rlock.New(tr.other, "x").ForceUnlock(tr.ctx)
			must(tr.t, err)
			<-section.Done()
		}},
		{why: locktrace.HoldLost, cfg: rlock.Config{Lease: 300 * time.Millisecond}, // at a renewal
			end: func(tr *tracing, section context.Context, _ *rlock.Hold) {
				must(tr.t, tr.server.Do(tr.t, "DEL", "x").Error())
				<-section.Done()
			}},
		{why: locktrace.HoldLost, end: func(tr *tracing, _ context.Context, h *rlock.Hold) { // found by Unlock
			must(tr.t, tr.server.Do(tr.t, "DEL", "x").Error())
			locktest.Is(tr.t, "Unlock", h.Unlock(), rlock.ErrLost)
		}},
	}
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		for i, c := range ends {
			t.Run(fmt.Sprint(c.why, i), func(t *testing.T) {
				s.FlushAll(t)
				tr := newTracing(t, s, c.cfg)
				section, h, err := rlock.New(tr.ses, "x").Lock(tr.ctx, c.opt...)
				must(t, err)
				c.end(tr, section, h)
				redistest.Eventually(t, 5*time.Second, "HoldEnd", func() bool { return tr.ledger.Count("hold "+string(c.why)) == 1 })
				if h.Unlock() == nil || h.Abandon() == nil {
					t.Error("a hold that has ended was ended again")
				}
				tr.closed()
				if n := tr.ledger.Count("hold " + string(c.why)); n != 1 {
					t.Errorf("%d ends", n)
				}
			})
		}
	})
}

// All holds of a section that is lost end, the nested ones too, and each once.
func TestTraceOfALostSection(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		tr := newTracing(t, s, rlock.Config{})
		m := rlock.New(tr.ses, "x")
		section, outer, err := m.Lock(tr.ctx)
		must(t, err)
		var inner []*rlock.Hold
		for range 3 {
			_, h, err := m.Lock(section)
			must(t, err)
			inner = append(inner, h)
		}
		must(t, inner[0].Unlock())
		must(t, outer.Unlock()) // the others keep the section
		_, err = m.ForceUnlock(tr.ctx)
		must(t, err)
		<-section.Done()
		for _, h := range inner[1:] {
			locktest.Is(t, "Unlock", h.Unlock(), rlock.ErrLost)
		}
		tr.closed()
		if r, l := tr.ledger.Count("hold released"), tr.ledger.Count("hold lost"); r != 2 || l != 2 {
			t.Errorf("%d released and %d lost, want 2 and 2", r, l)
		}
	})
}

// HoldEnd.Held does not contain the round trip of the release.
func TestTraceTellsTheTimeInside(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		const delay = 300 * time.Millisecond
		held, took, wait := time.Duration(-1), time.Duration(-1), time.Duration(-1)
		ses, p := faultDial(t, s, rlock.Config{Trace: &rlock.Trace{
			AcquireEnd: func(_ context.Context, e locktrace.AcquireEnd) { wait = e.Wait },
			HoldEnd:    func(_ context.Context, e locktrace.HoldEnd) { held = e.Held },
			ReleaseEnd: func(_ context.Context, e locktrace.ReleaseEnd) { took = e.Took },
		}})
		p.DelayReply(delay, faultRuns(t, "acquire"))
		p.DelayReply(delay, faultRuns(t, "release"))
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
	faultEach(t, func(t *testing.T, s *redistest.Server) {
		ledger := new(locktest.Ledger)
		ses, p := faultDial(t, s, rlock.Config{Trace: ledger.Trace()})
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
