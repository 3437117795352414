package deadlock

import (
	"relock/internal/inbox"

	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"relock/internal/clock"
)

// A cycle within a session ends when its last wait begins: that one, at once.
func TestWatchEndsALocalCycleAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, n *net) {
		a, b := claimOf("s", 1), claimOf("s", 2)
		first := n.wait("s", a, b)
		second := n.wait("s", b, a)
		if !first.lasts() || second.lasts() {
			t.Errorf("the first lasts: %v, the second: %v; want true, false", first.lasts(), second.lasts())
		}
		if text := second.ended.String(); !strings.Contains(text, b.Key) || !strings.Contains(text, a.Key) {
			t.Errorf("the cycle is told as %s", text)
		}
	}, "s")
}

// A cycle across sessions ends by messages, when a wait of it has lasted for a second: the
// youngest, whichever has sought.
func TestWatchEndsACycleAcrossSessions(t *testing.T) {
	bubble(t, func(t *testing.T, n *net) {
		a, b := claimOf("s", 1), claimOf("t", 1)
		first := n.wait("s", a, b)
		time.Sleep(100 * time.Millisecond)
		second := n.wait("t", b, a)
		time.Sleep(850 * time.Millisecond)
		synctest.Wait()
		if !second.lasts() {
			t.Error("it ended before a wait had lasted for a second")
		}
		time.Sleep(500 * time.Millisecond)
		synctest.Wait()
		if !first.lasts() || second.lasts() {
			t.Errorf("the first lasts: %v, the second: %v; want true, false", first.lasts(), second.lasts())
		}
	}, "s", "t")
}

// A wait that is no part of a deadlock is followed after 1, 2, 4, … seconds, at most 16 apart,
// and not when it is over; of several for one lock one is.
func TestWatchSeeksEverMoreSeldom(t *testing.T) {
	bubble(t, func(t *testing.T, n *net) {
		in, other := claimOf("s", 1), claimOf("t", 1)
		n.silent = true
		x := n.wait("s", in, other)
		beside := n.wait("s", claimOf("s", 2), other)
		time.Sleep(60 * time.Second)
		synctest.Wait()
		if got, want := n.times("s", other.Key), []int{1, 2, 4, 8, 16, 32, 48}; !slices.Equal(got, want) {
			t.Errorf("sought at %v s, want once at each of %v", got, want)
		}
		if w := n.watches["s"]; w.Len() != 2 {
			t.Errorf("%d waits are watched, want 2", w.Len())
		}
		x.waiting.Over()
		beside.waiting.Over()
		time.Sleep(time.Minute)
		synctest.Wait()
		if w := n.watches["s"]; w.Len() != 0 || len(w.inside) != 0 || len(w.sought) != 0 || w.due != clock.Never {
			t.Error("what is over is still watched")
		}
		if got := n.times("s", other.Key); len(got) != 7 {
			t.Errorf("%d looks after the end", len(got)-7)
		}
	}, "s", "t")
}

// What has to do with a wait goes by way of the Redis of the session that waits, also if another
// session of the process looks: the two may be sessions of two Redises.
func TestWatchAsksTheRedisOfTheOneThatWaits(t *testing.T) {
	bubble(t, func(t *testing.T, n *net) {
		a, b := claimOf("s", 1), claimOf("u", 1)
		first := n.wait("u", b, a)
		time.Sleep(100 * time.Millisecond)
		second := n.wait("t", a, b) // of t, in a section of s
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if !first.lasts() || second.lasts() {
			t.Errorf("they last: %v, %v; want true, false", first.lasts(), second.lasts())
		}
		if at := n.times("s", b.Key); at != nil {
			t.Errorf("s, where no Lock waits, has asked at %v", at)
		}
	}, "s", "t", "u")
}

// A wait that ends while Redis is asked who keeps it out is not followed.
func TestWatchOfAWaitThatEndsWhileRedisIsAsked(t *testing.T) {
	bubble(t, func(t *testing.T, n *net) {
		a, b := claimOf("s", 1), claimOf("t", 1)
		x := n.wait("s", a, b)
		n.mu.Lock()
		n.during = func() { x.End(Cycle{{}}) }
		n.mu.Unlock()
		time.Sleep(time.Minute)
		synctest.Wait()
		if at := n.times("s", b.Key); len(at) != 1 || n.told != 0 {
			t.Errorf("asked at %v s, and sent %d messages; want it asked once, and no message", at, n.told)
		}
	}, "s", "t")
}

// A session that cannot be told anything asks no other.
func TestWatchOfADeafSession(t *testing.T) {
	bubble(t, func(t *testing.T, n *net) {
		n.deaf = map[string]bool{"s": true}
		a, b := claimOf("s", 1), claimOf("t", 1)
		x := n.wait("s", a, b)
		time.Sleep(time.Minute)
		synctest.Wait()
		if at := n.times("s", b.Key); at != nil || !x.lasts() {
			t.Errorf("it has asked at %v; the wait lasts: %v", at, x.lasts())
		}
	}, "s", "t")
}

// A session that closes looks for nothing more, and takes no more than so many messages at a time.
func TestWatchBoundsItsJobs(t *testing.T) {
	bubble(t, func(t *testing.T, n *net) {
		w := n.watches["s"]
		begun, stalled := make(chan bool), make(chan bool)
		w.look(func() { close(begun); <-stalled })
		<-begun
		text, _ := (&message{kind: seek, steps: Cycle{{Wait{ID: "w", Key: "k"}, claimOf("s", 1)}}}).encode()
		for range 2 * maxJobs {
			if err := w.Hear(text); err != nil {
				t.Fatal(err)
			}
		}
		waiting := 0
		for w.jobs.Remove(func(func()) bool { return true }) {
			waiting++
		}
		if waiting != maxJobs {
			t.Errorf("%d jobs wait, want %d", waiting, maxJobs)
		}
		if err := w.Hear(inbox.Deadlock + "nonsense"); err == nil {
			t.Error("nonsense was taken for a message")
		}
		close(stalled)
	}, "s")
}
