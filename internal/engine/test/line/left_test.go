package line_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// allEntries returns how many entries of a session stand in all lines.
func allEntries(t *testing.T, s *redistest.Server, ses *rlock.Session) (n int) {
	t.Helper()
	for _, key := range s.Keys(t) {
		if !strings.HasPrefix(key, "relock_line") {
			continue
		}
		members, err := s.Do(t, "ZRANGE", key, "0", "-1").AsStrSlice()
		must(t, err)
		for _, m := range members {
			if strings.Contains("gzanfheidPQCUVWNR", m[:1]) && strings.Contains(m, ses.ID()) {
				n++
			}
		}
	}
	return n
}

// The wait of a caller ends while its session is cut off from Redis, for longer than a lease. Its entry does not end with
// that: it would be given the lock, or called, when its turn comes, as long as other callers of the session wait. It is
// taken out when the session is heard again.
func TestAnEntryThatWasLeftInAnOutageLongerThanALeaseIsTakenOut(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		lease := s.Slowed(300 * time.Millisecond)
		log := new(locktest.Journal)
		holder := dial(t, s, rlock.Config{})
		ses, p := locktest.DialProxy(t, s, rlock.Config{Lease: lease, Logger: log.Logger()})
		ctx, name := within(t, time.Minute), redistest.Name(t)
		waits := locktest.AsyncKinds(ses, name)
		var ends []func()
		for _, k := range locktest.AsyncKinds(holder, name) {
			_, end, err := k.Lock(ctx)
			must(t, err)
			ends = append(ends, end)
		}
		waiting, leave := context.WithCancel(ctx)
		left := make(chan error, len(waits))
		for _, k := range waits {
			go func() {
				_, _, err := k.Lock(waiting)
				left <- err
			}()
		}
		redistest.Eventually(t, 10*time.Second, "an entry for each kind", func() bool { return allEntries(t, s, ses) == len(waits) })
		p.Refuse(true)
		leave()
		for range waits {
			if err := locktest.Get(t, left, 10*time.Second, "the end of a wait"); err == nil {
				t.Fatal("a caller got what others hold")
			}
		}
		redistest.Eventually(t, 20*time.Second, "the releases to be given up", func() bool { return log.Count("never confirmed") == len(waits) })
		if n := allEntries(t, s, ses); n != len(waits) {
			t.Fatalf("%d entries are left, want %d", n, len(waits))
		}
		p.Refuse(false)
		redistest.Eventually(t, 10*time.Second, "the entries to be taken out", func() bool { return allEntries(t, s, ses) == 0 })
		for _, end := range ends {
			end()
		}
	})
}
