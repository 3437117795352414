package life_test

import (
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"relock/internal/life"
)

// Goroutines take batches as long as there are any, so many at a time at most, and end then.
func TestQueueIsWorkedOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var background life.Group
		var mu sync.Mutex
		var batches [][]int
		free := make(chan struct{})
		q := life.Queue[int]{Go: background.Go, Batch: 3, Most: 2, Work: func(batch []int) {
			mu.Lock()
			batches = append(batches, batch)
			mu.Unlock()
			<-free
		}}
		begun := func(want ...[]int) {
			t.Helper()
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if !slices.EqualFunc(batches, want, slices.Equal) {
				t.Errorf("batches %v, want %v", batches, want)
			}
		}
		q.Add(1)
		begun([]int{1})
		q.Add(2, 3, 4, 5, 6, 7, 8)
		begun([]int{1}, []int{2, 3, 4})
		if !q.Remove(func(n int) bool { return n == 6 }) || q.Remove(func(n int) bool { return n < 5 }) {
			t.Error("6 was not there, or what was taken already was")
		}
		q.Offer(9, 3)
		q.Offer(10, 4)
		free <- struct{}{}
		begun([]int{1}, []int{2, 3, 4}, []int{5, 7, 8})
		close(free)
		background.Wait()
		q.Add(11)
		background.Wait()
		begun([]int{1}, []int{2, 3, 4}, []int{5, 7, 8}, []int{10}, []int{11})
	})
}

// A batch that ends its goroutine costs no other.
func TestQueueOutlivesGoexit(t *testing.T) {
	var background life.Group
	ran := 0
	q := life.OneByOne(background.Go)
	q.Add(runtime.Goexit, func() { ran++ }, runtime.Goexit, func() { ran++ })
	background.Wait()
	if ran != 2 {
		t.Errorf("%d of 2 functions have run", ran)
	}
}
