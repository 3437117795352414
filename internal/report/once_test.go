package report_test

import (
	"strconv"
	"testing"

	"relock/internal/report"
)

func TestOnceIsBounded(t *testing.T) {
	var o report.Once
	for i := range 2 * report.MostOnce {
		if got, want := o.First(strconv.Itoa(i)), i < report.MostOnce; got != want {
			t.Errorf("name %d: first %v, want %v", i, got, want)
		}
		if o.First(strconv.Itoa(i)) {
			t.Errorf("name %d comes for the first time twice", i)
		}
	}
}
