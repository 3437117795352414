package semaphore

import (
	"slices"
	"testing"
	"time"

	"relock/internal/engine"
	"relock/internal/keyname"
	"relock/internal/kind"
	"relock/internal/script"
	"relock/internal/test/explore"
)

// What package explore sends for a semaphore and for a counter is what this package does.
func TestExploredCommands(t *testing.T) {
	space := &keyname.Space{Publishing: keyname.Publishes(false, false)}
	n, s := space.Names("sem"), new(engine.Session)
	s.Requests().Client = "X"
	same := func(what string, ours, theirs script.Command, but ...int) {
		t.Helper()
		for _, i := range but {
			theirs.Args[i] = ours.Args[i]
		}
		if ours.Script.Source() != theirs.Script.Source() || !slices.Equal(ours.Keys, theirs.Keys) || !slices.Equal(ours.Args, theirs.Args) {
			t.Errorf("%s: ours has %q %q, and that of explore %q %q", what, ours.Keys, ours.Args, theirs.Keys, theirs.Args)
		}
	}
	waits := kind.Op{Owner: "X:1", ID: "1:1", N: 2, Lease: 3 * time.Second, Private: true, QueuePlace: kind.QueuePlace{Wait: true},
		Line: kind.Line{Head: "P0021000000250000001", Again: true, Listens: true}}
	leaves := kind.Op{Owner: "X:1", N: 2, All: true, Private: true, Ending: kind.Ending{Ends: []string{"1:1"}}, Line: kind.Line{Named: true, Head: waits.Line.Head}}
	over := leaves
	over.Line.Head, over.Line.Others = "", true

	p, ep := newPermits(s, n, 3, 0), &explore.Permits{Names: n, Limit: 3, Lease: 3000}
	same("acquire", p.Acquire(&waits), ep.Acquire(&waits))
	same("release", p.Release(&over), ep.Release(&over))
	same("release of an entry", p.Release(&leaves), ep.Release(&leaves))
	same("renew", p.Renew(&over), ep.Renew(&over))

	const memory = 2 // of the arguments: longer there
	c, ec := newCount(s, n, 0), &explore.Counter{Names: n}
	same("take", c.Acquire(&waits), ec.Acquire(&waits), memory)
	same("untake", c.Release(&leaves), ec.Release(&leaves), memory)
	head := "C0000200000250000001"
	same("an entry that nobody waits for", c.Dismiss(n, head, "X:1", false), ec.Release(&kind.Op{Owner: "X:1", Line: kind.Line{Named: true, Head: head}}))
}
