package mutex_test

import (
	"fmt"
	"regexp"
	"testing"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
)

// calledAt runs a script when an entry was called so many ms ago, or is to come in so many. The time is Redis's own
// in the same run, so that none passes between.
func calledAt(t *testing.T, s *redistest.Server, ms int, script string, args []string) string {
	t.Helper()
	src := fmt.Sprintf(`do
  local t = redis.call('TIME')
  redis.call('ZADD', KEYS[2], string.format('%%.0f', %d + t[1] * 1000 + math.floor(t[2] / 1000) + %d), 'c')
end
`, called, ms)
	m, err := s.Do(t, append(append([]string{"EVAL", src + timeless()[script], "2"}, line...), args...)...).ToAny()
	locktest.Must(t, err)
	return fmt.Sprint(m)
}

// The lock is left to who was called, for a while: whoever comes, does not wait or looks meanwhile is told for
// how long, and takes nothing.
func TestAFreeLockIsLeftToWhoWasCalled(t *testing.T) {
	left := regexp.MustCompile(`^\[(0 )?[4-9]\d\d ~`)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		for _, c := range []struct {
			what, script string
			args         []string
			tells        bool
			want         string
		}{
			{"who comes", "acquire", come("fb"), true, "line<e1 fb #e1 #fb sA sB c we1 wfb>"},
			{"who comes with a plain entry", "acquire", with(come("gb")[:14], 8, "1"), true, "line<e1 gb #e1 sA sB lB c we1 wB>"},
			{"who does not wait", "acquire", try("o", "C1"), false, "line<e1 #e1 sA c we1>"},
			{"who looks", "look", looks("e1"), true, "line<e1 #e1 sA c we1>"},
		} {
			begin(t, s, stand("e1")...)
			got := calledAt(t, s, 900, c.script, c.args)
			if !c.tells && got != "[0 -1 0 0]" || c.tells && !left.MatchString(got) {
				t.Errorf("%s is told %s", c.what, got)
			}
			if got := byName(locktest.Describe(t, s)); got != c.want {
				t.Errorf("after %s Redis has %q, want %q", c.what, got, c.want)
			}
		}
	})
}

// Redis's clock may leap back: then a call that seems to count for years counts for nothing.
func TestACallOfALaterTimeCountsForNothing(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		begin(t, s, stand("e1")...)
		if got := calledAt(t, s, 1000000, "look", looks("e1")); got != "[0 ~]" {
			t.Errorf("a look of who was called is told %s", got)
		}
		if got := calledAt(t, s, 1000000, "acquire", try("o", "C1")); got != "[0 -1 0 0]" {
			t.Errorf("a TryLock is told %s", got)
		}
		begin(t, s, stand("f1")...)
		if got := calledAt(t, s, 1000000, "acquire", try("o", "C1")); got != "[0 -1 0 0]" {
			t.Errorf("a TryLock is told %s", got)
		}
		if got, want := byName(locktest.Describe(t, s)), "lock{A1:1}"; got != want {
			t.Errorf("after a TryLock Redis has %q, want %q", got, want)
		}
	})
}

// Who was called and does not come holds nobody up, and has the old place when it looks.
func TestWhoWasCalledAndDoesNotComeIsPassedOver(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		begin(t, s, stand("e1")...)
		if got := calledAt(t, s, -10, "acquire", come("fb")); got != "[1 1 0 1]" {
			t.Errorf("who came is told %s", got)
		}
		if got := byName(locktest.Describe(t, s)); got != "line<e1 #e1 sA sB we1> lock{B1:1}" {
			t.Errorf("Redis has %q", got)
		}
		eval(t, s, "look", line, looks("e1")...)
		if at, err := s.Do(t, "ZSCORE", "line", entries["e1"]).AsFloat64(); err != nil || at != 1 {
			t.Errorf("after the look it stands at %v, %v", at, err)
		}
	})
}

// Whoever comes passes over the one that was called, not those who wait behind it: these are let in.
func TestWhoComesPassesOverNobodyButWhoWasCalled(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		begin(t, s, stand("e1 fb")...)
		calledAt(t, s, -10, "acquire", with(come("fc"), 7, "0"))
		if got := byName(locktest.Describe(t, s)); got != "line<fc e1 #e1 #fc sA sB sC we1 wfc> lock{B1:1}" {
			t.Errorf("Redis has %q", got)
		}
	})
}
