package life

import (
	"sync"
	"sync/atomic"
)

// A Registry has records by family and key: a key may have one in each family. Its mutex is held while
// the functions run that its methods are given.
type Registry[T any] struct {
	Crowded atomic.Bool // there are more records than are to be kept while they are idle. The Registry sets it

	mu         sync.Mutex
	records    map[string]map[string]*T // by family and key
	size, kept int
}

// NewRegistry returns an empty Registry that is crowded with more than so many records.
func NewRegistry[T any](kept int) *Registry[T] {
	return &Registry[T]{records: map[string]map[string]*T{}, kept: kept}
}

// Keep changes with how many records the Registry is not crowded yet.
func (r *Registry[T]) Keep(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.kept = n
	r.grow(0)
}

// grow notes that there are n more records. The mutex must be held.
func (r *Registry[T]) grow(n int) {
	r.size += n
	r.Crowded.Store(r.size > r.kept)
}

// Len returns how many records there are.
func (r *Registry[T]) Len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.size
}

// Enter returns the record of a key in a family, made if need be; an error is that of making it.
func (r *Registry[T]) Enter(family, key string, made func() (*T, error)) (*T, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	of := r.records[family][key]
	if of == nil {
		var err error
		if of, err = made(); err != nil {
			return nil, err
		}
		if r.records[family] == nil {
			r.records[family] = map[string]*T{}
		}
		r.records[family][key] = of
		r.grow(1)
	}
	return of, nil
}

// Remove takes the record of a key out, unless it is to stay after all: leaves says so.
func (r *Registry[T]) Remove(key string, of *T, leaves func() bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, records := range r.records { // few families; to keep it with each record would cost more
		if records[key] == of && leaves() {
			delete(records, key)
			r.grow(-1)
		}
	}
}

// All returns all records.
func (r *Registry[T]) All() (all []*T) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, records := range r.records {
		for _, of := range records {
			all = append(all, of)
		}
	}
	return all
}

// Find returns the records of a key: that of a family, or those of all families if it is "".
func (r *Registry[T]) Find(family, key string) (found []*T) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for f, records := range r.records {
		if of := records[key]; of != nil && (f == family || family == "") {
			found = append(found, of)
		}
	}
	return found
}
