package redistest

import (
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
)

// The generations of servers, as the table below the ACL of docs/operations.md calls them. Each knows other
// commands.
const (
	Redis62   = "Redis 6.2"
	Redis70   = "Redis 7.0"
	NewServer = "Redis 7.2 and later, Valkey"
)

// generation returns that of the server which the tests run on.
func generation(tb testing.TB) string {
	switch v := ServerVersion(tb); {
	case v.AtLeast(7, 2):
		return NewServer
	case v.AtLeast(7, 0):
		return Redis70
	default:
		return Redis62
	}
}

// DocumentedACL returns the ACL SETUSER command that docs/operations.md gives for the server
// which the tests run on, word by word. It makes the user "locks" with the password "secret",
// who may use names that begin with "app:".
func DocumentedACL(tb testing.TB) []string {
	tb.Helper()
	acl, _ := ACL(tb, generation(tb))
	return acl
}

// LeftOut returns the words of the documented ACL that the server which the tests run on does not take.
func LeftOut(tb testing.TB) []string {
	tb.Helper()
	_, without := ACL(tb, generation(tb))
	return without
}

var (
	aclBlock = regexp.MustCompile("(?s)\n```\n(ACL SETUSER .*?)```\n")
	aclRow   = regexp.MustCompile("(?m)^\\| ([^|]+) \\| (?:nothing|the line that begins with `(\\+\\w+)`) \\|$")
)

// ACL returns the ACL SETUSER command that docs/operations.md gives for a generation of servers, and the words
// of the line that is to be left out for it.
func ACL(tb testing.TB, generation string) (acl, without []string) {
	tb.Helper()
	_, here, _, _ := runtime.Caller(0)
	text, err := os.ReadFile(filepath.Join(filepath.Dir(here), "../../../docs/operations.md"))
	if err != nil {
		tb.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## ACL\n")
	section, _, _ = strings.Cut(section, "\n## ")
	blocks, rows := aclBlock.FindAllStringSubmatch(section, -1), map[string]string{}
	for _, row := range aclRow.FindAllStringSubmatch(section, -1) {
		rows[row[1]] = row[2]
	}
	leave, known := rows[generation]
	if len(blocks) != 1 || !known || len(rows) != 3 {
		tb.Fatalf("docs/operations.md has %d ACL SETUSER blocks, want 1; what to leave out stands for %v, want %s", len(blocks), rows, generation)
	}
	for line := range strings.Lines(blocks[0][1]) {
		words := strings.Fields(line)
		if command, _, _ := strings.Cut(words[0], "|"); leave != "" && command == leave {
			without = append(without, words...)
			continue
		}
		acl = append(acl, words...)
	}
	if leave != "" && len(without) == 0 {
		tb.Fatalf("docs/operations.md leaves out a line that begins with %s for %s, and has none", leave, generation)
	}
	return acl, without
}
