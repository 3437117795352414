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

// inf is Redisson's expiry of a permit without a lease, and far away for all others.
const inf = "922337203685477"

var (
	run  = locktest.Case
	set  = locktest.Setup
	keys = locktest.Keys
	args = locktest.Args
	both = locktest.Keys("s", "z")

	stateKeys = locktest.Keys("s", "z", "c")
	limitKeys = locktest.Keys("s", "z", "c", "l")
)

// has returns what sets up a semaphore with free permits, and taken ones with an expiry.
func has(free int, expiry string, ids ...string) [][]string {
	all := set(fmt.Sprint("SET s ", free))
	for _, id := range ids {
		all = append(all, []string{"ZADD", "z", expiry, id})
	}
	return all
}

var (
	get2 = args("30000", "5", "ch", "PUBLISH", "0", "1", "", "me:1", "me:2")
	put2 = args("ch", "PUBLISH", "1", "0", "", "", "me", "0", "0", "me:1", "me:2")
)

// extend returns the arguments of an extension of two permits, with its id and those of commands
// that it replaces.
func extend(lease, closer, id string, void ...string) []string {
	return append([]string{lease, closer, "0", id, "2", "me:1", "me:2"}, void...)
}

var semaphoreCases = []locktest.ScriptCase{
	run("a new semaphore", "acquire", nil, both, get2, "[1 30001 0 1 3 -1]", "[1 30001 0 0 3 -1]", "s=3 z<me:1 me:2>"),
	run("from what is free", "acquire", has(4, inf, "x:1"), both, get2, "[1 30001 0 1 2 -1]", "[1 30001 0 0 2 -1]", "s=2 z<me:1 me:2 x:1>"),
	run("and it is not asked when the next expires", "acquire", has(4, inf, "x:1"), both, args("30000", "5", "ch", "PUBLISH", "0", "0", "", "me:1", "me:2"), "2", "[1 30001 0 0 2 -1]", "s=2 z<me:1 me:2 x:1>"),
	run("the last ones, and others are taken", "acquire", has(2, inf, "x:1"), both, get2, "-30001", "[1 30001 0 0 0 -1]", "s=0 z<me:1 me:2 x:1>"),
	run("for a very long time", "acquire", has(4, inf, "x:1"), both, args("9000000000", "5", "ch", "PUBLISH", "0", "1", "", "me:1", "me:2"), "[1 9000000001 0 1 2 -1]", "[1 9000000001 0 0 2 -1]", "s=2 z<me:1 me:2 x:1>"),
	run("the last ones", "acquire", has(2, inf), both, get2, "0", "[1 30001 0 0 0 -1]", "s=0 z<me:1 me:2>"),
	run("no others are taken", "acquire", has(9, inf), both, get2, "7", "[1 30001 0 0 7 -1]", "s=7 z<me:1 me:2>"),
	run("too few are free", "acquire", has(1, inf, "x:1"), both, get2, "[0 -1 0 0 1 2]", "[0 -1 0 0 1 2]", "s=1 z<x:1>"),
	run("none is free", "acquire", has(0, inf, "x:1", "x:2"), both, get2, "[0 -1 0 0 0 2]", "[0 -1 0 0 0 2]", "s=0 z<x:1 x:2>"),
	run("less than none", "acquire", has(-1, inf, "x:1", "x:2", "x:3"), both, get2, "[0 -1 0 0 -1 2]", "[0 -1 0 0 -1 2]", "s=-1 z<x:1 x:2 x:3>"),
	run("more than the limit", "acquire", has(1, inf), both, get2, "[-2 1 0 0]", "[-2 1 0 0]", "s=1"),
	run("more than a limit that was lowered", "acquire", has(-1, inf, "x:1", "x:2"), both, get2, "[-2 1 0 0]", "[-2 1 0 0]", "s=-1 z<x:1 x:2>"),
	run("more than a new limit", "acquire", nil, both, args("30000", "1", "ch", "PUBLISH", "0", "1", "", "me:1", "me:2"), "[-2 1 0 0]", "[-2 1 0 0]", ""),
	run("granted before the limit was lowered", "acquire", has(-1, inf, "me:1", "me:2"), both, get2, "[1 -1 0 0 -1 -1]", "[1 -1 0 0 -1 -1]", "s=-1 z<me:1 me:2>"),
	run("all expired ones come back", "acquire", has(0, "5", "x:1", "x:2", "x:3"), both, get2, "[1 30001 0 1 1 -1]", "[1 30001 0 0 1 -1]", "s=1 z<me:1 me:2>").Rest("1"),
	run("enough are free, and expired ones come back", "acquire", has(4, "5", "x:1"), both, get2, "[1 30001 0 1 3 -1]", "[1 30001 0 0 3 -1]", "s=3 z<me:1 me:2>").Rest("3"),
	run("expired ones come back for the next", "acquire", has(0, "5", "x:1"), both, args("1", "5", "ch", "PUBLISH", "0", "1", "", "me:1", "me:2"), "[-2 1 0 0]", "[-2 1 0 0]", "s=1"),
	run("its own that expired are taken anew", "acquire", has(0, "5", "me:1", "me:2"), both, get2, "[1 30001 0 1 0 -1]", "[1 30001 0 0 0 -1]", "s=0 z<me:1 me:2>").Rest("0"),
	run("what is there of it is not taken twice", "acquire", has(4, inf, "me:1"), both, get2, "[1 30001 0 1 3 -1]", "[1 30001 0 0 3 -1]", "s=3 z<me:2 me:1>"),
	run("the rest of it is taken from the last", "acquire", has(1, inf, "me:1"), both, get2, "[0 -1 0 0 1 2]", "[0 -1 0 0 1 2]", "s=1 z<me:1>"),
	run("the counter is gone, its permits count", "acquire", set("ZADD z "+inf+" x:1"), both, get2, "[1 30001 0 1 2 -1]", "[1 30001 0 0 2 -1]", "s=2 z<me:1 me:2 x:1>"),
	run("the counter is gone, too few are left", "acquire", set("ZADD z "+inf+" x:1 "+inf+" x:2 "+inf+" x:3 "+inf+" x:4"), both, get2, "[0 -1 0 0 1 5]", "[0 -1 0 0 1 5]", "s=1 z<x:1 x:2 x:3 x:4>"),
	run("the permits are gone", "acquire", has(0, inf), both, get2, "[-2 0 0 0]", "[-2 0 0 0]", "s=0"),
	run("another type", "acquire", set("HSET s a 1"), both, get2, "WRONGTYPE", "WRONGTYPE", "s{a:1}"),
	run("another type of permits", "acquire", set("SET s 5", "SET z x"), both, get2, "WRONGTYPE", "WRONGTYPE", "s=5 z=x"),
	run("no integer", "acquire", set("SET s 1.5", "ZADD z 5 x:1"), both, get2, "WRONGTYPE", "WRONGTYPE", "s=1.5 z<x:1>"),
	run("no integer, and enough", "acquire", set("SET s 3.5"), both, get2, "WRONGTYPE", "WRONGTYPE", "s=3.5"),

	run("they come back", "release", has(1, inf, "me:1", "me:2", "x:1"), both, put2, "0", "[0 0 -1]", "s=3 z<x:1>"),
	run("below the limit that was lowered", "release", has(-5, inf, "me:1", "me:2"), both, put2, "-1", "[0 0 -1]", "s=-3"),
	run("the count may be unknown", "release", has(1, inf, "me:1", "me:2"), both, args("ch", "PUBLISH", "0", "0", "", "", "me", "0", "0", "me:1", "me:2"), "-1", "[0 0 -1]", "s=3"),
	run("expired ones that nobody has got", "release", has(1, "5", "me:1", "me:2"), both, put2, "0", "[0 0 -1]", "s=3"),
	run("those that are left", "release", has(1, inf, "me:1"), both, put2, "[0 0 0]", "[0 0 -1]", "s=2"),
	run("nor another's", "release", has(1, inf, "x:1", "x:2"), both, put2, "[0 0 -1]", "[0 0 -1]", "s=1 z<x:1 x:2>"),
	run("those of a deleted one", "release", set("ZADD z "+inf+" me:1 "+inf+" me:2"), both, put2, "[0 0 -1]", "[0 0 -1]", ""),
	run("nothing is there", "release", nil, both, put2, "[0 0 -1]", "[0 0 -1]", ""),
	run("another type", "release", set("HSET s a 1", "ZADD z "+inf+" me:1 "+inf+" me:2"), both, put2, "[0 0 -1]", "[0 0 -1]", "s{a:1} z<me:1 me:2>"),
	run("another type of permits", "release", set("SET s 5", "SET z x"), both, put2, "[0 0 -1]", "[0 0 -1]", "s=5 z=x"),

	run("each for itself", "renew", has(1, inf, "me:1", "me:2", "x:1"), keys("s", "z", "s", "z", "none", "z", "s", "none", "z", "z", "s", "s"),
		args("30000", "2", "0", "me:1", "me:2", "2", "0", "x:1", "x:2", "1", "0", "me:1", "1", "0", "me:1", "1", "0", "me:1", "1", "0", "me:1"),
		"[1 1 1 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0]", "[1 1 1 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0]", "s=1 z<me:1 me:2 x:1>"),
	run("expired ones are lost", "renew", has(1, "5", "me:1"), both, args("30000", "1", "0", "me:1"), "[0 0 0]", "[0 0 0]", "s=1 z<me:1>"),

	run("they get a new end", "extend", has(1, inf, "me:1", "me:2"), both, extend("90000", "1", ""), "1", "1", "s=1 z<me:1 me:2>"),
	run("some are gone", "extend", has(1, inf, "me:1"), both, extend("90000", "1", ""), "0", "0", "s=1 z<me:1>"),
	run("expired", "extend", has(1, "5", "me:1", "me:2"), both, extend("90000", "1", ""), "0", "0", "s=1 z<me:1 me:2>"),
	run("deleted", "extend", set("ZADD z "+inf+" me:1 "+inf+" me:2"), both, extend("90000", "1", ""), "0", "0", "z<me:1 me:2>"),
	run("another type of permits", "extend", set("SET s 5", "SET z x"), both, extend("90000", "1", ""), "0", "0", "s=5 z=x"),
	run("one command", "extend", has(1, inf, "me:1", "me:2"), keys("s", "z", "m"), extend("90000", "1", "a"), "1", "1", "s=1 z<me:1 me:2>"),
	run("in the place of others", "extend", has(1, inf, "me:1", "me:2"), keys("s", "z", "m"), extend("90000", "1", "a", "b", "c"), "1", "1", "m(xb xc) s=1 z<me:1 me:2>"),
	run("one that was replaced", "extend", append(has(1, inf, "me:1", "me:2"), strings.Fields("SADD m xa")), keys("s", "z", "m"), extend("90000", "1", "a"), "1", "1", "m(xa) s=1 z<me:1 me:2>"),

	run("they come back", "release_by_id", has(1, inf, "a", "b", "x"), both, args("ch", "PUBLISH", "0", "1", "", "a", "b"), "1", "0", "s=3 z<x>"),
	run("all or none", "release_by_id", has(1, inf, "a"), both, args("ch", "PUBLISH", "0", "1", "", "a", "b"), "0", "0", "s=1 z<a>"),
	run("expired", "release_by_id", has(1, "5", "a"), both, args("ch", "PUBLISH", "0", "1", "", "a"), "0", "0", "s=1 z<a>"),
	run("deleted", "release_by_id", set("ZADD z "+inf+" a"), both, args("ch", "PUBLISH", "0", "1", "", "a"), "0", "0", "z<a>"),
	run("another type", "release_by_id", set("HSET s a 1"), both, args("ch", "PUBLISH", "0", "1", "", "a"), "WRONGTYPE", "WRONGTYPE", "s{a:1}"),
	run("another type of permits", "release_by_id", set("SET s 5", "SET z x"), both, args("ch", "PUBLISH", "0", "1", "", "a"), "WRONGTYPE", "WRONGTYPE", "s=5 z=x"),
	run("no integer", "release_by_id", set("SET s x", "ZADD z "+inf+" a"), both, args("ch", "PUBLISH", "0", "1", "", "a"), "WRONGTYPE", "WRONGTYPE", "s=x z<a>"),

	run("they get a new end", "extend_by_id", has(1, inf, "a", "b"), keys("s", "z", "e"), args("90000", "0", "7", "60000", "a", "b"), "1", "1", "e=7 s=1 z<a b>"),
	run("all or none", "extend_by_id", has(1, inf, "a"), keys("s", "z", "e"), args("90000", "0", "7", "60000", "a", "b"), "0", "0", "s=1 z<a>"),
	run("expired", "extend_by_id", has(1, "5", "a"), keys("s", "z", "e"), args("90000", "0", "7", "60000", "a"), "0", "0", "s=1 z<a>"),
	run("a later one came before", "extend_by_id", append(has(1, inf, "a"), strings.Fields("SET e 10")), keys("s", "z", "e"), args("90000", "0", "7", "60000", "a"), "-1", "-1", "e=10 s=1 z<a>"),
	run("deleted", "extend_by_id", set("ZADD z "+inf+" a"), keys("s", "z", "e"), args("90000", "0", "7", "60000", "a"), "0", "0", "z<a>"),
	run("another type", "extend_by_id", set("HSET s a 1"), keys("s", "z", "e"), args("90000", "0", "7", "60000", "a"), "WRONGTYPE", "WRONGTYPE", "s{a:1}"),
	run("another type of permits", "extend_by_id", set("SET s 5", "SET z x"), keys("s", "z", "e"), args("90000", "0", "7", "60000", "a"), "WRONGTYPE", "WRONGTYPE", "s=5 z=x"),

	run("free and in all", "state", has(2, inf, "x:1"), stateKeys, args("5", "ch", "PUBLISH", "1", ""), "[2 3]", "[2 3]", "s=2 z<x:1>"),
	run("expired ones come back", "state", has(2, "5", "x:1"), stateKeys, args("5", "ch", "PUBLISH", "1", ""), "[3 3]", "[3 3]", "s=3"),
	run("nothing is there", "state", nil, stateKeys, args("5", "ch", "PUBLISH", "1", ""), "[5 5]", "[5 5]", ""),
	run("the counter is gone", "state", set("ZADD z "+inf+" x:1"), stateKeys, args("5", "ch", "PUBLISH", "1", ""), "[4 5]", "[4 5]", "z<x:1>"),
	run("another type", "state", set("HSET s a 1"), stateKeys, args("5", "ch", "PUBLISH", "1", ""), "WRONGTYPE", "WRONGTYPE", "s{a:1}"),
	run("another type of permits", "state", set("SET s 5", "SET z x"), stateKeys, args("5", "ch", "PUBLISH", "1", ""), "WRONGTYPE", "WRONGTYPE", "s=5 z=x"),

	run("of a new one", "set_limit", nil, limitKeys, args("5", "ch", "PUBLISH", "7", "60000", "0", "1", ""), "5", "5", "l=7 s=5"),
	run("up", "set_limit", has(0, inf, "x:1"), limitKeys, args("5", "ch", "PUBLISH", "7", "60000", "0", "1", ""), "4", "4", "l=7 s=4 z<x:1>"),
	run("the same", "set_limit", has(4, inf, "x:1"), limitKeys, args("5", "ch", "PUBLISH", "7", "60000", "0", "1", ""), "4", "4", "l=7 s=4 z<x:1>"),
	run("the same, and one expires", "set_limit", has(4, "5", "x:1"), limitKeys, args("5", "ch", "PUBLISH", "7", "60000", "0", "1", ""), "5", "5", "l=7 s=5"),
	run("below what is taken", "set_limit", has(4, inf, "x:1"), limitKeys, args("0", "ch", "PUBLISH", "7", "60000", "0", "1", ""), "-1", "-1", "l=7 s=-1 z<x:1>"),
	run("the counter is gone", "set_limit", set("ZADD z "+inf+" x:1"), limitKeys, args("5", "ch", "PUBLISH", "7", "60000", "0", "1", ""), "4", "4", "l=7 s=4 z<x:1>"),
	run("another type", "set_limit", set("HSET s a 1"), limitKeys, args("5", "ch", "PUBLISH", "7", "60000", "0", "1", ""), "WRONGTYPE", "WRONGTYPE", "s{a:1}"),
	run("another type of the number, and one has expired", "set_limit", append(has(4, "5", "x:1"), strings.Fields("HSET l a 1")), limitKeys, args("5", "ch", "PUBLISH", "7", "60000", "0", "1", ""), "WRONGTYPE", "WRONGTYPE", "l{a:1} s=4 z<x:1>"),
	run("another type of permits", "set_limit", set("SET s 5", "SET z x"), limitKeys, args("5", "ch", "PUBLISH", "7", "60000", "0", "1", ""), "WRONGTYPE", "WRONGTYPE", "s=5 z=x"),
	run("after an earlier one", "set_limit", append(has(4, inf, "x:1"), strings.Fields("SET l 6")), limitKeys, args("3", "ch", "PUBLISH", "7", "60000", "0", "1", ""), "2", "2", "l=7 s=2 z<x:1>"),
	run("later than a later one", "set_limit", append(has(4, inf, "x:1"), strings.Fields("SET l 10")), limitKeys, args("3", "ch", "PUBLISH", "7", "60000", "0", "1", ""), "4", "4", "l=10 s=4 z<x:1>"),
	run("again, and another session has set it since", "set_limit", append(has(4, "5", "x:1"), strings.Fields("SET l 7")), limitKeys, args("3", "ch", "PUBLISH", "7", "60000", "0", "1", ""), "5", "5", "l=7 s=5"),
	run("of a counter's name", "set_limit", set("SET s 5", "HSET c 3 7:1"), limitKeys, args("3", "ch", "PUBLISH", "7", "60000", "0", "1", ""), "WRONGTYPE", "WRONGTYPE", "c{3:7:1} s=5"),
	run("it was deleted since", "set_limit", set("SET l 10"), limitKeys, args("3", "ch", "PUBLISH", "7", "60000", "0", "1", ""), "3", "3", "l=10"),
	run("with its permits", "delete", has(1, inf, "x:1"), limitKeys, args("7", "60000", "ch", "PUBLISH", ""), "1", "0", "l=7"),
	run("nothing is there", "delete", nil, limitKeys, args("7", "60000", "ch", "PUBLISH", ""), "1", "0", "l=7"),
	run("later than a later one", "delete", append(has(1, inf, "x:1"), strings.Fields("SET l 8")), limitKeys, args("7", "60000", "ch", "PUBLISH", ""), "0", "0", "l=8 s=1 z<x:1>"),
	run("another type", "delete", set("HSET s a 1"), limitKeys, args("7", "60000", "ch", "PUBLISH", ""), "WRONGTYPE", "WRONGTYPE", "s{a:1}"),
	run("another type of permits", "delete", set("SET s 5", "SET z x"), limitKeys, args("7", "60000", "ch", "PUBLISH", ""), "WRONGTYPE", "WRONGTYPE", "s=5 z=x"),
	run("of a counter's name", "delete", set("SET s 5", "HSET c 3 7:1"), limitKeys, args("7", "60000", "ch", "PUBLISH", ""), "WRONGTYPE", "WRONGTYPE", "c{3:7:1} s=5"),
	run("of a counter's name", "state", set("SET s 5", "HSET c 3 7:1"), stateKeys, args("5", "ch", "PUBLISH", "1", ""), "WRONGTYPE", "WRONGTYPE", "c{3:7:1} s=5"),
}

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
