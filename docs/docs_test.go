package docs_test

import (
	"io/fs"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var root = os.DirFS("..")

// pages returns the text of the pages at the root and in docs/.
func pages(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, pattern := range []string{"*.md", "docs/*.md"} {
		files, err := fs.Glob(root, pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := fs.ReadFile(root, file)
			if err != nil {
				t.Fatal(err)
			}
			found[file] = string(text)
		}
	}
	if found["README.md"] == "" || found["docs/recipes.md"] == "" {
		t.Fatal("no README or no recipes")
	}
	return found
}

// lines are the lines of a text without indentation and empty lines, so that a block can be
// compared with the function that it stands in.
func lines(text string) string {
	var kept []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			kept = append(kept, line)
		}
	}
	return "\n" + strings.Join(kept, "\n") + "\n"
}

// compiled returns the Go files that the tests compile and run: all examples.
func compiled(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := fs.WalkDir(root, ".", func(file string, d fs.DirEntry, err error) error {
		isExample := strings.HasPrefix(file, "examples/") && path.Ext(file) == ".go" || d.Name() == "example_test.go"
		if err != nil || d.IsDir() || !isExample {
			return err
		}
		text, err := fs.ReadFile(root, file)
		found[file] = lines(string(text))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

var goBlock = regexp.MustCompile("(?s)```go\n(.*?)```")

func TestGoBlocksAreCompiled(t *testing.T) {
	files := compiled(t)
	blocks := 0
	for name, text := range pages(t) {
		for _, block := range goBlock.FindAllStringSubmatch(text, -1) {
			blocks++
			if !slices.ContainsFunc(slices.Collect(maps.Values(files)), func(file string) bool { return strings.Contains(file, lines(block[1])) }) {
				t.Errorf("%s: this block stands in no example that is compiled:\n%s", name, block[1])
			}
		}
	}
	if blocks < 10 {
		t.Errorf("%d blocks found; the README and the recipes have more", blocks)
	}
}

// Examples are to be copied, so they use nothing that other modules cannot import.
func TestExamplesImportNothingInternal(t *testing.T) {
	mod, err := fs.ReadFile(root, "go.mod")
	if err != nil {
		t.Fatal(err)
	}
	module, _, _ := strings.Cut(strings.TrimPrefix(string(mod), "module "), "\n")
	for name, text := range compiled(t) {
		isExample := strings.HasSuffix(name, "example_test.go") || strings.Contains(text, "\nfunc Example")
		if isExample && strings.Contains(text, `"`+module+`/internal/`) {
			t.Errorf("%s imports an internal package", name)
		}
	}
}

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	fence   = regexp.MustCompile("(?s)```.*?```")
	notSlug = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// anchors are the headings of a page as GitHub makes them into anchors.
func anchors(page string) []string {
	var all []string
	for _, h := range heading.FindAllStringSubmatch(fence.ReplaceAllString(page, ""), -1) {
		all = append(all, strings.ReplaceAll(notSlug.ReplaceAllString(strings.ToLower(h[1]), ""), " ", "-"))
	}
	return all
}

func TestLinksLeadSomewhere(t *testing.T) {
	all := pages(t)
	for name, text := range all {
		for _, l := range link.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
			target := l[1]
			if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
				continue
			}
			file, anchor, _ := strings.Cut(target, "#")
			to := name
			if file != "" {
				to = path.Join(path.Dir(name), file)
			}
			if _, err := fs.Stat(root, to); err != nil {
				t.Errorf("%s: %s: no such file", name, target)
			} else if anchor != "" && !slices.Contains(anchors(all[to]), anchor) {
				t.Errorf("%s: %s: no such heading; there are %v", name, target, anchors(all[to]))
			}
		}
	}
}

var page = regexp.MustCompile(`\bdocs/[a-z]+\.md(#[a-z-]+)?`)

// The comments of the packages, and what programs print, send readers to pages by name.
func TestPagesNamedInCodeExist(t *testing.T) {
	all := pages(t)
	named := 0
	err := fs.WalkDir(root, ".", func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path.Ext(file) != ".go" {
			return err
		}
		text, err := fs.ReadFile(root, file)
		for _, target := range page.FindAllString(string(text), -1) {
			named++
			to, anchor, _ := strings.Cut(target, "#")
			if all[to] == "" || anchor != "" && !slices.Contains(anchors(all[to]), anchor) {
				t.Errorf("%s: %s: there is no such page, or no such heading", file, target)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if named < 10 {
		t.Errorf("%d pages are named in Go files; there are more", named)
	}
}

var sourceNamed = regexp.MustCompile("`((?:[a-z]+/)*[a-z_]+\\.(?:go|lua)|internal/[a-z/]+)`")

// Who works on the code follows its paths by the files that docs/architecture.md names.
func TestArchitectureNamesFilesThatExist(t *testing.T) {
	var paths strings.Builder
	err := fs.WalkDir(root, ".", func(file string, d fs.DirEntry, err error) error {
		paths.WriteString("/" + file + "\n")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	named := sourceNamed.FindAllStringSubmatch(pages(t)["docs/architecture.md"], -1)
	for _, m := range named {
		if !strings.Contains(paths.String(), "/"+m[1]+"\n") {
			t.Errorf("there is no %s", m[1])
		}
	}
	if len(named) < 100 {
		t.Errorf("%d files are named; there are more", len(named))
	}
}

// The README answers each of these questions with one click.
func TestReadmeSaysWhatHappensWhen(t *testing.T) {
	readme := pages(t)["README.md"]
	for _, anchor := range []string{
		"the-holder-crashes", "a-partition", "a-failover", "a-slow-redis", "a-lock-is-lost-inside-a-section",
		"a-rolling-restart", "a-request-is-retried-by-a-proxy",
	} {
		if !strings.Contains(readme, "(docs/guarantees.md#"+anchor+")") {
			t.Errorf("the README does not lead to %s", anchor)
		}
	}
	if n := strings.Count(readme, "\n"); n > 250 {
		t.Errorf("the README has %d lines; more than 250 are not read", n)
	}
}
