package redisson

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"relock/internal/test/locktest"
)

// A turn is one acquisition: who asked when, was in when, and began to leave when.
type turn struct {
	who, mode            string // mode: x alone, r reader, s permits
	asked, entered, left time.Time
}

// side is "go" or "java".
func (tn turn) side() string {
	if tn.who[0] == 'j' {
		return "java"
	}
	return "go"
}

// judge checks that nothing was lost and nobody starved: least are the turns that every
// thread must have had. It reports who came when.
func (st *stress) judge(t *testing.T, least int64) {
	if int64(len(st.turns)) != st.total {
		t.Errorf("%d turns, want %d", len(st.turns), st.total)
	}
	writes := 0
	of := map[string]int{} // by who
	share := map[string]int{}
	longest := map[string]time.Duration{}
	for _, tn := range st.turns {
		if tn.mode == "x" {
			writes++
		}
		of[tn.who]++
		share[tn.side()]++
		wait := tn.entered.Sub(tn.asked)
		if wait > starved {
			wait -= st.overslept(tn)
		}
		longest[tn.side()] = max(longest[tn.side()], wait)
	}
	both, err := st.look(t.Context())
	locktest.Must(t, err)
	if count := fmt.Sprint(writes); both[0] != count {
		t.Errorf("%s were counted, of %s", both[0], count)
	}
	for i := range stressThreads {
		for _, who := range []string{fmt.Sprint("g", i), fmt.Sprint("j", i)} {
			if int64(of[who]) < least {
				t.Errorf("%s had %d turns of %d, less than %d", who, of[who], st.total, least)
			}
		}
	}
	for side, d := range longest {
		if d > starved {
			t.Errorf("%s has waited for %v", side, d)
		}
	}
	t.Logf("%d in %v; Go %d (%d %%), Java %d; longest wait Go %v, Java %v; turns by thread %v", len(st.turns), st.took.Round(time.Millisecond),
		share["go"], 100*share["go"]/max(1, len(st.turns)), share["java"],
		longest["go"].Round(time.Millisecond), longest["java"].Round(time.Millisecond), of)
	if st.kind == "lock" {
		t.Log(handOvers(st.turns))
	}
}

// overslept returns for how much of its wait a thread of Java has slept because it missed the message of
// Java's write lock, which threads of Java alone do as well: see docs/redisson.md. Nobody is inside then,
// and the last who left was a writer of Java.
func (st *stress) overslept(tn turn) time.Duration {
	if st.kind != "rw" || tn.side() != "java" {
		return 0
	}
	turns := slices.SortedFunc(slices.Values(st.turns), func(a, b turn) int { return a.entered.Compare(b.entered) })
	var slept time.Duration
	last := turns[0] // of those who were in, who left last
	for _, next := range turns[1:] {
		free := next.entered.Sub(last.left)
		if free > starved && last.side() == "java" && last.mode == "x" && tn.asked.Before(next.entered) && !tn.entered.Before(next.entered) {
			slept += free
		}
		if next.left.After(last.left) {
			last = next
		}
	}
	return slept
}

// handOvers tells how long it took from when one began to leave until the next was in, by
// their sides, where the next was waiting by then.
func handOvers(turns []turn) string {
	turns = slices.Clone(turns)
	slices.SortFunc(turns, func(a, b turn) int { return a.entered.Compare(b.entered) })
	gaps := map[string][]time.Duration{}
	for i, next := range turns[1:] {
		before := turns[i]
		if next.asked.Before(before.left) {
			way := before.side() + "->" + next.side()
			gaps[way] = append(gaps[way], next.entered.Sub(before.left))
		}
	}
	return describeGaps(gaps)
}

// describeGaps gives medians and 95th percentiles, and each median's ratio to that of Go to
// Go.
func describeGaps(gaps map[string][]time.Duration) string {
	at := func(way string, share float64) time.Duration {
		list := slices.Sorted(slices.Values(gaps[way]))
		if len(list) == 0 {
			return 0
		}
		return list[int(share*float64(len(list)-1))].Round(time.Microsecond)
	}
	base := at("go->go", 0.5)
	var lines []string
	for _, way := range []string{"go->go", "go->java", "java->go", "java->java"} {
		median := at(way, 0.5)
		lines = append(lines, fmt.Sprintf("%s n=%d median %v p95 %v ratio %.2f", way, len(gaps[way]), median, at(way, 0.95),
			float64(median)/float64(max(base, 1))))
	}
	return "hand-over: " + strings.Join(lines, "; ")
}
