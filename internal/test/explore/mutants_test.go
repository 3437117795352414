package explore

import (
	"os"
	"strings"
	"testing"
	"time"
)

func TestMutants(t *testing.T) {
	for _, m := range mutants() {
		if !strings.Contains(m.name, os.Getenv("MUTANT")) {
			continue
		}
		r := m.Hunt(40000, time.Minute)
		if r.Wrong == "" || !m.applied() {
			t.Errorf("NOT FOUND %s (applied: %v): %v", m.name, m.applied(), r)
			continue
		}
		t.Logf("%s: %d states, %d steps: %.150s", m.name, r.States, r.Depth, r.Wrong)
	}
}
