package mutex_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"relock/internal/mutex"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
)

// A server that takes no writes has said nothing about the fencing token: what it says reaches
// the caller as it is, and no key is changed.
func TestFencedAcquirePassesOnWhatTheServerSays(t *testing.T) {
	s := redistest.Real(t)
	do := func(cmds ...string) {
		t.Helper()
		for _, cmd := range setup(cmds...) {
			locktest.Must(t, s.Do(t, cmd...).Error())
		}
	}
	for _, c := range []struct {
		want     string // a regular expression
		from, to []string
	}{
		{"NOREPLICAS", args("CONFIG SET min-replicas-to-write 1"), args("CONFIG SET min-replicas-to-write 0")},
		{"OOM", args("CONFIG SET maxmemory 1"), args("CONFIG SET maxmemory 0")},
		{"READONLY", args("REPLICAOF 127.0.0.1 1"), args("REPLICAOF NO ONE")},
		// The words before Redis 7.2, and those of Redis 7.2 and of Valkey.
		{"can't run this command|no permissions to run", args("ACL SETUSER default -incrby"), args("ACL SETUSER default +incrby")},
	} {
		for what, a := range map[string][]string{"private": args("me", "30000", "", "1", "0"), "named": args("me", "30000", "", "1", "0", "a")} {
			keys := token
			if what == "named" {
				keys = all
			}
			do(c.from...)
			err := s.Do(t, append(append([]string{"EVAL", mutex.ScriptSources()["acquire"], strconv.Itoa(len(keys))}, keys...), a...)...).Error()
			do(c.to...)
			if err == nil || !regexp.MustCompile(c.want).MatchString(err.Error()) || strings.Contains(err.Error(), "WRONGTYPE") {
				t.Errorf("%s: %v, want %s", what, err, c.want)
			}
			if left := s.Keys(t); len(left) != 0 {
				t.Errorf("%s: %s left %q", what, c.want, left)
			}
		}
	}
}

// The same where Redis cannot save and takes no writes for that.
func TestFencedAcquirePassesMISCONFOn(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "saves")
	locktest.Must(t, os.Mkdir(dir, 0o755))
	s := redistest.Real(t, "--dir", dir, "--save", "3600", "1000000")
	locktest.Must(t, os.Remove(dir)) // the server's folder is gone
	if err := s.Do(t, "SAVE").Error(); err == nil {
		t.Fatal("the server could save")
	}
	locktest.Must(t, s.Do(t, "BGSAVE").Error())
	redistest.Eventually(t, 10*time.Second, "the save in the background to fail", func() bool {
		info, err := s.Do(t, "INFO", "persistence").ToString()
		return err == nil && strings.Contains(info, "rdb_last_bgsave_status:err")
	})
	err := s.Do(t, append(append([]string{"EVAL", mutex.ScriptSources()["acquire"], "2"}, token...), draw...)...).Error()
	if err == nil || !strings.Contains(err.Error(), "MISCONF") {
		t.Errorf("acquire: %v, want MISCONF", err)
	}
}
