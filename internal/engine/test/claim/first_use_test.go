package claim_test

import (
	"testing"
	"time"

	"relock/internal/test/faulttest"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// A session tells a server no scripts in advance. The first use of one in a server's life sends it
// whole, whichever session makes it; all others name it.
func TestScriptsAreSentOnceInAServersLife(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		must(t, s.Do(t, "SCRIPT", "FLUSH").Error())
		ctx := within(t, 20*time.Second)
		for _, whole := range []int{2, 0} { // the acquisition and the release, in the first session
			ses, p := locktest.DialProxy(t, s, rlock.Config{})
			p.Reset()
			for range 2 {
				_, h, err := rlock.New(ses, "x").Lock(ctx)
				must(t, err)
				must(t, h.Unlock())
			}
			if named, got := p.Count("EVALSHA"), p.Count("EVAL"); named != 4 || got != whole || p.Count() != 4+whole {
				t.Errorf("two cycles sent %d scripts by name and %d whole, want 4 and %d: %q", named, got, whole, p.Log())
			}
		}
	})
}

// What a session sends to begin is little, and does not grow with the scripts of the program.
func TestASessionBeginsWithoutScripts(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		p, _ := faulttest.Of(t, s.Option())
		ses, err := rlock.Dial(within(t, 20*time.Second), p.Option(s.Option()), rlock.Config{})
		must(t, err)
		sent := 0
		for _, line := range p.Log() {
			sent += len(line)
		}
		if whole := p.Count("SCRIPT", "EVAL"); whole != 0 || sent > 2000 {
			t.Errorf("a session began with %d bytes, %d of its commands with scripts: %q", sent, whole, p.Log())
		}
		must(t, ses.Close())
	})
}
