package idgen

import (
	"regexp"
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
