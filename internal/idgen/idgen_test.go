package idgen

import (
	"regexp"
	"testing"
)

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
