package main

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/sumdb/dirhash"
	modzip "golang.org/x/mod/zip"
)

// pack writes the version of each module that has one into a folder that is laid out as a module proxy
// answers: https://go.dev/ref/mod#goproxy-protocol.
func (t *tree) pack(dir string) error {
	for _, folder := range published {
		if err := t.packModule(folder, dir); err != nil {
			return fmt.Errorf("%s: %w", folder, err)
		}
	}
	return nil
}

func (t *tree) packModule(folder, dir string) error {
	mod, err := t.read(path.Join(folder, "go.mod"))
	if err != nil {
		return err
	}
	f, err := modfile.Parse("go.mod", mod, nil)
	if err != nil {
		return err
	}
	if len(f.Replace) > 0 {
		return fmt.Errorf("its go.mod replaces %s: release it first", f.Replace[0].Old.Path)
	}
	escaped, err := module.EscapePath(t.modules[folder])
	if err != nil {
		return err
	}
	var zip bytes.Buffer
	if err := t.zip(folder, &zip); err != nil {
		return err
	}
	base := filepath.Join(dir, filepath.FromSlash(escaped), "@v")
	if err := os.MkdirAll(base, 0o755); err != nil {
		return err
	}
	for name, text := range map[string][]byte{
		"list":              []byte(t.version + "\n"),
		t.version + ".info": fmt.Appendf(nil, "{\"Version\":%q}\n", t.version),
		t.version + ".mod":  mod,
		t.version + ".zip":  zip.Bytes(),
	} {
		if err := os.WriteFile(filepath.Join(base, name), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// zip writes the files of a module as Go has them from a repository: with the root's licence where it
// has none of its own.
func (t *tree) zip(folder string, w io.Writer) error {
	const licence = "LICENSE"
	var files []modzip.File
	licensed := false
	for _, file := range t.files {
		name := file
		if folder != "." {
			var inside bool
			if name, inside = strings.CutPrefix(file, folder+"/"); !inside {
				continue
			}
		}
		licensed = licensed || name == licence
		files = append(files, source{name, filepath.Join(t.dir, file)})
	}
	if !licensed {
		files = append(files, source{licence, filepath.Join(t.dir, licence)})
	}
	return modzip.Create(w, module.Version{Path: t.modules[folder], Version: t.version}, files)
}

// A source is a file for a zip.
type source struct{ name, from string }

func (s source) Path() string                 { return s.name }
func (s source) Lstat() (os.FileInfo, error)  { return os.Lstat(s.from) }
func (s source) Open() (io.ReadCloser, error) { return os.Open(s.from) }

// hashZip is what a go.sum says of a module's zip.
func hashZip(text []byte) (string, error) {
	r, err := zip.NewReader(bytes.NewReader(text), int64(len(text)))
	if err != nil {
		return "", err
	}
	var names []string
	for _, f := range r.File {
		names = append(names, f.Name)
	}
	return dirhash.Hash1(names, func(name string) (io.ReadCloser, error) { return r.Open(name) })
}
