package line_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// entriesOf returns the entries of a session in the line of a lock.
func entriesOf(t *testing.T, s *redistest.Server, name string, ses *rlock.Session) []string {
	t.Helper()
	members, err := s.Do(t, "ZRANGE", locktest.LineOf(name), "0", "-1").AsStrSlice()
	must(t, err)
	return slices.DeleteFunc(members, func(m string) bool {
		return !strings.Contains("gzanVUWN", m[:1]) || !strings.Contains(m, ses.ID())
	})
}

// A release enters the next caller of its session in the line, as that enters itself afterwards, whichever sort of
// handle of the name the two have: else the caller stands in the line twice, and its second entry is let in when
// it has gone.
func TestAReleaseEntersACallerOfAnotherSortOnce(t *testing.T) {
	t.Parallel()
	ends := rlock.FencedFor(time.Minute)
	for what, kinds := range map[string][2][]rlock.MutexOption{
		"plain, then with an end":             {nil, {ends}},
		"with an end, then plain":             {{ends}, nil},
		"without an end, then with one":       {{rlock.Fenced()}, {ends}},
		"with an end, then fenced without it": {{ends}, {rlock.Fenced()}},
	} {
		t.Run(what, func(t *testing.T) {
			redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
				ctx := within(t, time.Minute)
				a, b := dial(t, s, rlock.Config{HandOverLimit: -1, PollFloor: 100 * time.Millisecond}), dial(t, s, rlock.Config{})
				_, h, err := rlock.New(a, "x", kinds[0]...).Lock(ctx)
				must(t, err)
				other := locktest.GoLock(rlock.New(b, "x"), ctx)
				locktest.AwaitInLine(t, s, "x", b)
				back := locktest.GoLock(rlock.New(a, "x", kinds[1]...), ctx)
				redistest.Eventually(t, 5*time.Second, "a caller waits behind the holder", func() bool { return locktest.WaitersOf(a, "x") == 1 })
				must(t, h.Unlock())
				got := locktest.Get(t, other, 5*time.Second, "the other session's Lock")
				must(t, got.Err)
				locktest.AwaitInLine(t, s, "x", a)
				locktest.Stays(t, got.Ctx, time.Second) // it looks meanwhile
				if all := entriesOf(t, s, "x", a); len(all) != 1 {
					t.Errorf("one caller has %d entries: %q", len(all), all)
				}
				must(t, got.Hold.Unlock())
				got = locktest.Get(t, back, 5*time.Second, "the caller's Lock")
				must(t, got.Err)
				must(t, got.Hold.Unlock())
				if all := entriesOf(t, s, "x", a); len(all) != 0 {
					t.Errorf("nobody waits, and %q stand in the line", all)
				}
			})
		})
	}
}
