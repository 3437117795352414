package semaphore_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
)

func TestScriptsAreSafeToRunTwice(t *testing.T) {
	locktest.RunScripts(t, src, append(semaphoreCases, counterCases...))
}

// A server that takes no writes has said nothing about permits (11.1).
func TestScriptsPassErrorsOn(t *testing.T) {
	locktest.RefuseWrites(t, src, append(semaphoreCases, counterCases...))
}

// While the slot of permits moves a script is refused, or does what it does elsewhere. Rest of an
// acquisition is the short reply: expired permits are back already, and no others are taken.
func TestScriptsWhileTheirSlotMoves(t *testing.T) {
	t.Parallel()
	locktest.WhileASlotMoves(t, src, append(semaphoreCases, counterCases...))
}

// A release tells how many have heard it.
func TestReleasesTellReceivers(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		locktest.Hears(t, s, "ch")
		for script, c := range map[string]struct {
			setup      [][]string
			keys, args []string
		}{
			"release": {has(1, inf, "me:1", "me:2"), both, put2},
			"untake":  {set("SET c 3", "HSET r 3 7:2"), undoing, back},
		} {
			for _, cmd := range c.setup {
				must(t, s.Do(t, cmd...).Error())
			}
			if got := eval(t, s, script, c.keys, c.args...); got != "[0 1 1]" && got != "1" {
				t.Errorf("%s replied %s; one hears it", script, got)
			}
		}
	})
}

func TestScriptHeaders(t *testing.T) { locktest.CheckHeaders(t, src) }

// eval runs a script of lua/ by hand.
func eval(t testing.TB, s *redistest.Server, script string, keys []string, args ...string) string {
	t.Helper()
	cmd := append([]string{"EVAL", src[script], strconv.Itoa(len(keys))}, append(append([]string(nil), keys...), args...)...)
	m, err := s.Do(t, cmd...).ToAny()
	must(t, err)
	return fmt.Sprint(m)
}

// left returns for how many ms a permit will live, by this machine's clock: the servers
// of these tests have no other.
func left(t testing.TB, s *redistest.Server, id string) int64 {
	t.Helper()
	text, err := s.Do(t, "ZSCORE", "z", id).ToString()
	must(t, err)
	score, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatalf("the expiry is not an integer: %v", err)
	}
	return score - time.Now().UnixMilli()
}

// A lease is never cut short by a resend, a renewal or a question; expiries are integers,
// which Redisson parses as such (1.16.7).
func TestScriptsNeverShortenALease(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		for _, step := range []struct {
			what, script string
			args         []string
			from, to     int64
		}{
			{"acquired", "acquire", args("60000", "5", "ch", "PUBLISH", "0", "1", "", "me:1", "me:2"), 50000, 60001},
			{"sent again with less", "acquire", args("5000", "5", "ch", "PUBLISH", "0", "1", "", "me:1", "me:2"), 50000, 60001},
			{"sent again with more", "acquire", args("90000", "5", "ch", "PUBLISH", "0", "1", "", "me:1", "me:2"), 80000, 90001},
			{"renewed with less", "renew", args("30000", "2", "0", "me:1", "me:2"), 80000, 90001},
			{"asked for", "renew", args("0", "2", "0", "me:1", "me:2"), 80000, 90001},
			{"renewed with more", "renew", args("120000", "2", "0", "me:1", "me:2"), 110000, 120001},
			{"extended by less", "extend", extend("30000", "0", ""), 110000, 120001},
			{"extended by more", "extend", extend("150000", "0", ""), 140000, 150001},
			{"brought closer", "extend", extend("30000", "1", ""), 20000, 30001},
		} {
			eval(t, s, step.script, both, step.args...)
			for _, id := range []string{"me:1", "me:2"} {
				if ms := left(t, s, id); ms < step.from || ms > step.to {
					t.Errorf("%s: %s lives %d ms, want %d to %d", step.what, id, ms, step.from, step.to)
				}
			}
		}
		// An answer says when to look again: to the caller that is refused, and for the next in the queue
		// to one that is let in.
		for i, owner := range []string{"x", "y"} {
			var status, ms, b, c, free, limit int64
			reply := eval(t, s, "acquire", both, "5000", "5", "ch", "PUBLISH", "0", "1", "", owner+":1", owner+":2", owner+":3")
			if i == 0 {
				_, err := fmt.Sscanf(reply, "-%d", &ms)
				must(t, err)
				status, limit = 1, -1
			} else {
				_, err := fmt.Sscanf(reply, "[%d %d %d %d %d %d]", &status, &ms, &b, &c, &free, &limit)
				must(t, err)
			}
			if status != int64(1-i) || ms < 1 || ms > 5001 || free != 0 || limit != int64([]int{-1, 5}[i]) {
				t.Errorf("%s: %s; the next expires in 5000 ms at most", owner, reply)
			}
		}
		// A semaphore with an end takes its permits along, and keeps it with a new limit.
		must(t, s.Do(t, "PEXPIRE", "s", "70000").Error())
		eval(t, s, "release", both, "ch", "PUBLISH", "1", "0", "", "", "me", "0", "0", "x:1", "x:2", "x:3")
		eval(t, s, "acquire", both, "5000", "5", "ch", "PUBLISH", "0", "1", "", "y:1")
		eval(t, s, "set_limit", limitKeys, "9", "ch", "PUBLISH", "7", "60000", "0", "1", "")
		for _, key := range both {
			ttl, err := s.Do(t, "PTTL", key).AsInt64()
			must(t, err)
			if ttl <= 0 || ttl > 70000 {
				t.Errorf("PTTL %s = %d, want up to 70000", key, ttl)
			}
		}
	})
}

// 9 000 permits that expired at once come back in one script, whichever runs first (R25).
func TestManyExpiredAtOnce(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		for script, call := range map[string][]string{
			"acquire":   args("30000", "9000", "ch", "PUBLISH", "0", "1", "", "me:1"),
			"state":     args("9000", "ch", "PUBLISH", "1", ""),
			"set_limit": args("9000", "ch", "PUBLISH", "7", "60000", "0", "1", ""),
		} {
			s.FlushAll(t)
			must(t, s.Do(t, "SET", "s", "0").Error())
			zadd := []string{"ZADD", "z"}
			for i := range 9000 {
				zadd = append(zadd, "5", fmt.Sprint("dead:", i))
			}
			must(t, s.Do(t, zadd...).Error())
			eval(t, s, script, limitKeys, call...)
			if got := value(t, s, "s"); got != "9000" && got != "8999" {
				t.Errorf("%s left %s free", script, got)
			}
		}
	})
}

// Messages are integers, never below 0, and sent only when there is something to tell
// (1.11, 1.12, 1.16).
func TestMessages(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		heard := locktest.Hears(t, s, "ch")
		for _, c := range []struct {
			what, script string
			setup        [][]string
			keys, args   []string
			want         string // "" for none
		}{
			{"a new semaphore has some left", "acquire", nil, both, get2, "3"},
			{"a new semaphore has none left", "acquire", nil, both, args("30000", "2", "ch", "PUBLISH", "0", "1", "", "me:1", "me:2"), ""},
			{"acquired", "acquire", has(5, inf), both, get2, ""},
			{"refused", "acquire", has(1, inf, "x:1"), both, get2, ""},
			{"expired ones leave some", "acquire", has(0, "5", "x:1", "x:2", "x:3"), both, get2, "1"},
			{"expired ones are too few", "acquire", append(has(0, "5", "x:1"), strings.Fields("ZADD z "+inf+" x:2")), both, get2, "1"},
			{"expired ones and too high a request", "acquire", has(0, "5", "x:1"), both, get2, "1"},
			{"released", "release", has(1, inf, "me:1", "me:2"), both, put2, "3"},
			{"released, and none is free", "release", has(-2, inf, "me:1", "me:2"), both, put2, ""},
			{"released, and only a session that polls waits", "release", append(has(0, inf, "me:1", "me:2"), []string{"ZADD", "line", "-7000000000000001", "bB"}), withLine, frees, "2"},
			{"nothing released", "release", has(1, inf, "x:1"), both, put2, ""},
			{"asked", "state", has(1, inf, "x:1"), stateKeys, args("5", "ch", "PUBLISH", "1", ""), ""},
			{"asked, and some expired", "state", has(1, "5", "x:1"), stateKeys, args("5", "ch", "PUBLISH", "1", ""), "2"},
			{"limit up", "set_limit", has(0, inf, "x:1"), limitKeys, args("5", "ch", "PUBLISH", "7", "60000", "0", "1", ""), "4"},
			{"the same limit", "set_limit", has(4, inf, "x:1"), limitKeys, args("5", "ch", "PUBLISH", "7", "60000", "0", "1", ""), ""},
			{"the limit is lowered to what was free before one expired", "set_limit", has(2, "5", "x:1"), limitKeys, args("2", "ch", "PUBLISH", "7", "60000", "0", "1", ""), "2"},
			{"limit far down", "set_limit", has(4, inf, "x:1"), limitKeys, args("0", "ch", "PUBLISH", "7", "60000", "0", "1", ""), "0"},
			{"deleted", "delete", has(2, inf, "x:1"), limitKeys, args("7", "60000", "ch", "PUBLISH", ""), "3"},
			{"counter taken from", "take", set("SET c 5"), req, once("2", ""), ""},
			{"counter given back", "untake", set("SET c 5", "HSET r 3 7:2"), undoing, back, "7"},
			{"counter up", "add", set("SET c 5"), req, once("2", "ch", "PUBLISH", "1", ""), "7"},
			{"counter far down", "add", set("SET c 5"), req, once("-7", "ch", "PUBLISH", "1", ""), "0"},
			{"counter up twice", "add", set("SET c 5", "HSET r 3 7:1"), req, once("2", "ch", "PUBLISH", "1", ""), ""},
			{"counter drained", "drain", set("SET c 5"), req, once(), ""},
			{"counter set", "try_set", nil, req, once("2", "ch", "PUBLISH", "1", ""), "2"},
			{"counter not set", "try_set", set("SET c 5"), req, once("2", "ch", "PUBLISH", "1", ""), ""},
		} {
			s.FlushAll(t)
			for _, cmd := range c.setup {
				must(t, s.Do(t, cmd...).Error())
			}
			eval(t, s, c.script, c.keys, c.args...)
			must(t, s.Do(t, "PUBLISH", "ch", "end").Error())
			var all []string
			for m := ""; m != "end"; {
				if m = locktest.Get(t, heard, 10*time.Second, c.what); m != "end" {
					all = append(all, m)
				}
			}
			if got := strings.Join(all, " "); got != c.want {
				t.Errorf("%s: published %q, want %q", c.what, got, c.want)
			}
		}
	})
}
