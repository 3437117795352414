package idgen

import (
	"math"
	"regexp"
	"testing"
)

// The id of a private owner gives the session and the number back; another one is none.
func TestSplitOwner(t *testing.T) {
	for id, want := range map[string]struct {
		session string
		number  uint64
	}{
		"s:1": {"s", 1}, "s:01": {"s", 1}, "a:b:18446744073709551615": {"a:b", math.MaxUint64}, "s:1:2": {"s:1", 2},
		"": {}, "s": {}, "s:": {}, ":1": {}, "s:0": {}, "s:x": {}, "s:-1": {}, "s:+1": {}, "s:1:write": {}, "s:18446744073709551616": {},
	} {
		session, number, ok := SplitOwner(id)
		if ok != (want.number > 0) || ok && (session != want.session || number != want.number) {
			t.Errorf("%q: %q, %d, %v", id, session, number, ok)
		}
	}
}

func TestShapes(t *testing.T) {
	if s := Session(); !regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`).MatchString(s) {
		t.Errorf("Session() = %q, not a lower-case UUID", s)
	}
	if r := Request(); !regexp.MustCompile(`^[0-9a-f]{32}$`).MatchString(r) || r == Request() {
		t.Errorf("Request() = %q", r)
	}
	for range 100 {
		if RandomBase() >= 1<<52 {
			t.Fatal("RandomBase leaves no room")
		}
	}
}
