package life

import (
	"slices"
	"sync"
)

// A Queue has what is added to it worked off in the background, in order and by the batch. Its goroutines end when
// there is nothing left. The exported fields must be set before the first use. Its methods wait for nothing but each
// other.
type Queue[T any] struct {
	Go    func(fn func()) // starts a goroutine
	Work  func(batch []T)
	Batch int // how many a batch has at most
	Most  int // goroutines

	mu      sync.Mutex
	waiting []T
	workers int  // goroutines
	coming  bool // one of them is about to take a batch
}

// OneByOne returns a queue of functions, which run one after the other. begin begins a goroutine.
func OneByOne(begin func(fn func())) *Queue[func()] {
	return &Queue[func()]{Go: begin, Work: func(batch []func()) { batch[0]() }, Batch: 1, Most: 1}
}

// Add adds to the queue.
func (q *Queue[T]) Add(all ...T) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = append(q.waiting, all...)
	q.begin()
}

// Offer adds to the queue, unless so many wait there already, and reports whether it has.
func (q *Queue[T]) Offer(one T, most int) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) >= most {
		return false
	}
	q.waiting = append(q.waiting, one)
	q.begin()
	return true
}

// Remove takes the first that fits off the queue, and reports whether one was there.
func (q *Queue[T]) Remove(fits func(T) bool) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.IndexFunc(q.waiting, fits)
	if i >= 0 {
		q.waiting = slices.Delete(q.waiting, i, i+1)
	}
	return i >= 0
}

// begin has one more goroutine take a batch, if there is one for it, none is about to and there are not too many. The
// mutex must be held.
func (q *Queue[T]) begin() {
	if len(q.waiting) > 0 && !q.coming && q.workers < q.Most {
		q.coming = true
		q.workers++
		q.Go(q.run)
	}
}

func (q *Queue[T]) run() {
	over := false
	defer func() {
		if !over { // Work has called runtime.Goexit, as code of the caller's may that it runs
			q.Go(q.run)
		}
	}()
	for batch := q.take(); len(batch) > 0; batch = q.take() {
		q.Work(batch)
	}
	over = true
}

// take takes a batch. If it is empty, the goroutine must end. If that is not all, another one may begin.
func (q *Queue[T]) take() (batch []T) {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := min(len(q.waiting), q.Batch)
	batch, q.waiting = q.waiting[:n:n], q.waiting[n:]
	if n == 0 {
		q.waiting = nil // the array has been walked through
		q.workers--
	}
	q.coming = false
	q.begin()
	return batch
}
