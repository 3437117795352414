package election_test

import (
	"testing"

	"relock/election"
	"relock/internal/test/redistest"
)

// Nothing is kept of a Campaign inside of a leadership that has resigned, though that leadership goes on.
func TestANestedLeadershipThatHasResignedIsForgotten(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, patience)
		a := dial(t, s, slow())
		e := leads(t, campaign(t, ctx, a, "a", 0), 1)
		for range 3 {
			_, inner, err := election.New(a, "x").Campaign(e.section, "inner")
			must(t, err)
			must(t, inner.Resign())
		}
		if n := election.Reigns(election.New(a, "x")); n != 1 {
			t.Errorf("%d leaderships are kept, want one", n)
		}
		isLeader(t, a, true)
		must(t, e.l.Resign())
		if n := election.Reigns(election.New(a, "x")); n != 0 {
			t.Errorf("%d leaderships are kept behind the last Resign", n)
		}
		isLeader(t, a, false)
	})
}
