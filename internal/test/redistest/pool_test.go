package redistest_test

import (
	"strings"
	"testing"

	"relock/internal/test/redistest"
)

// use runs fn as a test with a server of its own, and returns which process that was.
func use(t *testing.T, fn func(t *testing.T, s *redistest.Server)) (run string) {
	t.Helper()
	t.Run("use", func(t *testing.T) {
		s := redistest.Real(t)
		info := do(t, s, "INFO", "server")
		_, run, _ = strings.Cut(info, "run_id:")
		run, _, _ = strings.Cut(run, "\r")
		fn(t, s)
	})
	return run
}

func do(t *testing.T, s *redistest.Server, args ...string) string {
	t.Helper()
	text, err := s.Do(t, args...).ToString()
	if err != nil {
		t.Fatalf("%s: %v", strings.Join(args, " "), err)
	}
	return text
}

// What a test has done to a server is not to be seen by the next one.
func TestAServerIsUsedAgainAsNew(t *testing.T) {
	const script = "return 'known'"
	var sha string
	first := use(t, func(t *testing.T, s *redistest.Server) {
		mustDo(t, s.Client(t), "SET", "k", "v")
		sha = do(t, s, "SCRIPT", "LOAD", script)
		do(t, s, "CLIENT", "PAUSE", "3600000", "WRITE")
		for _, most := range []string{"1", "0"} {
			do(t, s, "CONFIG", "SET", "maxmemory", most)
		}
	})
	again := use(t, func(t *testing.T, s *redistest.Server) {
		if n := s.Commands(t); n["set"] != 0 || n["flushall"] != 0 {
			t.Errorf("commands %v", n)
		}
		if err := s.Do(t, "EVALSHA", sha, "0").Error(); err == nil || !strings.HasPrefix(err.Error(), "NOSCRIPT") {
			t.Errorf("EVALSHA: %v", err)
		}
		if keys := s.Keys(t); len(keys) != 0 {
			t.Errorf("keys %q", keys)
		}
		if list := do(t, s, "CLIENT", "LIST"); strings.Count(list, "\n") != 1 {
			t.Errorf("clients besides this one: %s", list)
		}
		do(t, s, "SET", "k", "v")
	})
	if again != first {
		t.Error("the second test had another server")
	}
}

// A server that cannot be made as it was when it was new is not used again.
func TestAChangedServerIsNotUsedAgain(t *testing.T) {
	redistest.SkipShort(t)
	for what, change := range map[string]func(t, outer *testing.T, s *redistest.Server){
		"configuration": func(t, _ *testing.T, s *redistest.Server) { do(t, s, "CONFIG", "SET", "maxmemory", "1gb") },
		"users":         func(t, _ *testing.T, s *redistest.Server) { do(t, s, "ACL", "SETUSER", "somebody", "on") },
		"rights":        func(t, _ *testing.T, s *redistest.Server) { do(t, s, "ACL", "SETUSER", "default", "-flushall") },
		"a replica":     func(t, _ *testing.T, s *redistest.Server) { do(t, s, "REPLICAOF", "127.0.0.1", "1") },
		"files":         func(t, _ *testing.T, s *redistest.Server) { do(t, s, "SAVE") },
		"killed":        func(_, _ *testing.T, s *redistest.Server) { s.Kill() },
		"restarted":     func(t, _ *testing.T, s *redistest.Server) { s.Restart(t) },
		"paused":        func(_, _ *testing.T, s *redistest.Server) { s.Pause() },
		"a client left": func(_, outer *testing.T, s *redistest.Server) { s.Client(outer) },
	} {
		t.Run(what, func(outer *testing.T) {
			changed := use(outer, func(t *testing.T, s *redistest.Server) { change(t, outer, s) })
			if next := use(outer, func(*testing.T, *redistest.Server) {}); next == changed {
				outer.Error("the next test has the same server")
			}
		})
	}
}
