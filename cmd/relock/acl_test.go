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
	onAll(slices.Concat(redistest.DocumentedACL(t), block(t, "+scan +type"))...)
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
}

// With Sentinel the permissions that are documented suffice too. Without ROLE no client connects,
// which is a finding and not only an error.
func TestDoctorFindsThatRoleIsRefused(t *testing.T) {
	t.Parallel()
	s := redistest.NewSentinel(t)
	master := s.Node(s.MasterAddr(t))
	must(t, master.Do(t, slices.Concat(redistest.DocumentedACL(t), block(t, "+scan +type"))...).Error())
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
