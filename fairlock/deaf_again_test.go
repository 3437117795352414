package fairlock_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"relock/fairlock"
	"relock/internal/inbox"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// A session loses the subscription of its own channel, has it again, and loses it once more after a while in which it has
// waited for nothing. How long it has heard nothing counts from the second loss: a caller that comes just behind that does
// not enter the line as one whose session hears nothing.
func TestASecondLossOfTheSubscriptionCountsFromThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := redistest.BubbleMini(t)
		ctx := within(t, 10*time.Minute)
		first := lock(t, ctx, fairlock.New(dial(t, s, rlock.Config{}), "x"))
		ses, p := dialProxy(t, s, rlock.Config{})
		hears := func() bool {
			n, err := s.Do(t, "PUBLISH", inbox.Prefix+ses.ID(), "nothing").AsInt64()
			must(t, err)
			return n == 1
		}
		pause(time.Second) // the session counts its time from when it began
		p.Cut()
		redistest.Eventually(t, patience, "the loss", func() bool { return !hears() })
		redistest.Eventually(t, patience, "the subscription", hears)
		pause(time.Minute)
		p.RefuseCommand("SUBSCRIBE", "NOPERM this user has no permissions to access one of the channels")
		p.Cut()
		redistest.Eventually(t, patience, "the second loss", func() bool { return !hears() })
		next := goQueued(t, ctx, fairlock.New(ses, "x"), 1)
		members, err := s.Do(t, "ZRANGE", locktest.LineOf("x"), "0", "-1").AsStrSlice()
		must(t, err)
		if !strings.HasPrefix(members[0], "f") || !strings.Contains(members[0], ses.ID()) {
			t.Errorf("just behind the second loss it stands in the line as %q", members[0])
		}
		p.RefuseCommand("SUBSCRIBE", "")
		unlock(t, first)
		unlock(t, granted(t, next, patience, "the next"))
	})
}
