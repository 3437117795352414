package waiting_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"relock/internal/waiting"
)

type (
	run    = waiting.Run[entry, string]
	member = waiting.Member[entry, string]
)

// An entry is what a test keeps of a run.
type entry struct{ run *run }

// kind is what waiters have in common that may stand together.
type kind struct{ _ int }

var plain, fenced = &kind{}, &kind{}

// session is a session with one lock, as far as the queue is concerned.
type session struct {
	waiting.Runs[entry, string]
	opened int
}

func (s *session) newRun(k any) *run {
	s.opened++
	r := &run{Entry: fmt.Sprint("entry", s.opened), Kind: k}
	r.Of = &entry{r}
	return r
}

// arrive has a waiter come; of the kind nil it stands alone.
func (s *session) arrive(who string, k any) *member {
	m := &member{Of: &who, Kind: k}
	s.Arrive(m, 0, func() *run { return s.newRun(k) })
	return m
}

// later is when nobody gathers any more.
const later = time.Second

// call returns the run that Redis is asked about next, with what is said of it.
func (s *session) call(t *testing.T) (*run, waiting.RunAttempt) {
	t.Helper()
	r := s.Due(later)
	if r == nil {
		t.Fatal("Redis is to be asked about no run")
	}
	return r, r.BeginAttempt()
}

// nothingDue checks that Redis is to be asked about no run.
func (s *session) nothingDue(t *testing.T, when string) {
	t.Helper()
	if r := s.Due(later); r != nil {
		t.Errorf("%s: Redis is to be asked about %s", when, r.Entry)
	}
}

// queue has a waiter come and queue, with a position.
func (s *session) queue(t *testing.T, who string, position int64) (*member, *run) {
	t.Helper()
	m := s.arrive(who, plain)
	r, _ := s.call(t)
	lives(t, "a run with a position")(r.Answered(position))
	return m, r
}

func checkAction(t *testing.T, what string, got, want waiting.ClaimAction) {
	t.Helper()
	if got != want {
		t.Errorf("%s: action %d, want %d", what, got, want)
	}
}

// lives, ends and gone check what becomes of a run, and that no other one ends with it.
func lives(t *testing.T, what string) func(waiting.ClaimAction, *entry) {
	return becomes(t, what, waiting.KeepClaim)
}
func ends(t *testing.T, what string) func(waiting.ClaimAction, *entry) {
	return becomes(t, what, waiting.ReleaseClaim)
}
func gone(t *testing.T, what string) func(waiting.ClaimAction, *entry) {
	return becomes(t, what, waiting.DropClaim)
}

func becomes(t *testing.T, what string, want waiting.ClaimAction) func(waiting.ClaimAction, *entry) {
	return func(got waiting.ClaimAction, left *entry) {
		t.Helper()
		checkAction(t, what, got, want)
		if left != nil {
			t.Errorf("%s: another run, %s, ends too", what, left.run.Entry)
		}
	}
}

// waiters are those of a run, in their order.
func waiters(r *run) string {
	var all []string
	for m := range r.Members() {
		all = append(all, *m.Of)
		if m.Run != r {
			all = append(all, "(who thinks to be elsewhere)")
		}
	}
	if len(all) != r.Waiting {
		all = append(all, fmt.Sprintf("(counted as %d)", r.Waiting))
	}
	return strings.Join(all, " ")
}

func want(t *testing.T, r *run, who string) {
	t.Helper()
	if got := waiters(r); got != who {
		t.Errorf("in %s wait %q, want %q", r.Entry, got, who)
	}
}

// isClosed reports whether a waiter that left has been told.
func isClosed(acked <-chan struct{}) bool {
	select {
	case <-acked:
		return true
	default:
		return false
	}
}
