package waiting_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"relock/internal/waiting"
)

const ms = time.Millisecond

type waiter struct {
	node waiting.Node[waiter]
	name string
}

func TestQueueIsFirstInFirstOut(t *testing.T) {
	var q waiting.Queue[waiter]
	all := []*waiter{{name: "a"}, {name: "b"}, {name: "c"}, {name: "d"}}
	for _, w := range all {
		w.node.Of = w
		q.Push(&w.node)
	}
	order := func() (s string) {
		for w := range q.All() {
			s += w.name
		}
		return s
	}
	for _, step := range []struct {
		leave int
		want  string
	}{{1, "acd"}, {3, "ac"}, {0, "c"}, {2, ""}} {
		q.Remove(&all[step.leave].node)
		if got := order(); got != step.want {
			t.Fatalf("after %s left: %q, want %q", all[step.leave].name, got, step.want)
		}
	}
	q.Push(&all[1].node)
	if got := order(); got != "b" {
		t.Errorf("a waiter that came back: %q, want b", got)
	}
}

// Whatever waiters come and leave, those that stay are in the order in which they came.
func TestQueueKeepsItsOrder(t *testing.T) {
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 0))
		var q waiting.Queue[waiter]
		var want, got []*waiter
		for range 100 {
			if i := rnd.IntN(6); i < len(want) {
				q.Remove(&want[i].node)
				want = slices.Delete(want, i, i+1)
			} else {
				w := new(waiter)
				w.node.Of = w
				q.Push(&w.node)
				want = append(want, w)
			}
			got = got[:0]
			for w := range q.All() {
				got = append(got, w)
			}
			if !slices.Equal(got, want) {
				t.Fatalf("seed %d: %d waiters, want %d in their order", seed, len(got), len(want))
			}
		}
	}
}

// pass hands over until the slice ends, step by step, and returns how often and until when.
func pass(turns *waiting.Turns, now, end, step time.Duration, limit int) (n int, over time.Duration) {
	for turns.Pass(now, end, limit) {
		n++
		now += step
	}
	return n, now
}

func TestSliceEndsByTheClock(t *testing.T) {
	var turns waiting.Turns
	now := 5 * ms
	end := turns.Begin(now)
	if end != now+waiting.Slice {
		t.Fatalf("the first slice lasts %v, want %v: nothing is known of others", end-now, waiting.Slice)
	}
	if n, _ := pass(&turns, now, end, ms, 0); n != 10 {
		t.Errorf("%d hand-overs, 1 ms each, in a slice; want 10", n)
	}
}

func TestSliceEndsByTheLimit(t *testing.T) {
	var turns waiting.Turns
	end := turns.Begin(0)
	if n, _ := pass(&turns, 0, end, time.Microsecond, 3); n != 3 {
		t.Errorf("%d hand-overs, want the limit of 3", n)
	}
}

func TestSliceDependsOnHowManyOthersHear(t *testing.T) {
	for others, want := range map[int64]time.Duration{
		0: waiting.SliceAlone, 1: waiting.Slice, 3: waiting.Slice, -1: waiting.Slice,
	} {
		var turns waiting.Turns
		turns.Begin(0)
		turns.Released(ms, ms, others)
		if end := turns.Begin(2 * ms); end != 2*ms+want {
			t.Errorf("after a release that %d others heard the slice lasts %v, want %v", others, end-2*ms, want)
		}
	}
}

// A session that passed nothing on has had the lock for no longer than its share.
func TestOnlyASliceThatWasUsedIsFollowedByAYield(t *testing.T) {
	var turns waiting.Turns
	end := turns.Begin(0)
	if turns.Pass(end, end, 0); turns.Yielded() != 0 {
		t.Errorf("it yields until %v after one long section", turns.Yielded())
	}
	end = turns.Begin(end)
	_, over := pass(&turns, end-waiting.Slice, end, ms, 0)
	if turns.Yielded() <= over {
		t.Error("it does not yield after hand-overs")
	}
}

func TestYieldGrowsWhileNobodyTakesTheLock(t *testing.T) {
	var turns waiting.Turns
	now, last := time.Duration(0), time.Duration(0)
	for i := range 4 {
		end := turns.Begin(now)
		_, now = pass(&turns, now, end, ms, 0)
		turns.Released(now, ms/10, 1)
		yield := turns.Yielded() - now
		if i > 0 && yield <= last {
			t.Errorf("yield %d lasts %v, the one before %v; want it to grow", i, yield, last)
		}
		now, last = now+yield, yield
	}
	turns.Taken()
	if turns.Yielded() > now {
		t.Error("it goes on yielding although another session has taken the lock")
	}
}

// What passes through Redis is left to those who listened, and to nobody if none did; and for longer, until one has
// taken it.
func TestLeavingToListeners(t *testing.T) {
	var turns waiting.Turns
	if turns.LeaveToListeners(0); turns.Yielded() != 0 {
		t.Error("it yields to others that it has not heard of")
	}
	turns.Released(0, ms/10, 0)
	if turns.LeaveToListeners(0); turns.Yielded() != 0 || turns.HeardByOthers() {
		t.Error("it yields although no other listened")
	}
	turns.Released(0, ms/10, 1)
	now, last := time.Duration(0), time.Duration(0)
	for i := range 4 {
		turns.LeaveToListeners(now)
		yield := turns.Yielded() - now
		if yield <= last || !turns.HeardByOthers() {
			t.Errorf("yield %d lasts %v, the one before %v; want it to grow", i, yield, last)
		}
		now, last = now+yield, yield
		turns.Begin(now)
	}
}

// usedSlice is a slice from now on that is used to its end, and the release that follows, which three
// others will have heard. It returns when that was sent.
func usedSlice(turns *waiting.Turns, now time.Duration) (over time.Duration) {
	_, over = pass(turns, now, turns.Begin(now), ms, 0)
	turns.Expect(over)
	return over
}

// While the release is on its way nobody else can take the lock, so the session must not ask: it would
// be the first to come.
func TestTheLockIsNotAskedForWhileItsReleaseIsOnTheWay(t *testing.T) {
	const late = 6 * ms
	for name, arrived := range map[string]func(*waiting.Turns, time.Duration){
		"answer":  func(turns *waiting.Turns, now time.Duration) { turns.Released(now, late, 3) },
		"message": func(turns *waiting.Turns, now time.Duration) { turns.Heard(now) },
	} {
		var turns waiting.Turns
		turns.Begin(0)
		turns.Released(0, ms/10, 3)
		sent := usedSlice(&turns, ms)
		if turns.Yielded() <= sent+late {
			t.Errorf("%s: it asks %v after the release was sent, not knowing whether it has arrived", name, turns.Yielded()-sent)
		}
		arrived(&turns, sent+late)
		if yield := turns.Yielded() - (sent + late); yield <= 0 || yield >= 3*ms {
			t.Errorf("%s: it yields for %v from then on", name, yield)
		}
	}
	var turns waiting.Turns
	if sent := usedSlice(&turns, ms); turns.Yielded() > sent+20*ms {
		t.Errorf("without answer and message it does not ask for %v", turns.Yielded()-sent)
	}
}

// One release that took long says more about the machine than about the way: if the session yielded for
// several times as long, it would ask when the slice of another ends.
func TestOneLateAnswerDoesNotMakeForALongYield(t *testing.T) {
	var turns waiting.Turns
	now := time.Duration(0)
	for range 3 {
		now = usedSlice(&turns, now) + ms/10
		turns.Released(now, ms/10, 3)
		turns.Taken()
	}
	usual := turns
	now = usedSlice(&turns, now) + 3*ms
	turns.Released(now, 3*ms, 3)
	if yield := turns.Yielded() - now; yield > waiting.Slice/3 {
		t.Errorf("after an answer that took 3 ms, and three of 0.1 ms, it yields for %v", yield)
	}
	turns = usual
	for range 20 {
		now = usedSlice(&turns, now) + 3*ms
		turns.Released(now, 3*ms, 3)
		turns.Taken()
	}
	now = usedSlice(&turns, now) + 3*ms
	if turns.Released(now, 3*ms, 3); turns.Yielded() < now+6*ms {
		t.Errorf("it yields for %v although all answers take 3 ms by now", turns.Yielded()-now)
	}
}

func TestTheMessageOfTheOwnReleaseIsNoNews(t *testing.T) {
	var turns waiting.Turns
	end := turns.Begin(0)
	_, now := pass(&turns, 0, end, ms, 0)
	turns.Expect(now)
	if turns.Heard(now) {
		t.Error("the message of the session's own release counts as another's")
	}
	if !turns.Heard(now) {
		t.Error("the message after it is not news")
	}
}

// With three other listeners, the lock is left to the others for two more releases: the first
// went to the quickest of them.
func TestEachOtherListenerGetsATurn(t *testing.T) {
	var turns waiting.Turns
	turns.Begin(0)
	turns.Released(0, ms/10, 3)
	end := turns.Begin(0)
	_, now := pass(&turns, 0, end, ms, 0)
	turns.Released(now, ms/10, 3)
	for i, want := range []bool{true, true, false} {
		now += ms
		turns.Heard(now)
		if yields := turns.Yielded() > now; yields != want {
			t.Errorf("after release %d of others: yields %v, want %v", i+1, yields, want)
		}
	}
}
