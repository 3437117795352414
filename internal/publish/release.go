package main

import (
	"bytes"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/sumdb/dirhash"
)

// release has each module with a version require those that it needs at that version, without a replace
// directive: go install refuses a module that has one. Their go.sum gets the hashes of these, which
// the files of the tree have. All other modules stay.
func (t *tree) release() error {
	if err := module.CheckPath(t.path); err != nil {
		return fmt.Errorf("%w; give the module a path first: rename", err)
	}
	var sums []byte // of the modules so far
	for _, folder := range published {
		if folder != "." {
			if err := t.releaseMod(folder, sums); err != nil {
				return fmt.Errorf("%s: %w", folder, err)
			}
		}
		more, err := t.sums(folder)
		if err != nil {
			return fmt.Errorf("%s: %w", folder, err)
		}
		sums = append(sums, more...)
	}
	return nil
}

// releaseMod writes the go.mod and the go.sum of one module. sums are the hashes of those before it.
func (t *tree) releaseMod(folder string, sums []byte) error {
	modName, sumName := path.Join(folder, "go.mod"), path.Join(folder, "go.sum")
	text, err := t.read(modName)
	if err != nil {
		return err
	}
	f, err := modfile.Parse(modName, text, nil)
	if err != nil {
		return err
	}
	var needs []string
	for _, r := range f.Require {
		if t.isModule(r.Mod.Path) {
			needs = append(needs, r.Mod.Path)
		}
	}
	for _, need := range needs {
		if err := f.AddRequire(need, t.version); err != nil {
			return err
		}
	}
	for _, r := range slices.Clone(f.Replace) {
		if !t.isModule(r.Old.Path) {
			return fmt.Errorf("it replaces %s, which is another's: a version cannot", r.Old.Path)
		}
		if err := f.DropReplace(r.Old.Path, r.Old.Version); err != nil {
			return err
		}
	}
	f.Cleanup()
	sum, err := t.read(sumName)
	if err != nil {
		return err
	}
	// An earlier run of release may have left others, which Go would take for those of this version too.
	lines := slices.DeleteFunc(strings.SplitAfter(string(sum), "\n"), func(line string) bool {
		word, _, _ := strings.Cut(line, " ")
		return slices.Contains(needs, word)
	})
	for line := range strings.Lines(string(sums)) {
		if word, _, _ := strings.Cut(line, " "); slices.Contains(needs, word) {
			lines = append(lines, line)
		}
	}
	slices.Sort(lines)
	if err := t.write(sumName, []byte(strings.Join(slices.Compact(lines), ""))); err != nil {
		return err
	}
	return t.write(modName, modfile.Format(f.Syntax))
}

// isModule reports whether a path is that of a module of the tree.
func (t *tree) isModule(modulePath string) bool {
	for _, p := range t.modules {
		if p == modulePath {
			return true
		}
	}
	return false
}

// sums are the lines about a module in the go.sum of those that need it.
func (t *tree) sums(folder string) ([]byte, error) {
	var zip bytes.Buffer
	if err := t.zip(folder, &zip); err != nil {
		return nil, err
	}
	all, err := hashZip(zip.Bytes())
	if err != nil {
		return nil, err
	}
	mod, err := t.read(path.Join(folder, "go.mod"))
	if err != nil {
		return nil, err
	}
	own, err := dirhash.Hash1([]string{"go.mod"}, func(string) (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(mod)), nil
	})
	if err != nil {
		return nil, err
	}
	p := t.modules[folder]
	return fmt.Appendf(nil, "%s %s %s\n%s %s/go.mod %s\n", p, t.version, all, p, t.version, own), nil
}
