// Package calls counts the functions of this module that an uncontended Lock and Unlock run:
// a measure of how much there is to read. "make calls" lists them.
package calls_test

import (
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"relock/internal/test/redistest"
)

func TestUncontendedPairRunsFewFunctions(t *testing.T) {
	redistest.SkipShort(t) // it builds the module with coverage
	pair := filepath.Join(t.TempDir(), "pair")
	command(t, "go", "build", "-cover", "-covermode=atomic", "-coverpkg=relock/...", "-o", pair, "./pair")
	for _, c := range []struct {
		connection string
		// most is how many functions the pair may run: as many as it does. A change that needs more
		// raises it, and should have a reason to.
		most int
	}{{"shared", 49}, {"direct", 49}} { // 45, and what says that the caller may stand in a line
		t.Run(c.connection, func(t *testing.T) {
			dir := t.TempDir()
			command(t, pair, "-direct="+strconv.FormatBool(c.connection == "direct"), dir)
			var ran []string
			for line := range strings.Lines(command(t, "go", "tool", "covdata", "func", "-i", dir)) {
				f := strings.Fields(line) // file:line: function percentage; a function literal counts as what it stands in
				if len(f) == 3 && strings.HasPrefix(f[0], "relock/") && f[2] != "0.0%" && !strings.Contains(f[0], "/test/") {
					ran = append(ran, f[0]+" "+f[1])
				}
			}
			t.Logf("%d functions:\n%s", len(ran), strings.Join(ran, "\n"))
			if len(ran) < 20 || len(ran) > c.most {
				t.Errorf("Lock and Unlock ran %d functions of ours, want 20 to %d", len(ran), c.most)
			}
			if onDirect := strings.Contains(strings.Join(ran, " "), "*link.SetDeadline"); onDirect != (c.connection == "direct") {
				t.Errorf("the commands went over the direct connection: %v", onDirect)
			}
		})
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
