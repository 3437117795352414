// Package calls counts the functions of this module that an uncontended Lock and Unlock run:
// a measure of how much there is to read. "make calls" lists them.
package calls_test

import (
	"os/exec"
	"strings"
	"testing"

	"relock/internal/test/redistest"
)

// most is how many functions the pair may run: as many as it does. A change that needs more raises it,
// and should have a reason to.
const most = 51

func TestUncontendedPairRunsFewFunctions(t *testing.T) {
	redistest.SkipShort(t) // it builds the module with coverage
	dir := t.TempDir()
	command(t, "go", "run", "-cover", "-covermode=atomic", "-coverpkg=relock/...", "./pair", dir)
	var ran []string
	for line := range strings.Lines(command(t, "go", "tool", "covdata", "func", "-i", dir)) {
		f := strings.Fields(line) // file:line: function percentage
		if len(f) == 3 && strings.HasPrefix(f[0], "relock/") && f[2] != "0.0%" && !strings.Contains(f[0], "/test/") {
			ran = append(ran, f[0]+" "+f[1])
		}
	}
	t.Logf("%d functions:\n%s", len(ran), strings.Join(ran, "\n"))
	if len(ran) < 20 || len(ran) > most {
		t.Errorf("Lock and Unlock ran %d functions of ours, want 20 to %d", len(ran), most)
	}
}

// command runs a command and returns what it has printed.
func command(t *testing.T, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, errs.String())
	}
	return string(out)
}
