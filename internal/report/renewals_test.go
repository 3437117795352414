package report_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"relock/internal/report"
)

// heard returns the lines that a Logger has written to text since, and empties it.
func heard(text *bytes.Buffer) []string {
	lines := strings.Split(strings.TrimSpace(text.String()), "\n")
	text.Reset()
	if lines[0] == "" {
		return nil
	}
	return lines
}

// A step is what happens to the renewals, and what the Logger hears of it.
type step struct {
	what  string
	do    func(r *report.Renewals[string])
	after time.Duration // before the step
	on    bool
	lines []string
}

func play(t *testing.T, steps []step) {
	t.Helper()
	var text bytes.Buffer
	now := time.Hour
	r := report.NewRenewals[string](func() time.Duration { return now }, slog.New(slog.NewTextHandler(&text, nil)))
	for _, s := range steps {
		now += s.after
		s.do(r)
		got := heard(&text)
		ok := len(got) == len(s.lines) && r.On.Load() == s.on
		for i := range s.lines {
			ok = ok && strings.HasSuffix(got[i], s.lines[i])
		}
		if !ok {
			t.Errorf("%s: on %v, logged %q; want %v, %q", s.what, r.On.Load(), got, s.on, s.lines)
		}
	}
}

var errGone = errors.New("no server")

func fails(locks ...string) func(r *report.Renewals[string]) {
	return func(r *report.Renewals[string]) {
		for _, l := range locks {
			r.Failed(l, 0)
		}
		r.Tell(errGone)
	}
}

func TestRenewalsThatFailAreToldOnceAndRemindedOf(t *testing.T) {
	play(t, []step{
		{what: "two fail", do: fails("a", "b"), on: true,
			lines: []string{`level=WARN msg="relock: renewals fail, and are tried again" locks=2 error="no server"`}},
		{what: "again", do: fails("a"), on: true},
		{what: "a third", do: fails("c"), after: report.OutagePause - 1, on: true},
		{what: "after the pause", do: fails("a"), after: 1, on: true,
			lines: []string{`level=WARN msg="relock: renewals still fail" locks=3 after=10s error="no server"`}},
		{what: "again, after the reminder", do: fails("b"), on: true},
		{what: "one is renewed", do: func(r *report.Renewals[string]) { r.Answered("a", 0) }, on: true},
		{what: "one that has not failed", do: func(r *report.Renewals[string]) { r.Answered("d", 0); r.Over("d", true) }, on: true},
		{what: "one is lost", do: func(r *report.Renewals[string]) { r.Over("b", true) }, on: true},
		{what: "twice", do: func(r *report.Renewals[string]) { r.Over("b", true) }, on: true},
		{what: "the last", do: func(r *report.Renewals[string]) { r.Over("c", false) }, after: time.Second,
			lines: []string{`level=INFO msg="relock: no renewal fails any more" after=11s lost=1`}},
		{what: "more good news", do: func(r *report.Renewals[string]) { r.Answered("a", 0) }},
		{what: "the next outage", do: fails("e"), after: time.Hour, on: true,
			lines: []string{`msg="relock: renewals fail, and are tried again" locks=1 error="no server"`}},
		{what: "its end", do: func(r *report.Renewals[string]) { r.Answered("e", 0) },
			lines: []string{`msg="relock: no renewal fails any more" after=0s lost=0`}},
	})
}

// A lock of which two sides are renewed by two scripts fails as long as one of them does.
func TestALockFailsUntilBothSidesAreRenewed(t *testing.T) {
	play(t, []step{
		{what: "both fail", do: func(r *report.Renewals[string]) { r.Failed("a", 0); r.Failed("a", 1); r.Tell(errGone) }, on: true,
			lines: []string{`renewals fail, and are tried again" locks=1 error="no server"`}},
		{what: "one is renewed", do: func(r *report.Renewals[string]) { r.Answered("a", 1) }, on: true},
		{what: "the same", do: func(r *report.Renewals[string]) { r.Answered("a", 1) }, on: true},
		{what: "the other", do: func(r *report.Renewals[string]) { r.Answered("a", 0) },
			lines: []string{`no renewal fails any more" after=0s lost=0`}},
	})
}

// Where renewals fail and succeed by turns, neither the failures nor their ends fill the log.
func TestRenewalsThatFlapAreToldAtABoundedRate(t *testing.T) {
	const every, whole = time.Second, time.Minute
	steps := []step{}
	for at := time.Duration(0); at < whole; at += every {
		fail := step{what: "at " + at.String(), do: fails("a"), after: every, on: true}
		mend := step{what: "mended", do: func(r *report.Renewals[string]) { r.Answered("a", 0) }}
		if at%report.OutagePause == 0 {
			fail.lines = []string{`renewals fail, and are tried again" locks=1 error="no server"`}
			mend.lines = []string{`no renewal fails any more" after=0s lost=0`}
		}
		steps = append(steps, fail, mend)
	}
	play(t, steps)
}

// A failure that was kept back is told when the pause is over, if it lasts.
func TestAFailureSoonAfterAnotherIsToldLater(t *testing.T) {
	play(t, []step{
		{what: "first", do: fails("a"), on: true, lines: []string{`locks=1 error="no server"`}},
		{what: "mended", do: func(r *report.Renewals[string]) { r.Answered("a", 0) }, lines: []string{`lost=0`}},
		{what: "second", do: fails("b", "c"), after: time.Second, on: true},
		{what: "it lasts", do: fails("b"), after: report.OutagePause, on: true,
			lines: []string{`renewals fail, and are tried again" locks=2 error="no server"`}},
		{what: "both lost", do: func(r *report.Renewals[string]) { r.Over("b", true); r.Over("c", true) }, after: time.Second,
			lines: []string{`no renewal fails any more" after=11s lost=2`}},
	})
}

// Nothing is told of an answer that comes when its locks are not held any more.
func TestNoLockNoFailure(t *testing.T) {
	play(t, []step{{what: "none", do: fails()}})
}
