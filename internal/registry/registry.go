// Package registry has what is known of each name, once. It knows neither Redis nor locks.
package registry

import (
	"sync"
	"sync/atomic"
)

// A Registry has records by family and key: a key may have one in each family. Its mutex is held while
// the functions run that its methods are given.
type Registry[T any] struct {
	mu      sync.Mutex
	records map[string]map[string]*T // by family and key
	size    atomic.Int32
	kept    atomic.Int32
}

// New returns an empty Registry that is crowded with more than so many records.
func New[T any](kept int32) *Registry[T] {
	r := &Registry[T]{records: map[string]map[string]*T{}}
	r.Keep(kept)
	return r
}

// Keep changes with how many records the Registry is not crowded yet.
func (r *Registry[T]) Keep(n int32) { r.kept.Store(n) }

// Len returns how many records there are.
func (r *Registry[T]) Len() int { return int(r.size.Load()) }

// Crowded reports whether there are more records than are to be kept while they are idle.
func (r *Registry[T]) Crowded() bool { return r.size.Load() > r.kept.Load() }

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
		r.size.Add(1)
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
			r.size.Add(-1)
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
func (r *Registry[T]) Find(key, family string) (found []*T) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for f, records := range r.records {
		if of := records[key]; of != nil && (f == family || family == "") {
			found = append(found, of)
		}
	}
	return found
}
