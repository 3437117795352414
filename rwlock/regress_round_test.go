package rwlock_test

import (
	"strconv"
	"testing"
	"time"

	"relock/internal/test/redistest"
	"relock/rwlock"
)

// The ends of readers' leases are whole milliseconds. They are rounded up: a lease of few
// milliseconds is trusted to nearly its end, and a writer must not come in before that.
func TestReadLeasesAreRoundedUp(t *testing.T) {
	src := rwlock.ScriptSources()
	type step = []string
	const forEver = "9999999999999"
	readsTwice := []step{{"HSET", "lock", "mode", "read", "me", "2"}, {"ZADD", "R", forEver, "me"}, {"SADD", "H", "ra", "rb"}, {"PEXPIRE", "lock", "60000"}}
	readsInWrite := []step{{"HSET", "lock", "mode", "write", "me", "1", "me:write", "1"}, {"SADD", "H", "ra", "wb"}, {"PEXPIRE", "lock", "60000"}}
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		clock := func() time.Time {
			now, err := s.Do(t, "TIME").AsStrSlice()
			must(t, err)
			sec, _ := strconv.ParseInt(now[0], 10, 64)
			usec, _ := strconv.ParseInt(now[1], 10, 64)
			return time.Unix(sec, usec*1000)
		}
		for _, c := range []struct {
			name  string
			setup []step
			run   step
		}{
			{"acquire", nil, step{src["acquire_read"], "5", "lock", "R", "W", "T1", "H", "me", "7001", "a"}},
			{"extend", readsTwice, step{src["extend"], "4", "lock", "R", "H", "T1", "me", "7000", "r", "0", "0", "e", "0", "a", "b"}},
			{"renew", readsTwice[:1], step{src["renew"], "4", "lock", "R", "H", "T1", "7000", "r4:me"}},
			{"unlock of another", readsTwice, step{src["release_read"], "5", "lock", "R", "W", "T1", "H", "me", "ch", "PUBLISH", "1", "s:", "0", "7000", "0", "1", "1", "b", "a"}},
			{"downgrade", readsInWrite, step{src["release_write"], "5", "lock", "R", "W", "T1", "H", "me", "ch", "PUBLISH", "1", "s:", "0", "7000", "1", "1", "0", "", "", "0", "0", "b", "a"}},
			{"downgrade of a long read", append(readsInWrite, step{"ZADD", "R", forEver, "me"}), step{src["release_write"], "5", "lock", "R", "W", "T1", "H", "me", "ch", "PUBLISH", "1", "s:", "0", "7000", "1", "1", "0", "", "", "0", "0", "b", "a"}},
		} {
			for range 20 {
				s.FlushAll(t)
				for _, cmd := range c.setup {
					must(t, s.Do(t, cmd...).Error())
				}
				began := clock()
				must(t, s.Do(t, append(step{"EVAL"}, c.run...)...).Error())
				f, err := s.Do(t, "ZSCORE", "R", "me").AsFloat64()
				must(t, err)
				if end := time.UnixMilli(int64(f)); end.Before(began.Add(7*time.Second)) || end.After(clock().Add(7*time.Second+2*time.Millisecond)) {
					t.Fatalf("%s: a lease of 7s ends %v after it began", c.name, end.Sub(began))
				}
			}
		}
	})
}
