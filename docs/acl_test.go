package docs_test

import (
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"relock/internal/test/redistest"
)

// A generation of servers lacks what it does not know, and nothing else.
func TestACLOfEachGeneration(t *testing.T) {
	all, _ := redistest.ACL(t, redistest.NewServer)
	for generation, unknown := range map[string][]string{
		redistest.Redis62:   {"+spublish", "+ssubscribe", "+sunsubscribe"},
		redistest.Redis70:   {"+client|setinfo"},
		redistest.NewServer: nil,
	} {
		acl, without := redistest.ACL(t, generation)
		if !slices.Equal(without, unknown) {
			t.Errorf("%s does without %q, want %q", generation, without, unknown)
		}
		if want := slices.DeleteFunc(slices.Clone(all), func(w string) bool { return slices.Contains(unknown, w) }); !slices.Equal(acl, want) {
			t.Errorf("%s:\n%q, want\n%q", generation, acl, want)
		}
	}
}

// The server that the tests run on takes the ACL, and none of the words that are left out for it.
func TestServerTakesACL(t *testing.T) {
	redistest.SkipShort(t)
	s := redistest.Real(t)
	if err := s.Do(t, redistest.DocumentedACL(t)...).Error(); err != nil {
		t.Errorf("the ACL is refused: %v", err)
	}
	for _, word := range redistest.LeftOut(t) {
		if s.Do(t, "ACL", "SETUSER", "locks", word).Error() == nil {
			t.Errorf("the server takes %s, which is left out", word)
		}
	}
}

// byClient are the commands that rueidis sends by itself: to greet a server, to find a master by its
// sentinels, to find the nodes of a Cluster and a slot that is moving.
var byClient = []string{"hello", "client|setinfo", "role", "asking", "cluster|slots", "cluster|shards"}

var (
	inLua     = regexp.MustCompile(`\b(?:p?call|each)\(\s*('PUBSUB', '[A-Z]+'|\S+?)[,)]`)
	inBuilder = regexp.MustCompile(`\bB\(\)\.([A-Z][a-z]+)([A-Z][a-z]+)?\(`)
	inWords   = regexp.MustCompile(`"(ACL|CLIENT|CLUSTER|PUBSUB)"(?:, |\)\.Args?\()"([A-Z]+)"`) // as Arbitrary and pubsub's ask take them
)

// sent returns the commands that a script or a Go file sends, as an ACL names them.
func sent(t *testing.T, file, text string) (all []string) {
	t.Helper()
	if path.Ext(file) == ".lua" {
		for _, m := range inLua.FindAllStringSubmatch(text, -1) {
			switch word := strings.ReplaceAll(strings.Trim(m[1], "'"), "', '", "|"); {
			case strings.HasPrefix(word, "ARGV["), word == "at.publish": // how the deployment publishes
				all = append(all, "publish", "spublish")
			case word == "command": // of each.lua, whose callers name it
			case word == "prefix", word == "at.prefix": // of the call in line.lua, which tells a session
			case word == m[1]:
				t.Errorf("%s: which command is %s?", file, word)
			default:
				all = append(all, strings.ToLower(word))
			}
		}
		return all
	}
	for _, m := range inBuilder.FindAllStringSubmatch(text, -1) {
		if m[1] != "Arbitrary" {
			all = append(all, strings.ToLower(strings.TrimSuffix(m[1]+"|"+m[2], "|")))
		}
	}
	for _, m := range inWords.FindAllStringSubmatch(text, -1) {
		all = append(all, strings.ToLower(m[1]+"|"+m[2]))
	}
	return all
}

// commands returns the commands that the library sends, or the command line.
func commands(t *testing.T, commandLine bool) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := fs.WalkDir(root, ".", func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if slices.Contains([]string{".git", "bench", "examples", "interop", "internal/test", "relocktest", "testdata", "torture"}, file) || file == "cmd" && !commandLine {
				return fs.SkipDir
			}
			return nil
		}
		ofProduct := !strings.HasSuffix(file, "_test.go") && (path.Ext(file) == ".go" || path.Ext(file) == ".lua")
		if !ofProduct || commandLine != strings.HasPrefix(file, "cmd/") {
			return nil
		}
		text, err := fs.ReadFile(root, file)
		for _, c := range sent(t, file, string(text)) {
			found[c] = file
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// allowed returns the commands that a block names.
func allowed(block []string) (all []string) {
	for _, word := range block {
		if c, ok := strings.CutPrefix(word, "+"); ok {
			all = append(all, c)
		}
	}
	return all
}

// A command that is not in the ACL fails where it is in use, and one that nothing sends need not be
// allowed.
func TestACLNamesWhatIsSent(t *testing.T) {
	needed := commands(t, false)
	delete(needed, "wait") // with Config.Replicas only, as the page says
	for _, c := range byClient {
		needed[c] = "rueidis"
	}
	acl, _ := redistest.ACL(t, redistest.NewServer)
	named := allowed(acl)
	for c, file := range needed {
		if !slices.Contains(named, c) {
			t.Errorf("%s sends %s, which the ACL lacks", file, c)
		}
	}
	for _, c := range named {
		if needed[c] == "" {
			t.Errorf("the ACL allows %s, which nothing sends", c)
		}
	}

	_, below, _ := strings.Cut(pages(t)["docs/cli.md"], "\n## Permissions\n")
	more := allowed(strings.Fields(fence.FindString(below)))
	ofCommandLine := commands(t, true)
	for c, file := range ofCommandLine {
		if !slices.Contains(more, c) && !slices.Contains(named, c) {
			t.Errorf("%s sends %s, which neither ACL has", file, c)
		}
	}
	for _, c := range more {
		if ofCommandLine[c] == "" {
			t.Errorf("docs/cli.md allows %s, which the command line does not send; it sends %v", c, slices.Sorted(maps.Keys(ofCommandLine)))
		}
	}
}
