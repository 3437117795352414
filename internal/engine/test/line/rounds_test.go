package line_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
)

// listens has one connection more listen until the contest is over, as a Java process or a monitor does. It returns
// when Redis knows.
func (r *contest) listens(what func(c rueidis.Client) rueidis.Completed) {
	r.t.Helper()
	client, there := r.s.Client(r.t), make(chan struct{}, 1)
	ctx := rueidis.WithOnSubscriptionHook(r.ctx, func(rueidis.PubSubSubscription) {
		select {
		case there <- struct{}{}:
		default:
		}
	})
	r.wg.Go(func() { _ = client.Receive(ctx, what(client), func(rueidis.PubSubMessage) {}) })
	select {
	case <-there:
	case <-time.After(10 * time.Second):
		r.t.Fatal("the subscription was not confirmed")
	}
}

// isClosed fails the test if rounds were left open to others, of whom there are none. On a busy machine one of the line
// may be taken for another now and then: it listens a moment before it says so.
func (r *contest) isClosed(what string) {
	r.t.Helper()
	granted, open := r.granted.Load(), r.open.Load()
	r.t.Logf("%s: %d grants, %d open rounds", what, granted, open)
	if most := granted / 5; open > 0 && (r.s.IsMini() || open > most) {
		r.t.Errorf("%s: %d rounds were left open beside %d grants", what, open, granted)
	}
}

// A monitor that listens to all channels by a pattern does not wait for the lock: no round is left open to it. One that
// listens to the lock's channel, as Java does, may: rounds are left open (scenario 36).
func TestAMonitorCostsNoOpenRounds(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		r := newContest(t, s)
		r.listens(func(c rueidis.Client) rueidis.Completed { return c.B().Psubscribe().Pattern("*").Build() })
		r.join(4, time.Millisecond)
		r.turns(200)
		r.isClosed("beside a monitor")
		r.listens(func(c rueidis.Client) rueidis.Completed {
			return c.B().Subscribe().Channel(locktest.Channel(r.name)).Build()
		})
		before := r.open.Load()
		r.turns(200)
		if n := r.open.Load() - before; s.IsMini() && n < 20 { // one of four or five
			t.Errorf("beside a listener of the lock's channel %d rounds of 200 were left open", n)
		}
		redistest.Eventually(t, 30*time.Second, "a round that is left open", func() bool { return r.open.Load() > before })
		r.end()
	})
}

// Sessions of a line listen to the lock's channel when they have been the first for a while, and their subscriptions
// linger. They say so in the line, and are no others to whom rounds are left open (scenario 38).
func TestSessionsThatHaveListenedAMomentAgoLeaveNoRoundsOpen(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		for _, n := range []int{2, 3, 6} {
			r := newContest(t, s)
			r.join(n, 8*time.Millisecond) // longer than the first waits before it listens
			r.turns(5)
			listening := 0
			for range 10 {
				r.turns(8)
				listeners, err := s.Do(t, "PUBSUB", "NUMSUB", locktest.Channel(r.name)).AsIntMap()
				must(t, err)
				if listeners[locktest.Channel(r.name)] > 0 {
					listening++
				}
			}
			r.isClosed(fmt.Sprint(n, " sessions"))
			r.end()
			if s.IsMini() && listening < 4 { // by the real clock it depends on who is quicker
				t.Errorf("%d sessions: somebody listened to the lock's channel at %d of 10 times; this test is about that", n, listening)
			}
		}
	})
}
