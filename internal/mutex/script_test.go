package mutex_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"relock/internal/mutex"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
)

func TestScriptsAreSafeToRunTwice(t *testing.T) {
	locktest.RunScripts(t, timeless(), allCases(), byName)
}

// A server that takes no writes has said nothing about a lock (11.1).
func TestScriptsPassErrorsOn(t *testing.T) {
	locktest.RefuseWrites(t, timeless(), allCases())
}

// While the slot of a lock moves a script is refused, or does what it does elsewhere.
func TestScriptsWhileTheirSlotMoves(t *testing.T) {
	t.Parallel()
	locktest.WhileASlotMoves(t, timeless(), allCases(), byName)
}

func TestScriptHeaders(t *testing.T) { locktest.CheckHeaders(t, mutex.ScriptSources()) }

// eval runs a script by hand.
func eval(t testing.TB, s *redistest.Server, script string, keys []string, args ...string) string {
	t.Helper()
	cmd := append([]string{"EVAL", mutex.ScriptSources()[script], strconv.Itoa(len(keys))}, keys...)
	m, err := s.Do(t, append(cmd, args...)...).ToAny()
	locktest.Must(t, err)
	return fmt.Sprint(m)
}

// A leaseStep is a script, or a command, and between how many ms the TTL of the lock is then.
type leaseStep struct {
	what, script string
	keys, args   []string
	from, to     int64
}

// private are the arguments of a release of some holds of a private owner.
func private(keep string, more ...string) []string {
	return append(args("me", "ch", "PUBLISH", "1", "", "1", "0", "", "", "0", "0", "", "", keep, "1"), more...)
}

var leaseSteps = []leaseStep{
	{"outer", "acquire", lock, args("me", "60000"), 59000, 60000},
	{"a resend with more", "acquire", lock, args("me", "70000"), 69000, 70000},
	{"a shorter inner one", "acquire", ids, args("me", "5000", "", "0", "1", "a"), 58000, 70000},
	{"a longer inner one", "acquire", ids, args("me", "90000", "", "0", "2", "b"), 89000, 90000},
	{"a renewal", "renew", ids, args("30000", "me", ""), 88000, 90000},
	{"a question", "renew", lock, args("0", "me"), 88000, 90000},
	{"unlock of what was not there", "release", ids, private("50000", "1", "x"), 88000, 90000},
	{"unlock of the longer one", "release", ids, private("60000", "1", "b"), 58000, 60000},
	{"unlock that deserves more", "release", ids, private("99000", "1", "a"), 57000, 60000},
	{"an extension closer", "extend", ids, args("me", "2000", "1", "0", "e", "0", "0"), 1000, 2000},
	{"an extension", "extend", ids, args("me", "60000", "1", "0", "e", "0", "0"), 58000, 60000},
	{"an extension that only moves away", "extend", ids, args("me", "1000", "1", "1", "e", "0", "0"), 57000, 60000},
	{"a key that lost its TTL", "", lock, args("PERSIST", "lock"), -1, -1},
	{"a question about that", "renew", lock, args("0", "me"), -1, -1},
	{"a resend where the TTL is lost", "acquire", lock, args("me", "60000"), 58000, 60000},
	{"a late extension, void", "extend", ids, args("me", "90000", "1", "0", "f", "1", "0", "e"), 88000, 90000},
	{"when it comes", "extend", ids, args("me", "1000", "1", "0", "e", "0", "0"), 88000, 90000},
	{"one more hold", "acquire", ids, args("me", "1000", "", "0", "1", "v"), 88000, 90000},
	{"another, and an unlock is void", "extend", ids, args("me", "80000", "1", "0", "g", "1", "0", "v"), 78000, 80000},
	{"when that comes", "release", ids, private("1000", "1", "v"), 77000, 80000},
	{"the end of that life", "release", ids, endAll, -2, -2},
	{"a named owner", "acquire", ids, args("me", "60000", "", "0", "0", "a"), 58000, 60000},
	{"it is in elsewhere", "acquire", ids, args("me", "90000", "", "0", "0", "else"), 88000, 90000},
	{"an extension that would cut another's", "extend", ids, args("me", "1000", "0", "0", "e", "0", "0", "a"), 88000, 90000},
	{"one more, further away", "acquire", ids, args("me", "30000", "", "0", "1", "b"), 88000, 90000},
	{"an unlock that would cut another's", "release", ids, ends("50000", "1", "b", "a"), 87000, 90000},
	{"an extension further away", "extend", ids, args("me", "99000", "0", "0", "e", "0", "0", "a"), 98000, 99000},
	{"an unlock elsewhere", "release", ids, ends("70000", "1", "else", "a"), 69000, 70000},
	{"an extension of its own", "extend", ids, args("me", "20000", "0", "0", "e", "0", "0", "a"), 19000, 20000},
	{"it is left, for longer", "leave", ids, args("me", "50000", "0", "1", "0", "ch", "PUBLISH", "", "a"), 49000, 50000},
	{"it is left", "leave", ids, args("me", "20000", "0", "1", "0", "ch", "PUBLISH", "", "a"), 19000, 20000},
	{"it is in elsewhere", "acquire", ids, args("me", "60000", "", "0", "0", "else"), 58000, 60000},
	{"what another holds too is left", "leave", ids, args("me", "20000", "0", "1", "0", "ch", "PUBLISH", "", "a"), 57000, 60000},
	{"that ends", "release", ids, ends("20000", "1", "else", "a"), 19000, 20000},
	{"an id of an earlier life beside it", "", lock, args("HSET", "lock", "me", "2"), 18000, 20000},
	{"a count that is another's", "extend", ids, args("me", "1000", "0", "0", "e", "0", "0", "a", "old"), 18000, 20000},
}

// A lease belongs to the acquisition: a nested shorter one does not cut the outer, and
// releasing an inner hold never lengthens what is left (R24). No lock is ever without
// a TTL. The end comes closer only where all that is counted is this session's.
func TestScriptsKeepTheLongerLease(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		for _, step := range leaseSteps {
			if step.script == "" {
				locktest.Must(t, s.Do(t, step.args...).Error())
			} else {
				eval(t, s, step.script, step.keys, step.args...)
			}
			ms, err := s.Do(t, "PTTL", "lock").AsInt64()
			locktest.Must(t, err)
			if ms < step.from || ms > step.to {
				t.Errorf("after %s the TTL is %d ms, want %d to %d", step.what, ms, step.from, step.to)
			}
			there, err := s.Do(t, "EXISTS", "ids").AsInt64()
			locktest.Must(t, err)
			if along, err := s.Do(t, "PTTL", "ids").AsInt64(); err != nil || there == 1 && ms >= 0 && (along < 0 || along > 99000) {
				t.Errorf("after %s the TTL of the ids is %d ms, %v", step.what, along, err)
			}
		}
	})
}

// A fencing token with an end outlives the lock by that, and its end never moves closer.
func TestTokenOutlivesTheLock(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		for _, step := range []struct {
			what, script string
			keys, args   []string
			want         int64 // s
		}{
			{"the first hold", "acquire", token, args("me", "60000", "", "1", "0", "", "5000"), 65},
			{"a renewal", "renew_fenced", token, args("90000", "=me", "5000"), 95},
			{"a question", "renew_fenced", token, args("0", "=me", "20000"), 110},
			{"a renewal with ids", "renew_fenced", all, args("100000", "=me", "", "20000"), 120},
			{"a longer inner hold", "acquire", all, args("me", "200000", "", "0", "1", "a", "20000"), 220},
			{"a shorter one", "acquire", all, args("me", "1000", "", "0", "2", "b", "20000"), 220},
			{"an extension", "extend", all, args("me", "300000", "1", "0", "e", "0", "20000"), 320},
			{"an extension without ids", "extend", token, args("me", "400000", "1", "1", "", "0", "20000"), 420},
			{"an extension closer", "extend", all, args("me", "10000", "1", "0", "f", "0", "20000"), 420},
			{"a token that another process has made", "", nil, args("PERSIST", "token"), -1},
			{"a renewal of that", "renew_fenced", token, args("30000", "=me", "5000"), 35},
			{"one that has no end here", "renew", lock, args("90000", "me"), 35},
			{"the end of that life", "release", ids, endAll, 35},
			{"the next", "acquire", token, args("you", "60000", "", "1", "0", "", "5000"), 65},
			{"a lock that is gone", "renew_fenced", token, args("90000", "=me", "5000"), 65},
		} {
			if step.script == "" {
				locktest.Must(t, s.Do(t, step.args...).Error())
			} else {
				eval(t, s, step.script, step.keys, step.args...)
			}
			ms, err := s.Do(t, "PTTL", "token").AsInt64()
			locktest.Must(t, err)
			if ms > 0 {
				ms = (ms + 999) / 1000
			}
			if ms != step.want {
				t.Errorf("after %s the token lives for %d s, want %d", step.what, ms, step.want)
			}
		}
	})
}

// A release tells how many have heard it, and wakes them only if the lock is free.
func TestReleasesTellReceivers(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		heard := locktest.Hears(t, s, "ch")
		for _, c := range []struct {
			script string
			state  []string
			args   []string
			want   string
			tells  bool
		}{
			{"release", args(held1), end, "1", true},
			{"release", args(held1), args("me", "ch", "PUBLISH", "0", ""), "-1", true},
			{"release", args(other), end, "[0 0 -1]", false},
			{"release", args("HSET lock me 1 other 1"), end, "1", true},
			{"release", args(held1, "SADD ids a"), one, "[0 1 1]", true},
			{"release", args(held2, "SADD ids a b"), one, "[1 1 -1]", false},
		} {
			s.FlushAll(t)
			for _, cmd := range setup(c.state...) {
				locktest.Must(t, s.Do(t, cmd...).Error())
			}
			if got := eval(t, s, c.script, ids, c.args...); got != c.want {
				t.Errorf("%s on %v replied %s, want %s", c.script, c.state, got, c.want)
			}
			locktest.Must(t, s.Do(t, "PUBLISH", "ch", "end").Error())
			m := locktest.Get(t, heard, 10*time.Second, "a message")
			if tells := m == "0"; tells != c.tells {
				t.Errorf("%s on %v published %q", c.script, c.state, m)
			} else if tells {
				locktest.Get(t, heard, 10*time.Second, "the end")
			}
		}
	})
}
