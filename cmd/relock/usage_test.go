package main_test

import (
	"encoding/json"
	"strings"
	"testing"
)

// With --json the error of a wrong command line is JSON too, whatever is wrong, and wherever --json stands.
func TestWrongUsageInJSON(t *testing.T) {
	t.Parallel()
	c := cli{t, "redis://127.0.0.1:1"}
	for _, args := range []string{"--json no-such-command", "ls --no-such-flag --json", "run --lease soon --json x -- true", "--json show", "show --json a b",
		"--json help no-such-command", "--json help run no-such-command"} {
		r := c.want(64, strings.Fields(args)...)
		var e struct {
			Error string
			Exit  int
		}
		if err := json.Unmarshal([]byte(r.err), &e); err != nil || e.Error == "" || e.Exit != 64 {
			t.Errorf("%s says %q", args, r.err)
		}
	}
	if r := c.want(64, "run", "x", "--no-such-flag", "--", "echo", "--json"); !strings.HasPrefix(r.err, "relock: ") {
		t.Errorf("without --json it says %q", r.err)
	}
}

// An empty flag, as by a variable that is not set, is not taken for one that is left out: force would end a lock of another
// server, or the holds of all owners.
func TestEmptyFlagsAreWrongUsage(t *testing.T) {
	t.Parallel()
	c := cli{t, "redis://127.0.0.1:1"} // what is not refused says 69
	for _, args := range [][]string{{"force", "x", "--redis", ""}, {"ls", "--redis", ""}, {"force", "x", "--owner", ""}} {
		flag := args[len(args)-2]
		if r := c.want(64, args...); r.out != "" || !strings.Contains(r.err, flag+" is empty") {
			t.Errorf("%q prints %q and %q", args, r.out, r.err)
		}
	}
}

// help knows its commands, and a topic that it does not know is wrong usage.
func TestHelpTopics(t *testing.T) {
	t.Parallel()
	c := cli{t, "redis://127.0.0.1:1"}
	for args, want := range map[string]string{"help": "Available Commands:", "help run": "relock run NAME", "help help": "help [command]"} {
		if r := c.want(0, strings.Fields(args)...); !strings.Contains(r.out, want) || r.err != "" {
			t.Errorf("%s prints %q and %q", args, r.out, r.err)
		}
	}
	if r := c.want(64, "help", "no-such-command"); r.out != "" || !strings.Contains(r.err, "no-such-command") {
		t.Errorf("a topic that there is not: %q and %q", r.out, r.err)
	}
}

// --version is the command version, also with --json on either side.
func TestVersionInJSON(t *testing.T) {
	t.Parallel()
	c := cli{t, "redis://127.0.0.1:1"}
	want := c.want(0, "version", "--json").out
	for _, args := range []string{"--json --version", "--version --json"} {
		if got := c.want(0, strings.Fields(args)...).out; got != want || want == "" {
			t.Errorf("%s prints %q, version --json %q", args, got, want)
		}
	}
	if got := c.want(0, "--version").out; !strings.HasPrefix(got, "relock version ") {
		t.Errorf("--version prints %q", got)
	}
}
