package mutex_test

import (
	"fmt"
	"testing"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
)

// What the line says of sessions that are not heard of any more goes with the looks of the others, a bounded part with
// each: after an outage there may be thousands of them, and one script would hold Redis up for all.
func TestALookForgetsABoundedNumberOfTheDead(t *testing.T) {
	const each, most = 500, 64 // of each kind
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		begin(t, s, stand("f1 fb", byOther...)...)
		want := byName(locktest.Describe(t, s))
		said := []string{"ZADD", "line"}
		for i := range each {
			said = append(said, "4999999999999999", fmt.Sprint("sZ", i), "5999999999999999", fmt.Sprint("lZ", i), "7000000000000001", fmt.Sprint("pZ", i))
		}
		locktest.Must(t, s.Do(t, said...).Error())
		size := func() int64 {
			n, err := s.Do(t, "ZCARD", "line").AsInt64()
			locktest.Must(t, err)
			return n
		}
		all, last := size(), int64(3*each)
		for left := last; left > 0; last = left {
			eval(t, s, "look", line, looks("f1")...)
			left = size() - (all - 3*each)
			if gone := last - left; gone < 1 || gone > 3*most {
				t.Fatalf("of %d a look has forgotten %d, want 1 to %d", last, gone, 3*most)
			}
		}
		if got := byName(locktest.Describe(t, s)); got != want {
			t.Errorf("Redis has %q, want %q", got, want)
		}
	})
}
