package docs_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"relock/internal/test/redistest"
)

// The program of the README runs as it stands in examples/tour, but for the address.
func TestTour(t *testing.T) {
	redistest.SkipShort(t)
	s := redistest.Real(t)
	source, err := os.ReadFile("../examples/tour/main.go")
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(source), `"localhost:6379"`); n != 1 {
		t.Fatalf("%d addresses, want 1", n)
	}
	file := filepath.Join(t.TempDir(), "main.go")
	source = []byte(strings.Replace(string(source), "localhost:6379", s.Addr, 1))
	if err := os.WriteFile(file, source, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("go", "run", file).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "selling") || strings.Count(string(out), "\n") != 1 {
		t.Errorf("go run: %v\n%s", err, out)
	}
}
