package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
)

// published are the folders of the modules that have versions, in an order in which each needs only
// those before it; unpublished are those of all others.
var (
	published   = []string{".", "otel", "gocron", "goredis", "cmd/relock"}
	unpublished = []string{"bench", "examples/beside", "internal/publish", "interop/redisson", "otel/example", "torture"}
)

// A tree is a checkout of the repository.
type tree struct {
	dir     string
	path    string            // of the module at its root
	version string            // of all modules
	files   []string          // by their names from the root, with slashes
	modules map[string]string // the path of each module by its folder; "." is the root
	folders map[string]bool   // those at the root in which packages are
}

// openTree reads what a tree has. A module that is neither published nor unpublished is an error, so
// that a new one is not forgotten.
func openTree(dir string) (*tree, error) {
	t := &tree{dir: dir, modules: map[string]string{}, folders: map[string]bool{}}
	var err error
	if t.files, err = list(dir); err != nil {
		return nil, err
	}
	for _, file := range t.files {
		folder, _, _ := strings.Cut(file, "/")
		switch {
		case path.Base(file) == "go.mod":
			text, err := t.read(file)
			if err != nil {
				return nil, err
			}
			t.modules[path.Dir(file)] = modfile.ModulePath(text)
		case path.Ext(file) == ".go" && folder != file:
			t.folders[folder] = true
		}
	}
	for module := range t.modules {
		if !slices.Contains(published, module) && !slices.Contains(unpublished, module) {
			return nil, fmt.Errorf("%s is a module that has no version, and is not said to have none: add it to tree.go", module)
		}
	}
	if t.path = t.modules["."]; t.path == "" {
		return nil, fmt.Errorf("%s has no go.mod with a module path", dir)
	}
	t.version, err = t.readVersion()
	return t, err
}

// list returns the files of a tree: of a checkout those that git knows, else all.
func list(dir string) ([]string, error) {
	var files []string
	if _, err := os.Stat(filepath.Join(dir, ".git")); err == nil {
		cmd := exec.Command("git", "-C", dir, "ls-files", "-z")
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", cmd, err)
		}
		for name := range bytes.SplitSeq(bytes.TrimSuffix(out, []byte{0}), []byte{0}) {
			files = append(files, string(name))
		}
		return files, nil
	}
	err := fs.WalkDir(os.DirFS(dir), ".", func(file string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			files = append(files, file)
		}
		return err
	})
	return files, err
}

func (t *tree) read(file string) ([]byte, error) { return os.ReadFile(filepath.Join(t.dir, file)) }

// write replaces what a file has, and leaves its permissions.
func (t *tree) write(file string, text []byte) error {
	return os.WriteFile(filepath.Join(t.dir, file), text, 0o644)
}

var versionLine = regexp.MustCompile(`(?m)^const Version = "([^"]+)"$`)

// readVersion returns rlock.Version as modules have it, with a v in front.
func (t *tree) readVersion() (string, error) {
	const file = "rlock/version.go"
	text, err := t.read(file)
	if err != nil {
		return "", err
	}
	found := versionLine.FindSubmatch(text)
	if found == nil {
		return "", fmt.Errorf(`%s has no line like const Version = "1.2.3"`, file)
	}
	return "v" + string(found[1]), nil
}
