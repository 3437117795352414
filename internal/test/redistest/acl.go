package redistest

import (
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
)

// DocumentedACL returns the ACL SETUSER command that docs/operations.md gives for the server
// which the tests run on, word by word. It makes the user "locks" with the password "secret",
// who may use names that begin with "app:".
func DocumentedACL(tb testing.TB) []string {
	tb.Helper()
	v := ServerVersion(tb)
	heading := "Redis 6.2"
	switch {
	case v.AtLeast(7, 2):
		heading = "Redis 7.2 and later, Valkey"
	case v.AtLeast(7, 0):
		heading = "Redis 7.0"
	}
	return ACLBlock(tb, heading)
}

// ACLBlock returns the ACL SETUSER command that stands below this heading of
// docs/operations.md, word by word.
func ACLBlock(tb testing.TB, heading string) []string {
	tb.Helper()
	_, here, _, _ := runtime.Caller(0)
	text, err := os.ReadFile(filepath.Join(filepath.Dir(here), "../../../docs/operations.md"))
	if err != nil {
		tb.Fatal(err)
	}
	block := regexp.MustCompile("(?s)\n#+ " + regexp.QuoteMeta(heading) + "\n(?:[^#`\n][^\n]*\n|\n)*```\n(ACL SETUSER .*?)```").FindSubmatch(text)
	if block == nil {
		tb.Fatalf("docs/operations.md has no ACL SETUSER block below the heading %q", heading)
	}
	return strings.Fields(string(block[1]))
}
