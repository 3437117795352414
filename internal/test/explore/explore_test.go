package explore

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestTry(t *testing.T) {
	most, _ := strconv.Atoi(os.Getenv("MOST"))
	for _, set := range setups() {
		if !strings.Contains(set.name, os.Getenv("SETUP")) {
			continue
		}
		if f := os.Getenv("FAULTS"); f != "" {
			n, _ := strconv.Atoi(f)
			set.faults = int8(n)
		}
		r := set.Explore(most, 4*time.Minute)
		t.Log(r)
		if r.Wrong != "" {
			t.Errorf("%s\n%s", r.Wrong, r.Story)
		}
	}
}
