package locktest

import (
	"sync"
	"testing"
)

// Together runs a part of a test for each case, all at the same time, and returns when all have
// ended: cases that wait for leases wait together. A part that fails ends by itself, and the test
// when all parts have.
func Together[C any](t testing.TB, cases []C, part func(c C)) {
	t.Helper()
	var all sync.WaitGroup
	for _, c := range cases {
		all.Go(func() { part(c) })
	}
	all.Wait()
	if t.Failed() {
		t.FailNow()
	}
}
