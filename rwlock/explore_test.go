package rwlock

import (
	"slices"
	"testing"
	"time"

	"relock/internal/keyname"
	"relock/internal/kind"
	"relock/internal/script"
	"relock/internal/test/explore"
)

// What package explore sends for both sides of a lock is what this package does.
func TestExploredCommands(t *testing.T) {
	space := &keyname.Space{Publishing: keyname.Publishes(false, false)}
	n := space.Names("lock")
	same := func(what string, ours, theirs script.Command) {
		t.Helper()
		if ours.Script.Source() != theirs.Script.Source() || !slices.Equal(ours.Keys, theirs.Keys) || !slices.Equal(ours.Args, theirs.Args) {
			t.Errorf("%s: ours has %q %q, and that of explore %q %q", what, ours.Keys, ours.Args, theirs.Keys, theirs.Args)
		}
	}
	asks := kind.Op{Owner: "X:1", Lease: 3 * time.Second, Private: true, QueuePlace: kind.QueuePlace{Wait: true}}
	waits := asks
	waits.Line = kind.Line{Head: "g0001000000250000001", Again: true, Listens: true}
	over := kind.Op{Owner: "X:1", All: true, Private: true, Line: kind.Line{Named: true, Listens: true}}
	leaves := over
	leaves.Line.Head = waits.Line.Head
	holds := kind.Op{Owner: "X:1", Private: true, Known: kind.Known{Held: 1}}

	read, write := newSides(n, time.Second)
	both := &explore.Sides{Names: n, PollFloor: time.Second}
	er, ew := explore.Reader{Sides: both}, explore.Writer{Sides: both}
	same("read", read.Acquire(&asks), er.Acquire(&asks))
	same("read of one that waits", read.Acquire(&waits), er.Acquire(&waits))
	same("end of a read", read.Release(&over), er.Release(&over))
	same("write", write.Acquire(&waits), ew.Acquire(&waits))
	same("end of a write", write.Release(&over), ew.Release(&over))
	same("release of an entry", write.Release(&leaves), ew.Release(&leaves))
	same("an entry that nobody waits for", write.Dismiss(n, leaves.Line.Head, "X:1", false),
		ew.Release(&kind.Op{Owner: "X:1", Line: kind.Line{Head: leaves.Line.Head}}))
	same("release of a reader's entry", read.Release(&leaves), er.Release(&leaves))
	same("a reader's entry that nobody waits for", read.Dismiss(n, leaves.Line.Head, "X:1", false),
		er.Release(&kind.Op{Owner: "X:1", Line: kind.Line{Head: leaves.Line.Head}}))
	same("renewal of a reader", read.Renew(&holds), er.Renew(&holds))
	same("renewal of a writer", write.Renew(&holds), ew.Renew(&holds))
}
