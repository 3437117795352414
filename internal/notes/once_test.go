package notes_test

import (
	"strconv"
	"testing"

	"relock/internal/notes"
)

func TestOnceIsBounded(t *testing.T) {
	var o notes.Once
	for i := range 2 * notes.MostOnce {
		if got, want := o.First(strconv.Itoa(i)), i < notes.MostOnce; got != want {
			t.Errorf("name %d: first %v, want %v", i, got, want)
		}
		if o.First(strconv.Itoa(i)) {
			t.Errorf("name %d comes for the first time twice", i)
		}
	}
}
