package semaphore_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/locktrace"
	"relock/rlock"
)

// inLine returns the entries of the line of a semaphore or a counter, in their order.
func inLine(t testing.TB, s *redistest.Server, name string) (entries []string) {
	t.Helper()
	members, err := s.Do(t, "ZRANGE", "relock_line1:{"+name+"}", "0", "-1").AsStrSlice()
	must(t, err)
	for _, m := range members {
		if strings.Contains("PQC", m[:1]) {
			entries = append(entries, m)
		}
	}
	return entries
}

// awaitInLine waits until so many sessions stand in the line.
func awaitInLine(t testing.TB, s *redistest.Server, name string, n int) {
	t.Helper()
	redistest.Eventually(t, 10*time.Second, "the sessions to stand in the line", func() bool { return len(inLine(t, s, name)) == n })
}

// listeners returns how many connections listen to the channel of a semaphore or a counter.
func listeners(t testing.TB, s *redistest.Server, name string) int64 {
	t.Helper()
	r, err := s.Do(t, "PUBSUB", "NUMSUB", channel(name)).ToArray()
	must(t, err)
	n, err := r[1].AsInt64()
	must(t, err)
	return n
}

// reportLine logs how a line stands when a test has failed.
func reportLine(t testing.TB, s *redistest.Server, name string) {
	if !t.Failed() {
		return
	}
	for _, cmd := range [][]string{{"TIME"}, {"GET", name}, {"ZRANGE", zset(name), "0", "-1", "WITHSCORES"},
		{"ZRANGE", "relock_line1:{" + name + "}", "0", "-1", "WITHSCORES"}, {"PUBSUB", "NUMSUB", channel(name)}} {
		reply, err := s.Do(t, cmd...).ToAny()
		t.Logf("%q: %q, %v", cmd, reply, err)
	}
}

// awaitListener waits until the first of the line listens, and the line says so. As long as it does not, the listener is taken
// for a client outside the line, and a release may leave what comes free to that.
func awaitListener(t testing.TB, s *redistest.Server, name string) {
	t.Helper()
	redistest.Eventually(t, 10*time.Second, "the first to listen", func() bool {
		members, err := s.Do(t, "ZRANGE", "relock_line1:{"+name+"}", "0", "-1").AsStrSlice()
		must(t, err)
		return listeners(t, s, name) == 1 && slices.ContainsFunc(members, func(m string) bool { return m[0] == 'l' })
	})
}

// pass lets a moment pass in a bubble, where two callers would come at the same time, and stand in any order.
func pass(t testing.TB, d time.Duration) {
	t.Helper()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-t.Context().Done():
	}
}

// A liner is a session that tells how often it was refused.
type liner struct {
	t       testing.TB
	s       *redistest.Server
	ses     *rlock.Session
	refused chan struct{}
}

// newLiner makes one whose looks are out of reach: only messages wake its callers.
func newLiner(t testing.TB, s *redistest.Server) *liner {
	l := &liner{t: t, s: s, refused: make(chan struct{}, 1000)}
	cfg := slow()
	cfg.Trace = &rlock.Trace{
		Attempt: func(e locktrace.Attempt) {
			if e.Err == nil && !e.Granted {
				l.refused <- struct{}{}
			}
		},
	}
	l.ses = dial(t, s, cfg)
	return l
}

// isRefused waits until Redis has refused the session so often more.
func (l *liner) isRefused(n int) {
	l.t.Helper()
	for range n {
		locktest.Get(l.t, l.refused, 10*time.Second, "a refusal")
	}
}
