package docs_test

import (
	"io/fs"
	"path"
	"regexp"
	"strings"
	"testing"
)

var (
	logged    = regexp.MustCompile(`\b(?:[lL]og|Logger)\.(?:Info|Warn|Error)\("([^"]+)"`)
	messageOf = regexp.MustCompile("`((?:relock|pubsub): [^`]+)`")
)

// Operators look a message of the log up in docs/operations.md, which names no others.
func TestLogMessagesAreExplained(t *testing.T) {
	_, section, _ := strings.Cut(pages(t)["docs/operations.md"], "\n## The log\n")
	section, _, _ = strings.Cut(section, "\n## ")
	said := map[string]bool{}
	err := fs.WalkDir(root, ".", func(file string, d fs.DirEntry, err error) error {
		isLibrary := path.Ext(file) == ".go" && !strings.HasSuffix(file, "_test.go") && !strings.HasPrefix(file, "internal/test/")
		if err != nil || d.IsDir() || !isLibrary {
			return err
		}
		text, err := fs.ReadFile(root, file)
		for _, m := range logged.FindAllStringSubmatch(string(text), -1) {
			if said[m[1]] = true; messageOf.MatchString("`"+m[1]+"`") && !strings.Contains(section, "`"+m[1]+"`") {
				t.Errorf("%s: the message %q is not in the table of docs/operations.md", file, m[1])
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	explained := messageOf.FindAllStringSubmatch(section, -1)
	for _, m := range explained {
		if !said[m[1]] {
			t.Errorf("docs/operations.md explains %q, which no package says", m[1])
		}
	}
	if len(explained) < 10 {
		t.Errorf("%d messages are explained; there are more", len(explained))
	}
}
