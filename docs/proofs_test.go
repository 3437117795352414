package docs_test

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"
	"testing"
)

var (
	namedTest = regexp.MustCompile("`([a-z/]+)\\.(Test\\w+)`")
	comment   = regexp.MustCompile(`//.*`)
	numbered  = regexp.MustCompile(`\bR([0-9]+)\b`)
	scenario  = regexp.MustCompile(`\bScenario ([0-9]+)`)
)

// Each row of docs/proofs.md names tests that exist, and each number in a test's comment has a row.
func TestProofsExist(t *testing.T) {
	page := pages(t)["docs/proofs.md"]
	tests := map[string]string{} // by the folder of a package
	err := fs.WalkDir(root, ".", func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(file, "_test.go") {
			return err
		}
		text, err := fs.ReadFile(root, file)
		tests[path.Dir(file)] += string(text)
		comments := strings.Join(comment.FindAllString(string(text), -1), "\n")
		for find, row := range map[*regexp.Regexp]string{numbered: "\n| R%s |", scenario: "\n| %s |"} {
			for _, m := range find.FindAllStringSubmatch(comments, -1) {
				if !strings.Contains(page, fmt.Sprintf(row, m[1])) {
					t.Errorf("%s: %q has no row in docs/proofs.md", file, m[0])
				}
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for row := range strings.Lines(page) {
		if !strings.HasPrefix(row, "| ") {
			continue
		}
		found := namedTest.FindAllStringSubmatch(row, -1)
		if len(found) == 0 {
			if !strings.HasPrefix(row, "| |") {
				t.Errorf("no test stands in %q", row)
			}
			continue
		}
		for _, m := range found {
			if !strings.Contains(tests[m[1]], "\nfunc "+m[2]+"(t *testing.T)") {
				t.Errorf("there is no %s in package %s", m[2], m[1])
			}
		}
	}
}
