package engine

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// Claims come off the schedule in the order of their last times, whatever was set, moved and
// removed before.
func TestScheduleKeepsOrder(t *testing.T) {
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 0))
		s := schedule{armed: never, asked: never, kick: make(chan struct{}, 1)}
		claims := make([]*claim, 50)
		for i := range claims {
			claims[i] = &claim{index: -1}
		}
		want := map[*claim]time.Duration{}
		for range 300 {
			c := claims[rnd.IntN(len(claims))]
			if rnd.IntN(3) == 0 {
				s.remove(c)
				delete(want, c)
			} else {
				want[c] = time.Duration(rnd.IntN(1000))
				s.set(c, want[c])
			}
		}
		now := time.Duration(rnd.IntN(1000))
		var got []time.Duration
		for _, c := range s.take(now) {
			if at, there := want[c]; !there || at > now || c.index != -1 {
				t.Fatalf("seed %d: a claim was taken that is not due", seed)
			}
			got = append(got, want[c])
			delete(want, c)
		}
		if !slices.IsSorted(got) {
			t.Fatalf("seed %d: taken in the order %v", seed, got)
		}
		for c, at := range want {
			if at <= now || s.due[c.index] != (visit{at, c}) {
				t.Fatalf("seed %d: a claim due at %d is left at %d, index %d", seed, at, now, c.index)
			}
		}
		if s.size() != len(want) {
			t.Fatalf("seed %d: %d are left, want %d", seed, s.size(), len(want))
		}
	}
}
