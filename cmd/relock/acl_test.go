package main_test

import (
	"encoding/json"
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
	acl := slices.Concat(redistest.DocumentedACL(t), block(t, "+scan +type +hscan"))
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

// In a Cluster the permissions that are documented suffice too. What is missing of them while a
// slot moves is found before one does, on each node.
func TestDoctorFindsThatAskingIsRefused(t *testing.T) {
	t.Parallel()
	cluster := redistest.NewCluster(t)
	onAll := func(args ...string) {
		t.Helper()
		for _, addr := range cluster.Addrs {
			must(t, cluster.Node(addr).Do(t, args...).Error())
		}
	}
	onAll(slices.Concat(redistest.DocumentedACL(t), block(t, "+scan +type +hscan"))...)
	c := cli{t, "redis://locks:secret@" + cluster.Addrs[0]}
	asking := func() (ok, refused int) {
		t.Helper()
		// On a busy machine the nodes may miss each other, which is a failure of another check.
		r := c.run("doctor", "--json", "--name", "app:doctor")
		var all []finding
		must(t, json.Unmarshal([]byte(r.out), &all))
		for _, f := range all {
			switch denied := strings.Contains(f.Finding, "NOPERM") && strings.Contains(f.Remedy, "+asking"); {
			case f.Check == "asking" && f.Level == "ok":
				ok++
			case f.Check == "asking" && f.Level == "warn" && denied && slices.Contains(cluster.Addrs, f.Node):
				refused++
			case f.Check == "asking" || f.Check != "info" && strings.Contains(f.Finding, "NOPERM"):
				t.Errorf("%+v", f)
			}
		}
		return ok, refused
	}
	if ok, refused := asking(); ok != 3 || refused != 0 {
		t.Errorf("allowed by %d nodes, refused by %d, want 3 and 0", ok, refused)
	}
	// Without INFO too, which other checks of a node need.
	onAll(strings.Fields("ACL SETUSER locks -asking -info")...)
	if ok, refused := asking(); ok != 0 || refused != 3 {
		t.Errorf("allowed by %d nodes, refused by %d, want 0 and 3", ok, refused)
	}
	// A Cluster publishes in its own way.
	publish := "spublish"
	if !redistest.ServerVersion(t).AtLeast(7, 0) {
		publish = "publish"
	}
	onAll("ACL", "SETUSER", "locks", "-"+publish)
	for _, f := range examine(c, 1, "--name", "app:doctor") {
		if f.Check == "commands" && (f.Level != "fail" || f.Remedy != "allow +"+publish) {
			t.Errorf("without %s: %+v", publish, f)
		}
	}
	onAll("ACL", "SETUSER", "locks", "+"+publish)
	withoutSlots(t, c, onAll)
}

// withoutSlots checks what doctor says when the client may not ask for the slots of a Cluster, and so
// takes the node for a single server. Which of two commands it asks with depends on the version of the
// server.
func withoutSlots(t *testing.T, c cli, onAll func(args ...string)) {
	t.Helper()
	version := redistest.ServerVersion(t)
	refused, want := "-cluster|slots", "allow +cluster|slots"
	switch {
	case !version.AtLeast(7, 0): // it takes back no subcommands, and does not know SHARDS
		refused, want = "-cluster", "allow +cluster|shards +cluster|slots"
	case version.Valkey || version.AtLeast(8, 0):
		refused, want = "-cluster|shards", "allow +cluster|shards"
	}
	onAll("ACL", "SETUSER", "locks", refused)
	all := examine(c, 1, "--name", "app:doctor")
	i := slices.IndexFunc(all, func(f finding) bool { return f.Check == "session" })
	if i < 0 || !strings.Contains(all[i].Finding, "NOPERM") || !strings.Contains(all[i].Finding, "a node of a Cluster") || all[i].Remedy != want {
		t.Errorf("after %s: %+v", refused, all)
	}
	if r := c.run("show", "app:x"); !strings.Contains(r.err, "+cluster|slots") || !strings.Contains(r.err, "+cluster|shards") {
		t.Errorf("after %s show says %s", refused, r.err)
	}
}

// sorted returns the words in alphabetical order.
func sorted(words string) []string { return slices.Sorted(slices.Values(strings.Fields(words))) }

// A restricted is a user with the documented permissions, some of which are taken from it.
type restricted struct {
	t   *testing.T
	s   *redistest.Server
	c   cli
	acl []string // what is documented
}

func newRestricted(t *testing.T) *restricted {
	u := &restricted{t: t, s: redistest.Real(t), acl: slices.Concat(redistest.DocumentedACL(t), block(t, "+scan +type +hscan"))}
	must(t, u.s.Do(t, u.acl...).Error())
	u.c = cli{t, "redis://locks:secret@" + u.s.Addr}
	return u
}

// set changes what the user may do.
func (u *restricted) set(rules ...string) {
	u.t.Helper()
	must(u.t, u.s.Do(u.t, append([]string{"ACL", "SETUSER", "locks"}, rules...)...).Error())
}

// commands returns what doctor says of the commands in scripts. Nothing is called unavailable that is
// not allowed.
func (u *restricted) commands(code int) (level, text, remedy string) {
	u.t.Helper()
	for _, f := range examine(u.c, code, "--name", "app:doctor") {
		if strings.Contains(f.Finding, "unavailable") || strings.Contains(f.Finding, "no answer") {
			u.t.Errorf("what is refused does not answer: %+v", f)
		}
		if f.Check == "commands" {
			level, text, remedy = f.Level, f.Finding, f.Remedy
		}
	}
	return level, text, remedy
}

// Commands of the documented ACL that scripts run are missed by name.
func TestDoctorNamesTheCommandsThatAreRefused(t *testing.T) {
	t.Parallel()
	u := newRestricted(t)
	if level, text, _ := u.commands(0); level != "ok" {
		t.Errorf("with all that is documented: %s %s", level, text)
	}
	// One that no trial needs, and two of whose refusal a script does not say the name. SADD is tried
	// without SET too, and then its set does not stay.
	for _, names := range []string{"hkeys", "hset", "sadd", "publish", "set", "set +sadd", "srem +set", "srem +del +set", "srem +pexpire +set"} {
		each := strings.Split(names, " +")
		for _, name := range each {
			u.set("-" + name)
		}
		level, text, remedy := u.commands(1)
		for _, name := range each {
			if !strings.Contains(text, strings.ToUpper(name)) {
				t.Errorf("without +%s: %s", names, text)
			}
			u.set("+" + name)
		}
		if want := sorted("+" + names); level != "fail" || !slices.Equal(sorted(strings.TrimPrefix(remedy, "allow ")), want) {
			t.Errorf("without %v: %s, %s", want, level, remedy)
		}
	}
	// That a channel is refused is not said of the command.
	u.set("resetchannels")
	if level, text, _ := u.commands(1); level != "ok" {
		t.Errorf("without channels: %s %s", level, text)
	}
}

// Without any of the commands that scripts run, doctor names all of them, and leaves no key that does
// not end, although it may delete none.
func TestDoctorNamesAllCommandsThatAreRefused(t *testing.T) {
	t.Parallel()
	u := newRestricted(t)
	u.set("-set", "-srem", "-del", "-pexpire")
	if _, text, _ := u.commands(1); !strings.Contains(text, "SADD was not tried") {
		t.Errorf("with SADD, and nothing that undoes it: %s", text)
	}
	from, last := slices.Index(u.acl, "+exists"), slices.Index(u.acl, "+zremrangebyscore")
	all := append(slices.Clone(u.acl[from:last+1]), "+publish")
	for _, word := range append(all, "+ping") {
		u.set("-" + word[1:])
	}
	_, _, remedy := u.commands(1)
	if got := sorted(strings.TrimPrefix(remedy, "allow ")); !slices.Equal(got, sorted(strings.Join(all, " "))) {
		t.Errorf("without any of them doctor says %q; want all of %q", remedy, all)
	}
	u.c.want(70, "show", "app:x")
	for _, key := range u.s.Keys(t) {
		if ttl, err := u.s.Do(t, "PTTL", key).AsInt64(); err != nil || ttl < 0 && ttl != -2 {
			t.Errorf("doctor leaves %q for ever", key)
		}
	}
}

// With Sentinel the permissions that are documented suffice too. Without ROLE no client connects,
// which is a finding and not only an error.
func TestDoctorFindsThatRoleIsRefused(t *testing.T) {
	t.Parallel()
	s := redistest.NewSentinel(t)
	master := s.Node(s.MasterAddr(t))
	must(t, master.Do(t, slices.Concat(redistest.DocumentedACL(t), block(t, "+scan +type +hscan"))...).Error())
	c := cli{t, "redis://locks:secret@" + s.SentinelAddrs[0] + "?master_set=" + s.MasterName}
	for _, f := range examine(c, 0, "--name", "app:doctor") {
		if f.Level == "fail" || strings.Contains(f.Finding, "NOPERM") {
			t.Errorf("%+v", f)
		}
	}
	must(t, master.Do(t, strings.Fields("ACL SETUSER locks -role")...).Error())
	all := examine(c, 1, "--name", "app:doctor")
	if len(all) != 1 || all[0].Check != "connect" || all[0].Level != "fail" ||
		!strings.Contains(all[0].Finding, "'role'") || !strings.Contains(all[0].Remedy, "permissions") {
		t.Errorf("without ROLE doctor finds %+v", all)
	}
}
