package locktest

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"relock/internal/test/redistest"
	"relock/rlock"
)

// Field returns a field of a hash, as what a lock counts for an owner: "" for nothing.
func Field(t testing.TB, s *redistest.Server, key, field string) string {
	t.Helper()
	n, err := s.Do(t, "HGET", key, field).ToString()
	if err != nil && !rueidis.IsRedisNil(err) {
		t.Fatalf("HGET: %v", err)
	}
	return n
}

// Owners returns how many owners stand in the lock.
func Owners(t *testing.T, s *redistest.Server, name string) int64 {
	t.Helper()
	n, err := s.Do(t, "HLEN", name).AsInt64()
	Must(t, err)
	return n
}

// Free reports whether Redis knows of no owner of a lock.
func Free(t *testing.T, s *redistest.Server, name string) bool {
	t.Helper()
	return Owners(t, s, name) == 0
}

// OfSession reports whether an owner was made by ses.
func OfSession(ses *rlock.Session, owner string) bool { return strings.HasPrefix(owner, ses.ID()+":") }

// AwaitInLine waits until a session stands in the line of a lock.
func AwaitInLine(t *testing.T, s *redistest.Server, name string, ses *rlock.Session) {
	t.Helper()
	redistest.Eventually(t, 5*time.Second, "the session to stand in the line", func() bool {
		members, err := s.Do(t, "ZRANGE", LineOf(name), "0", "-1").AsStrSlice()
		return err == nil && slices.ContainsFunc(members, func(m string) bool {
			return strings.Contains("gzan", m[:1]) && strings.Contains(m, ses.ID())
		})
	})
}

// AwaitListens waits until the first of a lock's line has said there that it listens.
func AwaitListens(t *testing.T, s *redistest.Server, name string) {
	t.Helper()
	redistest.Eventually(t, 5*time.Second, "the first of the line to say that it listens", func() bool {
		n, err := s.Do(t, "ZCOUNT", LineOf(name), "5900000000000000", "6000000000000000").ToInt64()
		Must(t, err)
		return n == 1
	})
}

// LineOf is the key of the line of a lock.
func LineOf(name string) string { return "relock_line1:{" + name + "}" }

// NameOn returns a fresh name whose slot the node at addr serves.
func NameOn(t testing.TB, c *redistest.Cluster, addr string) string {
	t.Helper()
	for {
		if name := redistest.Name(t); c.SlotOwner(t, redistest.Slot(name)) == addr {
			return name
		}
	}
}

// NothingLeft checks that no key, hold, waiter or subscription is left.
func NothingLeft(t *testing.T, s *redistest.Server, sessions ...*rlock.Session) {
	t.Helper()
	redistest.Eventually(t, 10*time.Second, "everything to be given back", func() bool {
		for _, ses := range sessions {
			if held, asking, locks, scheduled, active := Books(ses); held+asking+locks+scheduled+active != 0 {
				return false
			}
		}
		for _, c := range s.Channels(t) {
			if !strings.HasPrefix(c, "relock_session:") {
				return false
			}
		}
		return len(s.Keys(t)) == 0
	})
}

// PTTL returns how long a key has to live.
func PTTL(t *testing.T, s *redistest.Server, key string) time.Duration {
	t.Helper()
	ms, err := s.Do(t, "PTTL", key).AsInt64()
	Must(t, err)
	return time.Duration(ms) * time.Millisecond
}

// Channel is the channel of a lock whose name has no braces.
func Channel(name string) string { return "redisson_lock__channel:{" + name + "}" }

// Subscribed waits until somebody listens for releases, beside the sessions' own channels.
func Subscribed(t *testing.T, s *redistest.Server, sessions int) {
	t.Helper()
	redistest.Eventually(t, 5*time.Second, "a subscription", func() bool { return len(s.Channels(t)) > sessions })
}
