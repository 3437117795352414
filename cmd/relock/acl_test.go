package main_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"relock/internal/test/redistest"
)

// block returns the words of the fenced block that matches, from the documentation.
func block(tb testing.TB, match string) []string {
	tb.Helper()
	files, err := filepath.Glob("../../docs/*.md")
	must(tb, err)
	for _, name := range append(files, "../../README.md") {
		text, err := os.ReadFile(name)
		must(tb, err)
		for _, b := range regexp.MustCompile("(?s)```[a-z]*\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
			if strings.Contains(b[1], match) {
				return strings.Fields(b[1])
			}
		}
	}
	tb.Fatalf("no block with %q in the documentation", match)
	return nil
}

// The permissions that are documented suffice for all commands.
func TestDocumentedPermissionsSuffice(t *testing.T) {
	t.Parallel()
	s := redistest.Real(t, "--appendonly", "yes")
	acl := slices.Concat(redistest.DocumentedACL(t), block(t, "+scan +type"))
	must(t, s.Do(t, acl...).Error())
	c := cli{t, "redis://locks:secret@" + s.Addr}
	r := c.start("run", "app:x", "--", "sh", "-c", "echo in; sleep 1000")
	r.expect("in")
	c.want(0, "ls", "app:*")
	c.want(0, "show", "app:x")
	c.want(0, "top", "-n", "1", "--interval", "100ms", "app:*")
	for _, f := range examine(c, 0, "--name", "app:doctor") {
		if f.Level == "fail" || strings.Contains(f.Finding, "NOPERM") {
			t.Errorf("%+v", f)
		}
	}
	c.want(0, "force", "app:x")
	if code := r.wait(); code != 79 {
		t.Errorf("exit code %d, want 79", code)
	}
}
