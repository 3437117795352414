package waiting_test

import (
	"testing"

	"relock/internal/waiting"
)

// A limit that the front has heard ends the waits of those who want more and came before it asked.
// One that came later puts it in doubt, until the front has heard it once more.
func TestLimitExcludesThoseWhoCameBefore(t *testing.T) {
	var m waiting.Limit
	early, allowed := m.Arrive(5)
	small, _ := m.Arrive(2)
	if !allowed {
		t.Fatal("a limit that is not known allows anything")
	}
	m.Asked()
	late, _ := m.Arrive(5)
	if !m.Heard(3) {
		t.Fatal("the first word of a limit is news")
	}
	if m.Excludes(small, 2) || m.Doubted {
		t.Error("a caller that wants less than the limit is excluded, or doubts it")
	}
	if !m.Excludes(early, 5) || m.Doubted {
		t.Error("a caller that came before the front asked is not excluded, or doubts the limit")
	}
	if m.Excludes(late, 5) || !m.Doubted {
		t.Error("a caller that came after the front asked is excluded, or does not doubt the limit")
	}
	m.Asked()
	if !m.Heard(3) || !m.Excludes(late, 5) || m.Doubted {
		t.Error("the same limit, heard after the doubt, does not exclude the late caller")
	}
	if m.Heard(3) {
		t.Error("the same limit is news without a doubt")
	}
	if _, allowed := m.Arrive(4); allowed {
		t.Error("4 are allowed, with a limit of 3")
	}
	if m.Doubted = true; !m.Heard(3) {
		t.Error("the same limit is no news although it was in doubt")
	}
	if n, _ := m.Arrive(9); !m.Heard(-1) || m.Excludes(n, 9) || m.Excludes(early, 5) {
		t.Error("a caller is excluded although there is no limit")
	}
}
