package waiting_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"relock/internal/clock"
	"relock/internal/waiting"
)

func entries(h waiting.Heartbeat[entry, string]) (all []string) {
	for _, r := range h {
		all = append(all, r.Entry)
	}
	return all
}

func heard(all []waiting.Heartbeat[entry, string]) (heard []string) {
	for _, h := range all {
		heard = append(heard, strings.Join(entries(h), " "))
	}
	return heard
}

// Redis must hear of the runs that stand in its queue, and of no others.
func TestWhichRunsRedisMustHearOf(t *testing.T) {
	var s session
	_, queued := s.queue(t, "a", 7)
	_, in := s.queue(t, "b", 8)
	_, over := s.queue(t, "c", 9)
	in.Begin(2)
	over.End()
	over.End() // which changes nothing
	_, last := s.queue(t, "d", 10)
	if got := heard(s.Heartbeats(later, 10)); !slices.Equal(got, []string{queued.Entry + " " + last.Entry}) {
		t.Errorf("Redis hears of %q, want the two that queue", got)
	}
	queued.HeartbeatAt, last.HeartbeatAt = 0, 0 // as answered
	_, more := s.queue(t, "e", 11)
	s.arrive("asked", fenced)
	s.call(t)
	s.arrive("gathering", plain)
	if got := heard(s.Heartbeats(later, 2)); !slices.Equal(got, []string{queued.Entry + " " + last.Entry, more.Entry}) {
		t.Errorf("with two at a time it hears of %q", got)
	}
}

// Redis hears of the runs of which it must hear until then, once.
func TestRedisHearsOfWhatIsDue(t *testing.T) {
	var s session
	_, first := s.queue(t, "a", 7)
	s.arrive("alone", nil)
	second, _ := s.call(t)
	second.Answered(8)
	first.HeartbeatAt, second.HeartbeatAt = 5, 9
	if got := heard(s.Heartbeats(6, 10)); !slices.Equal(got, []string{first.Entry}) {
		t.Errorf("Redis hears of %q, want the first alone", got)
	}
	if a, b := first.NextHeartbeat(), second.NextHeartbeat(); a != clock.Never || b != 9 {
		t.Errorf("the next heartbeats are at %v and %v, want none before an answer, and 9 ns", a, b)
	}
}

// An answer of 0 has a run sent again at once, and so has a refusal; else the least time counts.
func TestWhatRedisSaysOfRunsThatItHearsOf(t *testing.T) {
	for _, tc := range []struct {
		answers []int64
		soonest int64
		sent    int // how many runs are
	}{
		{[]int64{-1, -1, -1}, -1, 0},
		{[]int64{-1, 30, 50}, 30, 0},
		{[]int64{50, -1, 20}, 20, 0},
		{[]int64{50, 0, 40}, 40, 1},
		{[]int64{0, 0, -1}, -1, 2},
		{nil, -1, 3},
		{[]int64{30, 20}, -1, 3}, // too few
	} {
		var s session
		var runs []*run
		for _, who := range []string{"a", "b", "c", "d"} {
			_, r := s.queue(t, who, 7)
			runs = append(runs, r)
		}
		beat := s.Heartbeats(later, 10)[0]
		runs[3].Begin(4) // meanwhile: what was said of it no longer counts
		answers := tc.answers
		if answers != nil {
			answers = append(answers, 0, 9000)
		}
		const unknown = time.Hour
		ms := beat.Answered(answers, func(ms int64) time.Duration {
			if ms < 0 {
				return unknown
			}
			return time.Duration(ms) * time.Millisecond
		})
		want := unknown
		if tc.soonest >= 0 {
			want = time.Duration(tc.soonest) * time.Millisecond
		}
		got := clock.Never
		for _, r := range runs {
			got = min(got, r.NextHeartbeat())
		}
		if got != want {
			t.Errorf("after %v the next heartbeat is at %v, want %v", tc.answers, got, want)
		}
		if known := len(answers) == 5; known != (ms == 9000) {
			t.Errorf("after %v Redis's time is %d", tc.answers, ms)
		}
		sent := 0
		for r := s.Due(later); r != nil; r = s.Due(later) {
			r.BeginAttempt()
			sent++
		}
		if sent != tc.sent {
			t.Errorf("after %v Redis is asked about %d runs, want %d", tc.answers, sent, tc.sent)
		}
	}
}
