package main

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"relock/internal/test/redistest"
)

const newPath = "example.com/you/relock"

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// copied is a copy of this checkout, without its history.
func copied(t *testing.T) string {
	t.Helper()
	const root = "../.."
	list := exec.Command("git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	out, err := list.Output()
	if err != nil {
		t.Skipf("this is no checkout: %v", err)
	}
	dir := t.TempDir()
	for file := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		text, err := os.ReadFile(filepath.Join(root, file))
		if os.IsNotExist(err) { // deleted, and not committed yet
			continue
		}
		must(t, err)
		info, err := os.Stat(filepath.Join(root, file))
		must(t, err)
		must(t, os.MkdirAll(filepath.Join(dir, filepath.Dir(file)), 0o755))
		must(t, os.WriteFile(filepath.Join(dir, file), text, info.Mode().Perm()))
	}
	return dir
}

// A shell runs commands in a folder, with an environment of its own.
type shell struct {
	t   *testing.T
	env []string
}

func (s shell) run(dir string, args ...string) string {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), s.env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.t.Fatalf("in %s: %s: %v\n%s", dir, strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// What is no path of a package stays, however much it looks like one.
func TestRenamedText(t *testing.T) {
	tr := &tree{path: "relock", folders: map[string]bool{"rlock": true, "cmd": true, "otel": true, "internal": true}}
	for old, want := range map[string]string{
		`import "relock/rlock"`:                        `import "example.com/you/relock/rlock"`,
		"[relock/rlock.Mutex] and [relock/rlock].":     "[example.com/you/relock/rlock.Mutex] and [example.com/you/relock/rlock].",
		"go get relock/rlock@v0.1.0":                   "go get example.com/you/relock/rlock@v0.1.0",
		"go install relock/cmd/relock@latest # relock": "go install example.com/you/relock/cmd/relock@latest # relock",
		"-coverpkg=relock/...":                         "-coverpkg=example.com/you/relock/...",
		"see relock/otel. And":                         "see example.com/you/relock/otel. And",
		"relock_line1:{x} relock:x relock.x relock":    "relock_line1:{x} relock:x relock.x relock",
		"relock/unknown, /relock/rlock, a/relock/otel": "relock/unknown, /relock/rlock, a/relock/otel",
		"bin/relock ./cmd/relock ../relock/rlock":      "bin/relock ./cmd/relock ../relock/rlock",
		"myrelock/rlock github.com/x/relock/rlock":     "myrelock/rlock github.com/x/relock/rlock",
	} {
		if got := tr.renamedText(old, newPath); got != want {
			t.Errorf("%q becomes %q, want %q", old, got, want)
		}
	}
}

// In Go code a literal is renamed if it is a path as a whole.
func TestRenamedGo(t *testing.T) {
	tr := &tree{path: "relock", folders: map[string]bool{"rlock": true, "otel": true}}
	const old = `package x // of relock/otel

import (
	"github.com/redis/rueidis"
	"relock/rlock"
)

const scope, metric, command = "relock/otel", "relock.acquires", "relock"

var _ = errors.New("relock/otel: nil") // Relock
`
	const want = `package x // of example.com/you/relock/otel

import (
	"example.com/you/relock/rlock"
	"github.com/redis/rueidis"
)

const scope, metric, command = "example.com/you/relock/otel", "relock.acquires", "relock"

var _ = errors.New("relock/otel: nil") // Relock
`
	got, err := tr.renamedGo([]byte(old), newPath)
	if err != nil || string(got) != want {
		t.Errorf("%v: it becomes\n%s", err, got)
	}
}

// What is wrong is said before anything is written.
func TestRefusals(t *testing.T) {
	dir := t.TempDir()
	write := func(file, text string) {
		must(t, os.MkdirAll(filepath.Join(dir, filepath.Dir(file)), 0o755))
		must(t, os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644))
	}
	write("go.mod", "module relock\n")
	write("LICENSE", "free")
	write("rlock/version.go", "package rlock\n\nconst Version = \"1.2.3\"\n")
	write("otel/go.mod", "module relock/otel\n\nrequire relock v0.0.0\n\nreplace relock => ..\n")
	write("cmd/relock/go.mod", "module relock/cmd/relock\n")
	refused := func(says string, args ...string) {
		t.Helper()
		if err := run(dir, args); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v: %v", args, err)
		}
	}
	refused("example.com/you/relock", "rename", "you/relock")
	refused("example.com/you/relock", "rename", "https://example.com/you/relock")
	refused("major version", "rename", newPath+"/v2")
	refused("rename", "release")
	refused("missing dot", "pack", t.TempDir())
	refused("one of", "rename")
	write("rlock/bad.go", "package\n")
	refused("bad.go", "rename", newPath)
	if text, err := os.ReadFile(filepath.Join(dir, "go.mod")); err != nil || string(text) != "module relock\n" {
		t.Errorf("go.mod has %q: %v", text, err)
	}
	must(t, os.Remove(filepath.Join(dir, "rlock/bad.go")))
	must(t, run(dir, []string{"rename", newPath}))
	refused("already", "rename", newPath)
	refused("release it first", "pack", t.TempDir())
	write("new/go.mod", "module relock/new\n")
	refused("new is a module", "rename", newPath)
	must(t, os.RemoveAll(filepath.Join(dir, "new")))
	write("rlock/version.go", "package rlock\n")
	refused("const Version", "release")
}

var firstBlock = regexp.MustCompile("(?s)```go\n(.*?)```")

// A copy of the repository gets a path with a host, and a version of it serves a module outside: the
// README's first example, the command, and the hooks for OpenTelemetry.
func TestVersionServesOthers(t *testing.T) {
	server := redistest.Real(t)
	dir := copied(t)
	before := contents(t, dir)
	must(t, run(dir, []string{"rename", newPath}))
	onlyPathsChanged(t, before, contents(t, dir))

	own := shell{t, []string{"GOWORK=off", "GOFLAGS=-buildvcs=false", "GOPROXY=off"}}
	for module := range modulesOf(t, dir) {
		own.run(filepath.Join(dir, module), "go", "list", "-deps", "-test", "./...")
	}
	for _, module := range published { // what go get asks of other modules is more than what a build does
		shell{t, []string{"GOWORK=off"}}.run(filepath.Join(dir, module), "go", "list", "-m", "all")
	}
	own.run(dir, "go", "test", "-count=1", "./docs", "./internal/keyname")

	proxy, bin := t.TempDir(), t.TempDir()
	must(t, run(dir, []string{"release"}))
	must(t, run(dir, []string{"pack", proxy}))
	cache := own.run(dir, "go", "env", "GOMODCACHE")
	outside := shell{t, []string{"GOWORK=off", "GOFLAGS=-modcacherw -trimpath", "GOTOOLCHAIN=local", "GOSUMDB=off", "GOBIN=" + bin,
		"GOMODCACHE=" + t.TempDir(), "GOPROXY=file://" + proxy + ",file://" + filepath.Join(cache, "cache/download")}}
	readme, err := os.ReadFile(filepath.Join(dir, "README.md"))
	must(t, err)
	program := firstBlock.FindSubmatch(readme)
	if program == nil || bytes.Count(program[1], []byte("localhost:6379")) != 1 {
		t.Fatalf("the README's first example is %q", program)
	}
	user := t.TempDir()
	must(t, os.WriteFile(filepath.Join(user, "main.go"), bytes.Replace(program[1], []byte("localhost:6379"), []byte(server.Addr), 1), 0o644))
	released, err := openTree(dir)
	must(t, err)
	version := "@" + released.version
	outside.run(filepath.Join(dir, "cmd/relock"), "go", "build", "-o", filepath.Join(bin, "built"), ".") // by the go.sum of the release
	outside.run(user, "go", "mod", "init", "example.org/user")
	outside.run(user, "go", "get", newPath+"/rlock"+version)
	outside.run(user, "go", "build", "-o", "user", ".")
	if out := outside.run(user, "./user"); !strings.Contains(out, "selling") {
		t.Errorf("the example says %q", out)
	}
	outside.run(user, "go", "install", newPath+"/cmd/relock"+version)
	if out := outside.run(user, filepath.Join(bin, "relock"), "version"); "v"+out != released.version {
		t.Errorf("the installed command is %s", out)
	}
	outside.run(user, "go", "get", newPath+"/otel"+version)
	outside.run(user, "go", "build", newPath+"/otel")
}

// modulesOf returns the folders of the modules in a tree.
func modulesOf(t *testing.T, dir string) map[string]string {
	tr, err := openTree(dir)
	must(t, err)
	if len(tr.modules) != len(published)+len(unpublished) {
		t.Errorf("there are the modules %v; tree.go names others", tr.modules)
	}
	return tr.modules
}

// contents are the files of a tree.
func contents(t *testing.T, dir string) map[string]string {
	all := map[string]string{}
	must(t, fs.WalkDir(os.DirFS(dir), ".", func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(filepath.Join(dir, file))
		all[file] = string(text)
		return err
	}))
	return all
}

// onlyPathsChanged wants of each file that the old path was replaced where a folder follows it, and in
// a go.mod where it stands alone, and nothing else: not even the number of lines.
func onlyPathsChanged(t *testing.T, before, after map[string]string) {
	t.Helper()
	changed := 0
	for file, old := range before {
		renamed, path := "/", "relock/"
		if filepath.Base(file) == "go.mod" {
			renamed, path = "", "relock"
		}
		// This file has the new path too.
		want, got := strings.ReplaceAll(old, newPath+renamed, path), strings.ReplaceAll(after[file], newPath+renamed, path)
		if !slices.Equal(sorted(want), sorted(got)) {
			t.Errorf("%s has changed in more than paths", file)
		}
		if after[file] != old {
			changed++
		}
	}
	if len(after) != len(before) || changed < 500 {
		t.Errorf("%d files became %d, and %d of them changed", len(before), len(after), changed)
	}
}

// sorted are the lines of a text, in an order that does not depend on the paths of imports.
func sorted(text string) []string {
	lines := strings.Split(text, "\n")
	slices.Sort(lines)
	return lines
}
