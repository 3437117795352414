package rwlock_test

import (
	"strconv"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rwlock"
)

// A moveStep is a script, and how long the lock and its reader may live after it.
type moveStep struct {
	what, script string
	keys, args   []string
	lock, reader int64 // the most that they may live, in ms, and 4000 ms more than the least
}

// gone is what PTTL says of a key that is not there.
const gone int64 = -2

var extR, extW = locktest.Keys("lock", "R", "H", "T1"), locktest.Keys("lock", "R", "H")

// moveEnds are the arguments of a release that leaves keep ms to what stays.
func moveEnds(keep, owner, other, ends, stay string, ids ...string) []string {
	return ending(owner, keep, other, ends, stay, ids...)
}

// readersMove shortens and extends what readers hold.
func readersMove() []moveStep {
	return []moveStep{
		{"a named reader", "acquire_read", acqR, args("me", "60001", "a"), 60001, 60001},
		{"the same elsewhere", "acquire_read", acqR, args("me", "90001", "else"), 90001, 90001},
		{"a cut of what is another's", "extend", extR, args("me", "10000", "r", "0", "0", "e", "0", "a"), 90001, 90001},
		{"one more", "acquire_read", acqR, args("me", "60001", "b", "1", "0"), 90001, 90001},
		{"an unlock that would cut another's", "release_read", relR, moveEnds("10000", "0", "0", "1", "1", "b", "a"), 90001, 90001},
		{"an unlock that leaves it alone", "release_read", relR, moveEnds("70000", "0", "0", "1", "1", "else", "a"), 70001, 70001},
		{"a cut of its own", "extend", extR, args("me", "20000", "r", "0", "0", "e", "0", "a"), 20001, 20001},
		{"the last unlock", "release_read", relR, end, gone, gone},

		{"a private reader", "acquire_read", acqR, args("me", "60001", "a"), 60001, 60001},
		{"one more that came late", "acquire_read", acqR, args("me", "60001", "b", "1", "0"), 60001, 60001},
		{"a cut", "extend", extR, args("me", "20000", "r", "1", "0", "e", "0"), 20001, 20001},
		{"an extension", "extend", extR, args("me", "80000", "r", "1", "0", "e", "0"), 80001, 80001},
		{"one that only moves away", "extend", extR, args("me", "20000", "r", "1", "1", "e", "0"), 80001, 80001},
		{"an unlock", "release_read", relR, moveEnds("30000", "1", "0", "1", "0", "b"), 30001, 30001},
		{"all of it ends", "release_read", relR, endAll, gone, gone},
	}
}

// writersMove does so with writers.
func writersMove() []moveStep {
	return []moveStep{
		{"a named writer", "acquire_write", acqW, args("me", "60000", "a", "0", ""), 60000, gone},
		{"the same elsewhere", "acquire_write", acqW, args("me", "90000", "else", "0", ""), 90000, gone},
		{"a cut of what is another's", "extend", extW, args("me", "10000", "w", "0", "0", "e", "0", "a"), 90000, gone},
		{"an unlock that leaves it alone", "release_write", relW, endingW(moveEnds("70000", "0", "0", "1", "1", "else", "a"), "", ""), 70000, gone},
		{"a cut of its own", "extend", extW, args("me", "20000", "w", "0", "0", "e", "0", "a"), 20000, gone},
		{"the last unlock", "release_write", relW, endingW(end, "", ""), gone, gone},

		{"a private writer", "acquire_write", acqW, args("me", "60000", "a", "0", ""), 60000, gone},
		{"one more that came late", "acquire_write", acqW, args("me", "60000", "b", "0", "", "1", "0"), 60000, gone},
		{"a cut", "extend", extW, args("me", "20000", "w", "1", "0", "e", "0"), 20000, gone},
		{"an extension", "extend", extW, args("me", "80000", "w", "1", "0", "e", "0"), 80000, gone},
		{"an unlock", "release_write", relW, endingW(moveEnds("50000", "1", "0", "1", "0", "b"), "", ""), 50000, gone},
		{"a read inside", "acquire_read", acqR, args("me", "30001", "c", "0", "1"), 50000, 30001},
		{"the write side ends", "release_write", relW, endingW(ending("2", "40000", "1", "0", "0"), "", ""), 40001, 40001},
		{"the read side ends", "release_read", relR, endAll, gone, gone},
	}
}

// fixedLeasesMove does so while late commands are on their way.
func fixedLeasesMove() []moveStep {
	return []moveStep{
		{"a reader with a fixed lease", "acquire_read", acqR, args("me", "60001", "a"), 60001, 60001},
		{"one more", "acquire_read", acqR, args("me", "60001", "v", "1", "0"), 60001, 60001},
		{"two commands are void", "extend", extR, args("me", "80000", "r", "1", "0", "f", "2", "e", "v"), 80001, 80001},
		{"the late extension", "extend", extR, args("me", "10000", "r", "1", "0", "e", "0"), 80001, 80001},
		{"the late unlock", "release_read", relR, moveEnds("10000", "1", "0", "1", "0", "v"), 80001, 80001},
		{"the last unlock", "release_read", relR, endAll, gone, gone},
		{"a writer with a fixed lease", "acquire_write", acqW, args("me", "60000", "a", "0", ""), 60000, gone},
		{"one more", "acquire_write", acqW, args("me", "60000", "v", "0", "", "1", "0"), 60000, gone},
		{"two commands are void", "extend", extW, args("me", "80000", "w", "1", "0", "f", "2", "e", "v"), 80000, gone},
		{"the late extension", "extend", extW, args("me", "10000", "w", "1", "0", "e", "0"), 80000, gone},
		{"the late unlock", "release_write", relW, endingW(moveEnds("10000", "1", "0", "1", "0", "v"), "", ""), 80000, gone},
		{"the last unlock", "release_write", relW, endingW(endAll, "", ""), gone, gone},
	}
}

// What one session shortens must not reach what another holds under the same name, nor other
// readers; of a private owner all is one session's. The lock lives as long as what is in it.
func TestScriptsMoveEnds(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		for _, steps := range [][]moveStep{readersMove(), fixedLeasesMove(), writersMove()} {
			for _, step := range steps {
				step.run(t, s)
			}
		}
	})
}

func (step moveStep) run(t *testing.T, s *redistest.Server) {
	t.Helper()
	cmd := append([]string{"EVAL", rwlock.ScriptSources()[step.script], strconv.Itoa(len(step.keys))}, step.keys...)
	if err := s.Do(t, append(cmd, step.args...)...).Error(); err != nil {
		t.Fatalf("%s: %v", step.what, err)
	}
	ms, err := s.Do(t, "PTTL", "lock").AsInt64()
	if err != nil || ms > step.lock || ms < step.lock-4000 {
		t.Errorf("after %s the lock lives %d ms, %v; want %d", step.what, ms, err, step.lock)
	}
	ms = gone
	if score, err := s.Do(t, "ZSCORE", "R", "me").AsFloat64(); err == nil {
		ms = int64(score) - time.Now().UnixMilli()
	}
	if ms > step.reader || ms < step.reader-4000 {
		t.Errorf("after %s the reader lives %d ms, want %d", step.what, ms, step.reader)
	}
}

// Redisson's renewal sets the TTL of a lock down to its own lease. A question, or a renewal, of a reader
// of ours with a longer one sets it right again, and cuts nothing of what other readers have.
func TestAQuestionKeepsTheLongerLease(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		moveStep{"a reader", "acquire_read", acqR, args("me", "60001", "a"), 60001, 60001}.run(t, s)
		moveStep{"another", "acquire_read", acqR, args("you", "9001", "b"), 60001, 60001}.run(t, s)
		for _, step := range []moveStep{
			{"a question of the other one", "renew", extR, args("0", "r4:you"), 9001, 60001},
			{"a renewal of the other one", "renew", extR, args("20000", "r4:you"), 20001, 60001},
			{"a question", "renew", extR, args("0", "r4:me"), 60001, 60001},
		} {
			locktest.Must(t, s.Do(t, "PEXPIRE", "lock", "1000").Error())
			step.run(t, s)
			if ms, err := s.Do(t, "PTTL", "R").AsInt64(); err != nil || ms < 56000 {
				t.Errorf("after %s what is known of the readers lives %d ms, %v", step.what, ms, err)
			}
		}
	})
}
