package idgen_test

import (
	"encoding/hex"
	"slices"
	"strconv"
	"sync"
	"testing"

	"relock/internal/idgen"
)

// Processes of different versions hold permits of one semaphore, and a tool of one version reads
// those of another: the ids of an owner never change.
func TestIDsNeverChange(t *testing.T) {
	got := idgen.AppendPermits([]string{"before"}, "7d9e9ba0-0000-4000-8000-000000000001:12", 3)
	want := []string{"00000000", "00000001", "00000002"}
	if len(got) != 1+len(want) || got[0] != "before" {
		t.Fatalf("appended: %q", got)
	}
	for i, id := range got[1:] {
		if h := hex.EncodeToString([]byte(id)); h != "ff0e6a90b3a01441302840d5"+want[i] {
			t.Errorf("id %d is %s", i, h)
		}
	}
}

// An id tells the session, the owner and the number.
func TestSplit(t *testing.T) {
	seen := map[string]string{}
	for _, session := range []string{"s", "t", "a:b"} {
		for _, owner := range []string{session + ":1", session + ":2"} {
			for i, id := range idgen.AppendPermits(nil, owner, 300) {
				mark, part, number, ok := idgen.SplitPermit(id)
				if !ok || mark != idgen.PermitMark(session) || part != id[:12] || number != uint32(i) {
					t.Fatalf("%s, permit %d: %x, %x, %d, %v", owner, i, mark, part, number, ok)
				}
				if other, twice := seen[id]; twice {
					t.Fatalf("%s/%d and %s have the same id", owner, i, other)
				}
				seen[id] = owner + "/" + strconv.Itoa(i)
			}
		}
	}
	for _, id := range []string{"", "short", "this is far too long"} {
		if _, _, _, ok := idgen.SplitPermit(id); ok {
			t.Errorf("%q comes apart", id)
		}
	}
}

// The session of an owner is what stands before the last colon.
func TestSession(t *testing.T) {
	for owner, want := range map[string]string{"s:1": "s", "a:b:1": "a:b", "named": "", ":1": "", "": ""} {
		if got, ok := idgen.SessionOfPermit(owner); got != want || ok != (want != "") {
			t.Errorf("Session(%q) = %q, %v", owner, got, ok)
		}
	}
}

// Sessions that take turns, and that ask at the same time, get the ids that each of them gets alone.
func TestSessionsAtOnce(t *testing.T) {
	owners := []string{"s:1", "t:1", "s:2", "named", "u:1"}
	var alone [][]string
	for _, owner := range owners {
		alone = append(alone, idgen.AppendPermits(nil, owner, 2))
	}
	var wg sync.WaitGroup
	for i, owner := range owners {
		wg.Go(func() {
			for range 1000 {
				if got := idgen.AppendPermits(nil, owner, 2); !slices.Equal(got, alone[i]) {
					t.Errorf("%s: %x, alone %x", owner, got, alone[i])
					return
				}
			}
		})
	}
	wg.Wait()
	for i, owner := range owners {
		session, _ := idgen.SessionOfPermit(owner)
		if mark, _, _, _ := idgen.SplitPermit(alone[i][0]); mark != idgen.PermitMark(session) {
			t.Errorf("%s: the mark is %x", owner, mark)
		}
	}
}
