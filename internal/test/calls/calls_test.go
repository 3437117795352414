package calls_test

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"relock/internal/test/calls"
	"relock/internal/test/redistest"
)

func TestPathsRunFewFunctions(t *testing.T) {
	redistest.SkipShort(t) // it builds the module with coverage
	program, module := filepath.Join(t.TempDir(), "path"), strings.TrimSpace(command(t, "go", "list", "-m"))
	command(t, "go", "build", "-cover", "-covermode=atomic", "-coverpkg="+module+"/...", "-o", program, "./path")
	for _, p := range calls.Paths {
		t.Run(p.Name, func(t *testing.T) {
			dir := t.TempDir()
			command(t, program, p.Name, dir)
			var ran, names []string
			for line := range strings.Lines(command(t, "go", "tool", "covdata", "func", "-i", dir)) {
				f := strings.Fields(line) // file:line: function percentage; a function literal counts as what it stands in
				if len(f) == 3 && strings.HasPrefix(f[0], module+"/") && f[2] != "0.0%" && !strings.Contains(f[0], "/test/") {
					ran, names = append(ran, f[0]+" "+f[1]), append(names, f[1])
				}
			}
			t.Logf("%d functions:\n%s", len(ran), strings.Join(ran, "\n"))
			if len(ran) < 20 || len(ran) > p.Most {
				t.Errorf("it ran %d functions of ours, want 20 to %d", len(ran), p.Most)
			}
			for _, f := range p.Runs {
				if !slices.Contains(names, f) {
					t.Errorf("it did not run %s, so it was another path", f)
				}
			}
			for _, f := range p.Not {
				if slices.Contains(names, f) {
					t.Errorf("it ran %s, so it was another path", f)
				}
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
		t.Fatalf("%s: %v\n%s%s", cmd, err, out, errs.String())
	}
	return string(out)
}
