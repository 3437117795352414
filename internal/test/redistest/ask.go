package redistest

import (
	"slices"
	"strconv"
	"strings"
	"testing"
)

// FlushAll removes all keys.
func (s *Server) FlushAll(tb testing.TB) {
	tb.Helper()
	if err := s.Do(tb, "FLUSHALL").Error(); err != nil {
		tb.Fatalf("FLUSHALL: %v", err)
	}
}

// Keys returns all keys, sorted, but for those that [LockKeys] leaves out.
func (s *Server) Keys(tb testing.TB) []string {
	tb.Helper()
	return LockKeys(s.sorted(tb, "KEYS", "*"))
}

// LockKeys returns keys without the records of sessions, and the marks that a ForceUnlock leaves for minutes.
func LockKeys(keys []string) []string {
	return slices.DeleteFunc(keys, func(key string) bool {
		return strings.HasPrefix(key, "relock_session:") || strings.HasPrefix(key, "relock_forced:")
	})
}

// Channels returns the channels that somebody is subscribed to, sorted. Shard
// channels and patterns are not among them.
func (s *Server) Channels(tb testing.TB) []string {
	tb.Helper()
	return s.sorted(tb, "PUBSUB", "CHANNELS")
}

func (s *Server) sorted(tb testing.TB, args ...string) []string {
	tb.Helper()
	list, err := s.Do(tb, args...).AsStrSlice()
	if err != nil {
		tb.Fatalf("%s: %v", strings.Join(args, " "), err)
	}
	slices.Sort(list)
	return list
}

// Commands returns how often each command was called since the start or the
// last ResetStats, by name in lower case: "evalsha", or "config|get" from Redis 7.0 on. It works on
// a real server only. Commands inside scripts count too, and so do those of
// clients setting up a connection.
func (s *Server) Commands(tb testing.TB) map[string]int {
	tb.Helper()
	text, err := s.Do(tb, "INFO", "commandstats").ToString()
	if err != nil {
		tb.Fatalf("INFO commandstats: %v", err)
	}
	calls := map[string]int{}
	for line := range strings.Lines(text) {
		rest, ok := strings.CutPrefix(line, "cmdstat_")
		if !ok {
			continue
		}
		name, stats, _ := strings.Cut(rest, ":calls=")
		number, _, _ := strings.Cut(stats, ",")
		if calls[name], err = strconv.Atoi(number); err != nil {
			tb.Fatalf("INFO commandstats: %q: %v", line, err)
		}
	}
	return calls
}

// ResetStats sets the counts of Commands to zero, on a real server only.
func (s *Server) ResetStats(tb testing.TB) {
	tb.Helper()
	if err := s.Do(tb, "CONFIG", "RESETSTAT").Error(); err != nil {
		tb.Fatalf("CONFIG RESETSTAT: %v", err)
	}
}
