package fairqueue_test

import (
	"fmt"
	"strings"
	"testing"

	"relock/internal/fairqueue"
)

type (
	run    = fairqueue.Run[entry, string]
	member = fairqueue.Member[entry, string]
)

// An entry is what a test keeps of a run.
type entry struct{ run *run }

// kind is what waiters have in common that may stand together.
type kind struct{ _ int }

var plain, fenced = &kind{}, &kind{}

// session is a session with one lock, as far as the queue is concerned.
type session struct {
	fairqueue.Line[entry, string]
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
	m := &member{Of: &who}
	if !s.Arrive(m, k) {
		s.Open(m, s.newRun(k))
	}
	return m
}

// call collects the one run that is to be sent, and returns it with what is said of it.
func (s *session) call(t *testing.T) (*run, fairqueue.Position) {
	t.Helper()
	runs := s.Collect(10)
	if len(runs) != 1 {
		t.Fatalf("%d runs are to be sent, want 1", len(runs))
	}
	return runs[0], runs[0].Call()
}

// queue has a waiter come and queue, with a position.
func (s *session) queue(t *testing.T, who string, position int64) (*member, *run) {
	t.Helper()
	m := s.arrive(who, plain)
	r, _ := s.call(t)
	fate(t, "a run with a position", r.Settled(position), fairqueue.Lives)
	return m, r
}

func fate(t *testing.T, what string, got, want fairqueue.Fate) {
	t.Helper()
	if got != want {
		t.Errorf("%s: fate %d, want %d", what, got, want)
	}
}

// waiters are those of a run, in their order.
func waiters(r *run) string {
	var all []string
	for m := r.First(); m != nil; m = m.Next() {
		all = append(all, *m.Of)
		if m.Run != r {
			all = append(all, "(who thinks to be elsewhere)")
		}
	}
	if len(all) != r.Waiting() {
		all = append(all, fmt.Sprintf("(counted as %d)", r.Waiting()))
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
func isClosed(told <-chan struct{}) bool {
	select {
	case <-told:
		return true
	default:
		return false
	}
}
