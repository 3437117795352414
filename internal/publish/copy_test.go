package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"relock/rlock"
)

var installBlock = regexp.MustCompile("(?s)```sh\n(go mod edit -replace .*?)```")

// The README's commands for a module beside an unpublished copy work, each by itself and after the others.
func TestCopyServesOthers(t *testing.T) {
	dir := copied(t)
	if tr, err := openTree(dir); err != nil || tr.path != "relock" {
		t.Skip("this copy has a path by which go get finds it", err)
	}
	beside := t.TempDir()
	must(t, os.Symlink(dir, filepath.Join(beside, "relock")))
	user := filepath.Join(beside, "user")
	must(t, os.Mkdir(user, 0o755))
	readme, err := os.ReadFile(filepath.Join(dir, "README.md"))
	must(t, err)
	program, commands := firstBlock.FindSubmatch(readme), installBlock.FindSubmatch(readme)
	if program == nil || commands == nil {
		t.Fatalf("the README has the example %q and the commands %q", program, commands)
	}
	must(t, os.WriteFile(filepath.Join(user, "main.go"), program[1], 0o644))
	own := shell{t, []string{"GOWORK=off", "GOFLAGS=-buildvcs=false"}}
	own.run(user, "go", "mod", "init", "example.org/user")
	for line := range strings.Lines(string(commands[1])) {
		own.run(user, "sh", "-ec", line)
		own.run(user, "go", "build", "-o", "user", ".")
	}
	own.run(user, "go", "build", "relock/otel")
	if out := own.run(beside, "relock/bin/relock", "version"); out != rlock.Version {
		t.Errorf("the command that was made is %s", out)
	}
}
