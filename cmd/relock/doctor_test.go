package main_test

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"relock/internal/test/redistest"
)

type finding struct {
	Level   string `json:"level"`
	Check   string `json:"check"`
	Node    string `json:"node"`
	Finding string `json:"finding"`
	Remedy  string `json:"remedy"`
}

// examine calls doctor, and returns its findings. Whatever is not ok has a remedy.
func examine(c cli, code int, args ...string) []finding {
	c.tb.Helper()
	r := c.want(code, append([]string{"doctor", "--json"}, args...)...)
	var all []finding
	must(c.tb, json.Unmarshal([]byte(r.out), &all))
	for _, f := range all {
		if (f.Level == "ok") != (f.Remedy == "") || f.Finding == "" {
			c.tb.Errorf("a finding without a remedy, or a remedy without need: %+v", f)
		}
	}
	return all
}

// level returns the level of a check, and the finding.
func level(tb testing.TB, all []finding, check string) (level, text string) {
	tb.Helper()
	i := slices.IndexFunc(all, func(f finding) bool { return f.Check == check })
	if i < 0 {
		tb.Fatalf("no %s in %+v", check, all)
	}
	return all[i].Level, all[i].Finding
}

var median = regexp.MustCompile(`^a round trip takes (\S+) \(median of 50\), at most \S+$`)

// wantLatency wants a warning of round trips that take more than 20 ms, as they do on a busy machine,
// and none of others.
func wantLatency(tb testing.TB, all []finding) {
	tb.Helper()
	l, text := level(tb, all, "latency")
	m := median.FindStringSubmatch(text)
	if m == nil {
		tb.Fatalf("latency: %s %s", l, text)
	}
	took, err := time.ParseDuration(m[1])
	must(tb, err)
	if slow := took > 20*time.Millisecond; slow != (l == "warn") || slow == (l == "ok") {
		tb.Errorf("latency: %s %s", l, text)
	}
}

// A Redis as it should be passes all checks, and doctor leaves nothing there.
func TestDoctorOfAHealthyRedis(t *testing.T) {
	t.Parallel()
	s := redistest.Real(t, "--appendonly", "yes")
	c := newCLI(t, s)
	all := examine(c, 0)
	wantLatency(t, all)
	for _, check := range []string{
		"version", "role", "eviction", "persistence", "connections", "user",
		"commands", "command line", "mutex", "fairlock", "rwlock", "semaphore", "messages", "label",
	} {
		if l, text := level(t, all, check); l != "ok" {
			t.Errorf("%s: %s %s", check, l, text)
		}
	}
	if _, text := level(t, all, "version"); !strings.HasPrefix(text, "Redis ") && !strings.HasPrefix(text, "Valkey ") {
		t.Errorf("the version is %q", text)
	}
	for _, key := range s.Keys(t) {
		if ttl, err := s.Do(t, "PTTL", key).AsInt64(); err != nil || ttl < 0 {
			t.Errorf("doctor leaves %q for ever", key)
		}
	}
	text := c.want(0, "doctor").out
	if !strings.Contains(text, "LEVEL") || !strings.Contains(text, "PING") && !strings.Contains(text, "a round trip takes") {
		t.Errorf("doctor says %s", text)
	}
	c.want(64, "doctor", "x")
	c.want(64, "doctor", "--name", "")
	c.want(69, "doctor", "--redis", "redis://127.0.0.1:1")
}

// What is wrong with the settings is found.
func TestDoctorFindsBadSettings(t *testing.T) {
	t.Parallel()
	s := redistest.Real(t)
	c := newCLI(t, s)
	set := func(name, value string) { t.Helper(); must(t, s.Do(t, "CONFIG", "SET", name, value).Error()) }
	wants := func(code int, check, want, says string) {
		t.Helper()
		if l, text := level(t, examine(c, code), check); l != want || !strings.Contains(text, says) {
			t.Errorf("%s: %s %s, want %s %s", check, l, text, want, says)
		}
	}
	wants(0, "persistence", "warn", "no AOF")
	wants(0, "eviction", "ok", "noeviction")
	set("maxmemory-policy", "volatile-lru")
	wants(0, "eviction", "ok", "no maxmemory")
	set("maxmemory", "100mb")
	wants(0, "eviction", "warn", "volatile-lru")
	// Something to evict: then locks may have been evicted too.
	must(t, s.Do(t, "EVAL", `for i = 1, 5000 do redis.call('SET', 'k' .. i, string.rep('x', 1000), 'PX', 100000) end return 1`, "0").Error())
	set("maxmemory", "4mb")
	eventually(t, "an eviction", func() bool {
		must(t, s.Do(t, "SET", "more", "x", "PX", "1000").Error())
		text, err := s.Do(t, "INFO", "stats").ToString()
		must(t, err)
		return !strings.Contains(text, "evicted_keys:0\r")
	})
	wants(1, "eviction", "fail", "were evicted")
	s.FlushAll(t)
	set("maxmemory", "0")
	must(t, s.Do(t, "CONFIG", "RESETSTAT").Error())
	set("maxmemory-policy", "noeviction")
	set("maxmemory", "1")
	wants(1, "mutex", "fail", "OOM")
	set("maxmemory", "0")
	must(t, s.Do(t, "REPLICAOF", "127.0.0.1", "1").Error())
	wants(1, "role", "fail", "replica")
}

// What a user is not allowed to do is found, and what is missing named.
func TestDoctorFindsMissingPermissions(t *testing.T) {
	t.Parallel()
	s := redistest.Real(t)
	must(t, s.Do(t, strings.Fields("ACL SETUSER poor on >pw ~app:* &* +@all -info -subscribe")...).Error())
	must(t, s.Do(t, strings.Fields("ACL SETUSER rich on >pw ~app:* ~{app:* ~redisson_lock_token:* ~relock_* &* +@all")...).Error())
	poor, rich := cli{t, "redis://poor:pw@" + s.Addr}, cli{t, "redis://rich:pw@" + s.Addr}
	all := examine(poor, 1, "--name", "app:doctor")
	wantLatency(t, all)
	for check, want := range map[string]string{"info": "warn", "fairlock": "fail", "messages": "warn", "label": "warn", "user": "ok"} {
		if l, text := level(t, all, check); l != want {
			t.Errorf("%s: %s %s, want %s", check, l, text, want)
		}
	}
	// That the names of doctor's own locks are not allowed is one finding: locks were not tried.
	all = examine(rich, 1)
	if l, text := level(t, all, "name"); l != "fail" || !strings.Contains(text, "relock-doctor") {
		t.Errorf("a name that is not allowed: %s %s", l, text)
	}
	if slices.ContainsFunc(all, func(f finding) bool { return f.Check == "mutex" }) {
		t.Errorf("a lock was tried whose name is not allowed: %+v", all)
	}
	for _, f := range examine(rich, 0, "--name", "app:doctor") {
		if f.Level == "fail" {
			t.Errorf("a user with the permissions: %+v", f)
		}
	}
	// A script is refused without a code, and that is a missing permission too.
	must(t, s.Do(t, strings.Fields("ACL SETUSER scripts on >pw ~* &* +@all -incrby")...).Error())
	all = examine(cli{t, "redis://scripts:pw@" + s.Addr}, 1)
	if i := slices.IndexFunc(all, func(f finding) bool { return f.Check == "mutex" }); i < 0 || !strings.Contains(all[i].Remedy, "permissions") {
		t.Errorf("a command in a script that is not allowed: %+v", all)
	}
	if r := poor.want(70, "run", "other", "--", "true"); !strings.Contains(r.err, "NOPERM") {
		t.Errorf("a name that is not allowed: %s", r.err)
	}
	// Refused in the probe of a session, which a session calls a bad config.
	for user, rules := range map[string]string{"mute": "&* -publish", "deaf": "resetchannels &relock_session:*", "still": "&* -hincrby"} {
		must(t, s.Do(t, strings.Fields("ACL SETUSER "+user+" on >pw ~* +@all "+rules)...).Error())
		if r := (cli{t, "redis://" + user + ":pw@" + s.Addr}).run("run", "x", "--", "true"); r.code != 70 {
			t.Errorf("with %s: exit code %d, %s", rules, r.code, r.err)
		}
	}
	if r := (cli{t, "redis://poor:wrong@" + s.Addr}).run("doctor"); r.code != 70 || !strings.Contains(r.err, "WRONGPASS") {
		t.Errorf("a wrong password: exit code %d, %s", r.code, r.err)
	}
}

// doctor says what an embedded Redis without INFO cannot tell, and tries the locks all the
// same.
func TestDoctorOfMiniredis(t *testing.T) {
	t.Parallel()
	all := examine(newCLI(t, redistest.Mini(t)), 0)
	wantLatency(t, all)
	for _, check := range []string{"mutex", "fairlock", "rwlock", "semaphore"} {
		if l, text := level(t, all, check); l != "ok" {
			t.Errorf("%s: %s %s", check, l, text)
		}
	}
}
