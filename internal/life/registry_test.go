package life_test

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"relock/internal/life"
)

type record struct{ name string }

func enter(t *testing.T, r *life.Registry[record], family, key string) *record {
	t.Helper()
	of, err := r.Enter(family, key, func() (*record, error) { return &record{family + " " + key}, nil })
	if err != nil || of == nil {
		t.Fatalf("%s %s: %v, %v", family, key, of, err)
	}
	return of
}

func yes() bool { return true }

// A key has one record in each family, until that is removed.
func TestOneRecordForEachKey(t *testing.T) {
	r := life.NewRegistry[record](2)
	plain := enter(t, r, "lock", "a")
	fair := enter(t, r, "fair", "a")
	if plain == fair || enter(t, r, "lock", "a") != plain || r.Len() != 2 || r.Crowded.Load() {
		t.Errorf("%v and %v, of %d, crowded: %v", plain, fair, r.Len(), r.Crowded.Load())
	}
	other := enter(t, r, "lock", "b")
	if !r.Crowded.Load() {
		t.Error("three records where two are kept")
	}
	if got := r.Find("", "a"); len(got) != 2 || !slices.Contains(got, plain) || !slices.Contains(got, fair) {
		t.Errorf("of all families: %v", got)
	}
	if got := r.Find("fair", "a"); !slices.Equal(got, []*record{fair}) {
		t.Errorf("of one family: %v", got)
	}
	if got := r.Find("", "c"); got != nil {
		t.Errorf("of a key that has none: %v", got)
	}
	if got := r.All(); len(got) != 3 || !slices.Contains(got, other) {
		t.Errorf("all: %v", got)
	}

	r.Remove("a", plain, func() bool { return false })
	if r.Len() != 3 {
		t.Error("a record that stays was removed")
	}
	r.Remove("a", plain, yes)
	r.Remove("a", plain, func() bool { t.Error("it was there twice"); return true })
	if r.Len() != 2 || !slices.Equal(r.Find("", "a"), []*record{fair}) || r.Crowded.Load() {
		t.Errorf("left: %v", r.All())
	}
	if enter(t, r, "lock", "a") == plain {
		t.Error("a record that was removed came back")
	}
	r.Keep(0)
	if !r.Crowded.Load() {
		t.Error("nothing is to be kept")
	}
}

// What cannot be made is not there.
func TestARecordThatCannotBeMade(t *testing.T) {
	r := life.NewRegistry[record](2)
	no := errors.New("closed")
	if of, err := r.Enter("lock", "a", func() (*record, error) { return nil, no }); of != nil || err != no || r.Len() != 0 {
		t.Errorf("%v, %v, %d records", of, err, r.Len())
	}
}

// Goroutines that enter and remove one key at once have one record at a time.
func TestEnterAtOnce(t *testing.T) {
	r := life.NewRegistry[record](2)
	var made atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 1000 {
				of, _ := r.Enter("lock", "a", func() (*record, error) {
					if n := made.Add(1); n > 1 {
						t.Errorf("%d records at once", n)
					}
					return &record{}, nil
				})
				r.Remove("a", of, func() bool { made.Add(-1); return true })
			}
		})
	}
	all.Wait()
	if r.Len() != 0 || made.Load() != 0 {
		t.Errorf("%d records, %d made", r.Len(), made.Load())
	}
}
