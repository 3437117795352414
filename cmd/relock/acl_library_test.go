package main_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"relock/internal/test/redistest"
)

// A user who may take locks, and no more, can look at one, force and run. What else needs more says what it
// lacks, and doctor says that locks work.
func TestLibraryUserAtTheCommandLine(t *testing.T) {
	t.Parallel()
	s := redistest.Real(t, "--appendonly", "yes")
	must(t, s.Do(t, redistest.DocumentedACL(t)...).Error())
	must(t, s.Do(t, "HSET", "app:hash", "a", "b").Error())
	must(t, s.Do(t, "HSET", "other:hash", "a", "1").Error())
	c := cli{t, "redis://locks:secret@" + s.Addr}
	r := c.start("run", "app:x", "--", "sh", "-c", "echo in; sleep 1000")
	r.expect("in")
	if l := decode[lock](c, "show", "app:x"); !l.Held || l.Kind != "mutex" || len(l.Owners) != 1 {
		t.Errorf("show has %+v", l)
	}
	if l := decode[lock](c, "show", "app:free"); l.Held {
		t.Errorf("show has %+v", l)
	}
	lacks := func(want string, args ...string) {
		t.Helper()
		if r := c.want(70, args...); !strings.Contains(r.err, want) {
			t.Errorf("%v says %q, want %q", args, r.err, want)
		}
		var e struct{ Remedy string }
		if r := c.want(70, append(args, "--json")...); json.Unmarshal([]byte(r.err), &e) != nil || !strings.Contains(e.Remedy, want) {
			t.Errorf("%v --json says %q, want %q", args, r.err, want)
		}
	}
	if r := c.want(1, "leader", "app:nobody"); !strings.Contains(r.err, "no leader") {
		t.Errorf("leader says %q", r.err)
	}
	lacks("allow +scan", "ls", "app:*")
	lacks("allow +scan", "top", "-n", "1", "--interval", "100ms")
	lacks("docs/operations.md#acl", "show", "other:hash")
	if r := c.want(70, "show", "app:hash"); !strings.Contains(r.err, "is no lock") {
		t.Errorf("show of another hash says %q", r.err)
	}
	all := examine(c, 0, "--name", "app:doctor")
	for check, want := range map[string]string{"commands": "ok", "command line": "warn", "user": "warn", "mutex": "ok", "fairlock": "ok",
		"rwlock": "ok", "semaphore": "ok", "messages": "ok", "label": "ok"} {
		if l, text := level(t, all, check); l != want {
			t.Errorf("%s: %s %s, want %s", check, l, text, want)
		}
	}
	i := slices.IndexFunc(all, func(f finding) bool { return f.Check == "command line" })
	must(t, s.Do(t, append([]string{"ACL", "SETUSER", "locks"}, strings.Fields(strings.TrimPrefix(all[i].Remedy, "allow "))...)...).Error())
	if found := names(decode[[]lock](c, "ls")); !slices.Equal(found, []string{"app:x"}) {
		t.Errorf("with what doctor says, ls has %q", found)
	}
	if r := c.want(0, "ls"); !strings.Contains(r.err, "1 key was left out") {
		t.Errorf("of a key that it may not read ls says %q", r.err)
	}
	c.want(0, "top", "-n", "1", "--interval", "100ms")
	c.want(0, "force", "app:x")
	if code := r.wait(); code != 79 {
		t.Errorf("exit code %d, want 79", code)
	}
}
