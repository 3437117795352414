package clock

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type item struct{ slot Slot }

func slotOf(x *item) *Slot { return &x.slot }

// Items come off the schedule in the order of their last times, whatever was set, moved and
// removed before.
func TestItemsComeInOrder(t *testing.T) {
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 0))
		s := NewSchedule(slotOf)
		items := make([]*item, 50)
		for i := range items {
			items[i] = new(item)
		}
		want := map[*item]time.Duration{}
		for range 300 {
			x := items[rnd.IntN(len(items))]
			if rnd.IntN(3) == 0 {
				s.Set(x, Never)
				delete(want, x)
			} else {
				want[x] = time.Duration(rnd.IntN(1000))
				s.Set(x, want[x])
			}
		}
		now := time.Duration(rnd.IntN(1000))
		var got []time.Duration
		for x, ok := s.Due(now); ok; x, ok = s.Due(now) {
			if at, there := want[x]; !there || at > now {
				t.Fatalf("seed %d: an item is due that should not be", seed)
			}
			got = append(got, want[x])
			delete(want, x)
			s.Set(x, Never)
			if x.slot != (Slot{}) {
				t.Fatalf("seed %d: an item that was taken off has the place %d", seed, x.slot.place)
			}
		}
		if !slices.IsSorted(got) {
			t.Fatalf("seed %d: due in the order %v", seed, got)
		}
		for x, at := range want {
			if at <= now || s.due[x.slot.place-1] != (entry[*item]{at, x}) {
				t.Fatalf("seed %d: an item due at %d is left at %d, place %d", seed, at, now, x.slot.place)
			}
		}
		if s.Len() != len(want) {
			t.Fatalf("seed %d: %d are left, want %d", seed, s.Len(), len(want))
		}
	}
}

// A visited is one call of visit.
type visited struct {
	at  time.Duration
	due int
}

// run starts Run on a made-up clock, and returns its visits; visit says when the next one is due.
func run(t *testing.T, s *Schedule[*item], visit func() time.Duration) (visits func() []visited) {
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	var all []visited
	start := time.Now()
	go s.Run(ctx, func() time.Duration { return time.Since(start) }, func(now time.Duration) time.Duration {
		due := 0
		for x, ok := s.Due(now); ok; x, ok = s.Due(now) {
			s.Set(x, Never)
			due++
		}
		all = append(all, visited{now, due})
		return visit()
	})
	synctest.Wait()
	return func() []visited {
		synctest.Wait()
		return all
	}
}

// Run visits items when they are due, which may be earlier or later than they were first, and not
// those that were removed.
func TestRunVisitsWhatIsDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewSchedule(slotOf)
		visits := run(t, s, func() time.Duration { return Never })
		a, b, gone := new(item), new(item), new(item)
		s.Set(a, 5*time.Second)
		s.Set(b, 3*time.Second)
		s.Set(gone, 4*time.Second)
		s.Set(gone, Never)
		s.Set(gone, Never)
		synctest.Wait() // Run is armed for the earliest of them
		time.Sleep(time.Second)
		s.Set(a, 2*time.Second)
		time.Sleep(time.Hour)
		var due []visited
		for _, v := range visits() {
			if v.due > 0 {
				due = append(due, v)
			}
		}
		if want := []visited{{2 * time.Second, 1}, {3 * time.Second, 1}}; !slices.Equal(due, want) {
			t.Errorf("items were visited at %v, want %v", due, want)
		}
	})
}

// A Schedule on which one item is set and removed again and again wakes Run once for it.
func TestSetAndTakenOffWakeOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewSchedule(slotOf)
		visits := run(t, s, func() time.Duration { return Never })
		for range 100 {
			x := new(item)
			s.Set(x, 10*time.Second)
			s.Set(x, Never)
			synctest.Wait()
		}
		time.Sleep(time.Minute)
		if got := visits(); len(got) != 2 {
			t.Errorf("%d visits, want the first one and one for all items", len(got))
		}
	})
}

// A WakeAt that comes while visit runs, for earlier than what visit knew, is not forgotten.
func TestWakeAtDuringAVisit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewSchedule(slotOf)
		begun := time.Now()
		visits := run(t, s, func() time.Duration {
			switch at := time.Since(begun); {
			case at == 0:
				s.WakeAt(time.Second)
				return time.Minute
			case at < time.Minute:
				return time.Minute
			}
			return Never
		})
		time.Sleep(time.Hour)
		want := []visited{{0, 0}, {time.Second, 0}, {time.Minute, 0}}
		if got := visits(); !slices.Equal(got, want) {
			t.Errorf("visits %v, want %v", got, want)
		}
	})
}
