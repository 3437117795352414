package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
)

// rename gives the module at the root another path, and those in it too. The word relock alone stays:
// it is the name of the command, and begins keys, channels and metrics.
func (t *tree) rename(to string) error {
	if err := module.CheckPath(to); err != nil {
		return fmt.Errorf("%w; a path that Go can get begins with a host, as example.com/you/relock", err)
	}
	if _, major, ok := module.SplitPathVersion(to); !ok || major != "" {
		return fmt.Errorf("the path %q ends with a major version, and %s has none", to, t.version)
	}
	if to == t.path {
		return fmt.Errorf("the module is %s already", to)
	}
	renamed := map[string][]byte{} // nothing is written unless all can be renamed
	for _, file := range t.files {
		old, err := t.read(file)
		if err != nil {
			return err
		}
		text, err := t.renamed(file, old, to)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if !bytes.Equal(text, old) {
			renamed[file] = text
		}
	}
	for file, text := range renamed {
		if err := t.write(file, text); err != nil {
			return err
		}
	}
	return nil
}

// renamed returns the text of one file with the other path.
func (t *tree) renamed(file string, text []byte, to string) ([]byte, error) {
	switch {
	case path.Base(file) == "go.mod":
		return t.renamedMod(text, to)
	case path.Ext(file) == ".go":
		return t.renamedGo(text, to)
	case path.Base(file) == "go.sum" || !utf8.Valid(text):
		return text, nil
	}
	return []byte(t.renamedText(string(text), to)), nil
}

// renamedMod renames the paths in a go.mod.
func (t *tree) renamedMod(text []byte, to string) ([]byte, error) {
	f, err := modfile.Parse("go.mod", text, nil)
	if err != nil {
		return nil, err
	}
	rename := func(line *modfile.Line) {
		for i, word := range line.Token {
			if word == t.path || strings.HasPrefix(word, t.path+"/") {
				line.Token[i] = to + strings.TrimPrefix(word, t.path)
			}
		}
	}
	for _, x := range f.Syntax.Stmt {
		switch x := x.(type) {
		case *modfile.Line:
			rename(x)
		case *modfile.LineBlock:
			for _, line := range x.Line {
				rename(line)
			}
		}
	}
	return modfile.Format(f.Syntax), nil
}

// An edit replaces a part of a file.
type edit struct {
	from, to int // offsets
	text     string
}

// renamedGo renames imports, other literals that are a path as a whole, and paths in comments.
func (t *tree) renamedGo(text []byte, to string) ([]byte, error) {
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, "", text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var edits []edit
	replace := func(n ast.Node, with string) {
		edits = append(edits, edit{set.Position(n.Pos()).Offset, set.Position(n.End()).Offset, with})
	}
	for _, group := range f.Comments {
		for _, c := range group.List {
			if with := t.renamedText(c.Text, to); with != c.Text {
				replace(c, with)
			}
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			if value, err := strconv.Unquote(lit.Value); err == nil && t.isPath(value) {
				replace(lit, lit.Value[:1]+to+value[len(t.path):]+lit.Value[:1])
			}
		}
		return true
	})
	if len(edits) == 0 {
		return text, nil
	}
	formatted, err := format.Source(text)
	wasFormatted := err == nil && bytes.Equal(formatted, text)
	slices.SortFunc(edits, func(a, b edit) int { return b.from - a.from }) // from the end, so that offsets hold
	text = bytes.Clone(text)
	for _, e := range edits {
		text = slices.Replace(text, e.from, e.to, []byte(e.text)...)
	}
	if wasFormatted { // imports may have another order now
		return format.Source(text)
	}
	return text, nil
}

// isPath reports whether a string as a whole is the path of a package of the tree, or a pattern of them.
func (t *tree) isPath(s string) bool {
	m := pathLike.FindString(s)
	return m == s && t.isOurs(m)
}

// pathLike is what an import path, or a pattern of such, may look like.
var pathLike = regexp.MustCompile(`[A-Za-z0-9_.~/-]+`)

// isOurs reports whether what looks like a path is one into a folder of the tree with packages.
func (t *tree) isOurs(s string) bool {
	rest, ok := strings.CutPrefix(s, t.path+"/")
	folder, _, _ := strings.Cut(rest, "/")
	folder = strings.TrimRight(folder, ".") // the end of a sentence, or of [path.Name]
	if name, _, isName := strings.Cut(folder, "."); isName {
		folder = name
	}
	return ok && (t.folders[folder] || rest == "...")
}

// renamedText renames the paths in a text that is not Go code.
func (t *tree) renamedText(text, to string) string {
	return pathLike.ReplaceAllStringFunc(text, func(s string) string {
		if t.isOurs(s) {
			return to + s[len(t.path):]
		}
		return s
	})
}
