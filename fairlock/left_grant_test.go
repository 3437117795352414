package fairlock_test

import (
	"context"
	"testing"
	"time"

	"relock/fairlock"
	"relock/internal/inbox"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/locktrace"
	"relock/rlock"
)

// The last caller of a run leaves while another caller's attempt to join the run is under way. Then the run is given the
// lock, by a message that the session cannot trust. Nobody is left to ask, so the lock is given back at once: it stood
// until the grant's lease was over, and signs of life were sent for the run until the session closed.
func TestAGrantInDoubtToARunThatAllHaveLeftIsGivenBack(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, time.Minute)
		others, told := dial(t, s, rlock.Config{}), make(chan locktrace.Line, 10)
		first, y := lock(t, ctx, fairlock.New(others, "x")), lock(t, ctx, fairlock.New(others, "y"))
		cfg := silent()
		cfg.Trace = &rlock.Trace{Line: func(e locktrace.Line) { told <- e }}
		ses, p := dialProxy(t, s, cfg)
		m := fairlock.New(ses, "x")
		named := goQueued(t, rlock.WithOwner(ctx, "n"), fairlock.New(ses, "y"), 1)
		waiting, leave := context.WithCancel(ctx)
		left := goQueued(t, waiting, m, 1)
		seen, release := p.HoldRequest(runs("acquire"))
		defer release()
		late := goLock(ctx, m)
		locktest.Get(t, seen, patience, "the attempt of the caller behind")
		leave()
		is(t, "the one that left", locktest.Get(t, left, patience, "its end").err, context.Canceled)
		// The message that a named owner was forced out puts the session in doubt.
		must(t, s.Do(t, "PUBLISH", inbox.Prefix+ses.ID(), inbox.Note{Kind: inbox.Lost, Owner: "n", Key: "y"}.String()).Error())
		unlock(t, first)
		if e := locktest.Get(t, told, patience, "a message"); e.What != locktrace.LineGranted {
			t.Fatalf("the session was told %q", e.What)
		}
		release()
		unlock(t, granted(t, late, time.Second+s.Slack(), "the caller that came too late to join"))
		unlock(t, y)
		unlock(t, granted(t, named, patience, "the named owner"))
		nothingLeft(t, s)
	})
}
