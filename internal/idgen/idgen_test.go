package idgen

import (
	"regexp"
	"strings"
	"sync"
	"testing"
)

func TestOwnersAreDistinct(t *testing.T) {
	o := NewOwners("s", RandomBase())
	var mu sync.Mutex
	seen := map[string]bool{}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 1000 {
				id := o.Next()
				mu.Lock()
				if seen[id] {
					t.Errorf("owner %q twice", id)
				}
				seen[id] = true
				mu.Unlock()
			}
		})
	}
	wg.Wait()
}

func TestShapes(t *testing.T) {
	if s := Session(); !regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`).MatchString(s) {
		t.Errorf("Session() = %q, not a lower-case UUID", s)
	}
	if r := Request(); !regexp.MustCompile(`^[0-9a-f]{32}$`).MatchString(r) || r == Request() {
		t.Errorf("Request() = %q", r)
	}
	if got := NewOwners("a:b", 41).Next(); got != "a:b:42" {
		t.Errorf("Next() = %q", got)
	}
	for range 100 {
		if RandomBase() >= 1<<52 {
			t.Fatal("RandomBase leaves no room")
		}
	}
}

func TestSessionOf(t *testing.T) {
	for owner, want := range map[string]string{
		"abc:1": "abc", "a:b:17": "a:b", "req-1": "", ":1": "", "abc:": "", "abc:x1": "", "": "",
		strings.Repeat("s", 99) + ":0": strings.Repeat("s", 99),
	} {
		got, ok := SessionOf(owner)
		if got != want || ok != (want != "") {
			t.Errorf("SessionOf(%q) = %q, %v; want %q", owner, got, ok, want)
		}
	}
}
