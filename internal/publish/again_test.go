package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A second release, behind a change of what the first has hashed, leaves one hash of each module: Go refuses a
// module of whose version a go.sum has another hash.
func TestReleaseAnew(t *testing.T) {
	dir := t.TempDir()
	write := func(file, text string) {
		must(t, os.MkdirAll(filepath.Join(dir, filepath.Dir(file)), 0o755))
		must(t, os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644))
	}
	write("go.mod", "module "+newPath+"\n")
	write("LICENSE", "free")
	write("rlock/version.go", "package rlock\n\nconst Version = \"1.2.3\"\n")
	const others = "example.com/other v1.0.0 h1:other=\n"
	for _, folder := range published[1:] {
		write(folder+"/go.mod", "module "+newPath+"/"+folder+"\n\nrequire "+newPath+" v0.0.0\n\nreplace "+newPath+" => ..\n")
		write(folder+"/go.sum", others)
	}
	sums := func() string {
		must(t, run(dir, []string{"release"}))
		text, err := os.ReadFile(filepath.Join(dir, "otel/go.sum"))
		must(t, err)
		return string(text)
	}
	first := sums()
	if again := sums(); again != first {
		t.Errorf("without a change between them the first release has\n%sand the second\n%s", first, again)
	}
	write("rlock/rlock.go", "package rlock\n")
	second := sums()
	if second == first || strings.Count(second, "\n") != 3 || !strings.Contains(second, others) {
		t.Errorf("the first release has\n%sand the second\n%s", first, second)
	}
}
