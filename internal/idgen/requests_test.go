package idgen_test

import (
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"

	"relock/internal/idgen"
)

// No two requests that are under way have one slot, numbers grow, and there are as few slots as
// there were requests at once.
func TestSlotsAreSharedOnlyOneAfterTheOther(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	var p idgen.Requests
	var last uint64
	slots, ids, most := map[string]bool{}, []string{}, 0
	used := map[string]bool{}
	for range 10_000 {
		if len(ids) > 0 && rnd.IntN(20) < 10+len(ids) {
			i := rnd.IntN(len(ids))
			slot, _ := idgen.SplitRequest(ids[i])
			delete(slots, slot)
			p.End(ids[i])
			ids[i] = ids[len(ids)-1]
			ids = ids[:len(ids)-1]
			continue
		}
		id := p.Begin()
		slot, number := idgen.SplitRequest(id)
		n, err := strconv.ParseUint(number, 10, 64)
		if err != nil || n <= last || slots[slot] {
			t.Fatalf("%s after %d, slots %v: %v", id, last, slots, err)
		}
		last, slots[slot], used[slot] = n, true, true
		ids = append(ids, id)
		if most = max(most, len(ids)); p.UnderWay() != len(ids) {
			t.Fatalf("%d are under way, want %d", p.UnderWay(), len(ids))
		}
	}
	if len(used) != most {
		t.Errorf("%d slots for at most %d requests at once", len(used), most)
	}
}

func TestIDOfNoRequestEndsNothing(t *testing.T) {
	var p idgen.Requests
	p.End("")
	p.End("x:1")
	if a, b := p.Begin(), p.Begin(); a != "0:1" || b != "1:2" {
		t.Errorf("got %s, %s", a, b)
	}
}

func TestRequestsOfManyGoroutines(t *testing.T) {
	var p idgen.Requests
	var wg sync.WaitGroup
	var under sync.Map
	for range 8 {
		wg.Go(func() {
			for range 1000 {
				id := p.Begin()
				slot, _ := idgen.SplitRequest(id)
				if other, taken := under.LoadOrStore(slot, id); taken {
					t.Errorf("%s and %s at a time", id, other)
				}
				under.Delete(slot)
				p.End(id)
			}
		})
	}
	wg.Wait()
}
