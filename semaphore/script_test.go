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
	req  = locktest.Keys("c", "r")
)

// has returns what sets up a semaphore with free permits, and taken ones with an expiry.
func has(free int, expiry string, ids ...string) [][]string {
	all := set(fmt.Sprint("SET s ", free))
	for _, id := range ids {
		all = append(all, []string{"ZADD", "z", expiry, id})
	}
	return all
}

// get2 has a lease after which nobody looks, so that replies do not tell the time.
var get2 = args("me", "2", inf, "5", "ch", "PUBLISH")
var put2 = args("me", "2", "ch", "PUBLISH", "1")
var back = args("ch", "PUBLISH", "1", "60000") // untake

var semaphoreCases = []locktest.ScriptCase{
	run("a new semaphore", "acquire", nil, both, get2, "[1 -1 0 1 3 5]", "[1 -1 0 0 3 5]", "s=3 z<me:1 me:2>"),
	run("from what is free", "acquire", has(4, inf, "x:1"), both, get2, "[1 -1 0 1 2 5]", "[1 -1 0 0 2 5]", "s=2 z<x:1 me:1 me:2>"),
	run("the last ones", "acquire", has(2, inf), both, get2, "[1 -1 0 1 0 2]", "[1 -1 0 0 0 2]", "s=0 z<me:1 me:2>"),
	run("too few are free", "acquire", has(1, inf, "x:1"), both, get2, "[0 -1 0 0 1 2]", "[0 -1 0 0 1 2]", "s=1 z<x:1>"),
	run("none is free", "acquire", has(0, inf, "x:1", "x:2"), both, get2, "[0 -1 0 0 0 2]", "[0 -1 0 0 0 2]", "s=0 z<x:1 x:2>"),
	run("less than none", "acquire", has(-1, inf, "x:1", "x:2", "x:3"), both, get2, "[0 -1 0 0 -1 2]", "[0 -1 0 0 -1 2]", "s=-1 z<x:1 x:2 x:3>"),
	run("more than the limit", "acquire", has(1, inf), both, get2, "[-2 1 0 0]", "[-2 1 0 0]", "s=1"),
	run("more than a limit that was lowered", "acquire", has(-1, inf, "x:1", "x:2"), both, get2, "[-2 1 0 0]", "[-2 1 0 0]", "s=-1 z<x:1 x:2>"),
	run("more than a new limit", "acquire", nil, both, args("me", "2", "30000", "1", "ch", "PUBLISH"), "[-2 1 0 0]", "[-2 1 0 0]", ""),
	run("granted before the limit was lowered", "acquire", has(-1, inf, "me:1", "me:2"), both, get2, "[1 -1 0 0 -1 1]", "[1 -1 0 0 -1 1]", "s=-1 z<me:1 me:2>"),
	run("all expired ones come back", "acquire", has(0, "5", "x:1", "x:2", "x:3"), both, get2, "[1 -1 0 1 1 3]", "[1 -1 0 0 1 3]", "s=1 z<me:1 me:2>"),
	run("expired ones come back for the next", "acquire", has(0, "5", "x:1"), both, args("me", "2", "1", "5", "ch", "PUBLISH"), "[-2 1 0 0]", "[-2 1 0 0]", "s=1"),
	run("its own that expired are taken anew", "acquire", has(0, "5", "me:1", "me:2"), both, get2, "[1 -1 0 1 0 2]", "[1 -1 0 0 0 2]", "s=0 z<me:1 me:2>"),
	run("what is there of it is not taken twice", "acquire", has(4, inf, "me:1"), both, get2, "[1 -1 0 1 3 5]", "[1 -1 0 0 3 5]", "s=3 z<me:1 me:2>"),
	run("the counter is gone, its permits count", "acquire", set("ZADD z "+inf+" x:1"), both, get2, "[1 -1 0 1 2 5]", "[1 -1 0 0 2 5]", "s=2 z<x:1 me:1 me:2>"),
	run("the counter is gone, too few are left", "acquire", set("ZADD z "+inf+" x:1 "+inf+" x:2 "+inf+" x:3 "+inf+" x:4"), both, get2, "[0 -1 0 0 1 5]", "[0 -1 0 0 1 5]", "s=1 z<x:1 x:2 x:3 x:4>"),
	run("the permits are gone", "acquire", has(0, inf), both, get2, "[-2 0 0 0]", "[-2 0 0 0]", "s=0"),
	run("another type", "acquire", set("HSET s a 1"), both, get2, "WRONGTYPE", "WRONGTYPE", "s{a:1}"),
	run("another type of permits", "acquire", set("SET s 5", "SET z x"), both, get2, "WRONGTYPE", "WRONGTYPE", "s=5 z=x"),
	run("no integer", "acquire", set("SET s 1.5", "ZADD z 5 x:1"), both, get2, "WRONGTYPE", "WRONGTYPE", "s=1.5 z<x:1>"),

	run("they come back", "release", has(1, inf, "me:1", "me:2", "x:1"), both, put2, "[0 1 0]", "[0 0 -1]", "s=3 z<x:1>"),
	run("below the limit that was lowered", "release", has(-5, inf, "me:1", "me:2"), both, put2, "[0 1 -1]", "[0 0 -1]", "s=-3"),
	run("the count may be unknown", "release", has(1, inf, "me:1", "me:2"), both, args("me", "2", "ch", "PUBLISH", "0"), "[0 1 -1]", "[0 0 -1]", "s=3"),
	run("expired ones do not", "release", has(1, "5", "me:1", "me:2"), both, put2, "[0 0 -1]", "[0 0 -1]", "s=1 z<me:1 me:2>"),
	run("nor some of them", "release", has(1, inf, "me:1"), both, put2, "[0 0 -1]", "[0 0 -1]", "s=1 z<me:1>"),
	run("nor another's", "release", has(1, inf, "x:1", "x:2"), both, put2, "[0 0 -1]", "[0 0 -1]", "s=1 z<x:1 x:2>"),
	run("those of a deleted one", "release", set("ZADD z "+inf+" me:1 "+inf+" me:2"), both, put2, "[0 0 -1]", "[0 0 -1]", ""),
	run("nothing is there", "release", nil, both, put2, "[0 0 -1]", "[0 0 -1]", ""),
	run("another type", "release", set("HSET s a 1", "ZADD z "+inf+" me:1 "+inf+" me:2"), both, put2, "[0 0 -1]", "[0 0 -1]", "s{a:1} z<me:1 me:2>"),
	run("another type of permits", "release", set("SET s 5", "SET z x"), both, put2, "[0 0 -1]", "[0 0 -1]", "s=5 z=x"),

	run("each for itself", "renew", has(1, inf, "me:1", "me:2", "x:1"), keys("s", "z", "s", "z", "none", "z", "s", "none", "z", "z", "s", "s"),
		args("30000", "2:me", "", "2:x", "", "2:me", "2:me", "2:me", "2:me"), "[1 1 0 0 0 0 0 0]", "[1 1 0 0 0 0 0 0]", "s=1 z<me:1 me:2 x:1>"),
	run("expired ones are lost", "renew", has(1, "5", "me:1"), both, args("30000", "1:me"), "[0]", "[0]", "s=1 z<me:1>"),
	run("an owner with colons and line breaks", "renew", set("SET s 1", "ZADD z "+inf+" a:b:3:1"), both, args("30000", "1:a:b:3"), "[1]", "[1]", "s=1 z<a:b:3:1>"),

	run("they live on", "extend", has(1, inf, "me:1", "me:2"), both, args("me", "2", "90000", "1"), "1", "1", "s=1 z<me:1 me:2>"),
	run("some are gone", "extend", has(1, inf, "me:1"), both, args("me", "2", "90000", "1"), "0", "0", "s=1 z<me:1>"),
	run("expired", "extend", has(1, "5", "me:1", "me:2"), both, args("me", "2", "90000", "1"), "0", "0", "s=1 z<me:1 me:2>"),
	run("deleted", "extend", set("ZADD z "+inf+" me:1 "+inf+" me:2"), both, args("me", "2", "90000", "1"), "0", "0", "z<me:1 me:2>"),
	run("another type of permits", "extend", set("SET s 5", "SET z x"), both, args("me", "2", "90000", "1"), "0", "0", "s=5 z=x"),

	run("free and in all", "state", has(2, inf, "x:1"), both, args("5", "ch", "PUBLISH"), "[2 3]", "[2 3]", "s=2 z<x:1>"),
	run("expired ones come back", "state", has(2, "5", "x:1"), both, args("5", "ch", "PUBLISH"), "[3 3]", "[3 3]", "s=3"),
	run("nothing is there", "state", nil, both, args("5", "ch", "PUBLISH"), "[5 5]", "[5 5]", ""),
	run("the counter is gone", "state", set("ZADD z "+inf+" x:1"), both, args("5", "ch", "PUBLISH"), "[4 5]", "[4 5]", "z<x:1>"),
	run("another type", "state", set("HSET s a 1"), both, args("5", "ch", "PUBLISH"), "WRONGTYPE", "WRONGTYPE", "s{a:1}"),
	run("another type of permits", "state", set("SET s 5", "SET z x"), both, args("5", "ch", "PUBLISH"), "WRONGTYPE", "WRONGTYPE", "s=5 z=x"),

	run("of a new one", "set_limit", nil, both, args("5", "ch", "PUBLISH"), "5", "5", "s=5"),
	run("up", "set_limit", has(0, inf, "x:1"), both, args("5", "ch", "PUBLISH"), "4", "4", "s=4 z<x:1>"),
	run("the same", "set_limit", has(4, inf, "x:1"), both, args("5", "ch", "PUBLISH"), "4", "4", "s=4 z<x:1>"),
	run("the same, and one expires", "set_limit", has(4, "5", "x:1"), both, args("5", "ch", "PUBLISH"), "5", "5", "s=5"),
	run("below what is taken", "set_limit", has(4, inf, "x:1"), both, args("0", "ch", "PUBLISH"), "-1", "-1", "s=-1 z<x:1>"),
	run("the counter is gone", "set_limit", set("ZADD z "+inf+" x:1"), both, args("5", "ch", "PUBLISH"), "4", "4", "s=4 z<x:1>"),
	run("another type", "set_limit", set("HSET s a 1"), both, args("5", "ch", "PUBLISH"), "WRONGTYPE", "WRONGTYPE", "s{a:1}"),
	run("another type of permits", "set_limit", set("SET s 5", "SET z x"), both, args("5", "ch", "PUBLISH"), "WRONGTYPE", "WRONGTYPE", "s=5 z=x"),
}

var counterCases = []locktest.ScriptCase{
	run("it has enough", "take", set("SET c 5"), req, args("2", "60000"), "[1 -1 0 1 3 -1]", "[1 -1 0 0 3 -1]", "c=3 r=2"),
	run("it has just that", "take", set("SET c 2"), req, args("2", "60000"), "[1 -1 0 1 0 -1]", "[1 -1 0 0 0 -1]", "c=0 r=2"),
	run("it has less", "take", set("SET c 1"), req, args("2", "60000"), "[0 -1 0 0 1 -1]", "[0 -1 0 0 1 -1]", "c=1"),
	run("it does not exist", "take", nil, req, args("2", "60000"), "[0 -1 0 0 0 -1]", "[0 -1 0 0 0 -1]", ""),
	run("done before", "take", set("SET c 5", "SET r 2"), req, args("2", "60000"), "[1 -1 0 0 5 -1]", "[1 -1 0 0 5 -1]", "c=5 r=2"),
	run("undone before", "take", set("SET c 5", "SET r undone"), req, args("2", "60000"), "[0 -1 0 0 5 -1]", "[0 -1 0 0 5 -1]", "c=5 r=undone"),
	run("another type", "take", set("HSET c a 1"), req, args("2", "60000"), "WRONGTYPE", "WRONGTYPE", "c{a:1}"),
	run("another type of request", "take", set("SET c 5", "HSET r a 1"), req, args("2", "60000"), "WRONGTYPE", "WRONGTYPE", "c=5 r{a:1}"),
	run("no integer", "take", set("SET c x"), req, args("2", "60000"), "WRONGTYPE", "WRONGTYPE", "c=x"),

	run("it was taken", "untake", set("SET c 3", "SET r 2"), req, back, "[0 1 0]", "[0 0 -1]", "c=5 r=undone"),
	run("the count may be unknown", "untake", set("SET c 3", "SET r 2"), req, args("ch", "PUBLISH", "0", "60000"), "[0 1 -1]", "[0 0 -1]", "c=5 r=undone"),
	run("it was not", "untake", set("SET c 3"), req, back, "[0 0 -1]", "[0 0 -1]", "c=3 r=undone"),
	run("it was deleted since", "untake", set("SET r 2"), req, back, "[0 0 -1]", "[0 0 -1]", "r=undone"),
	run("another type", "untake", set("HSET c a 1", "SET r 2"), req, back, "[0 0 -1]", "[0 0 -1]", "c{a:1} r=undone"),
	run("another type of request", "untake", set("SET c 1", "HSET r a 1"), req, back, "[0 0 -1]", "[0 0 -1]", "c=1 r{a:1}"),

	run("up", "add", set("SET c 3"), req, args("2", "ch", "PUBLISH", "60000"), "1", "0", "c=5 r=1"),
	run("down", "add", set("SET c 3"), req, args("-5", "ch", "PUBLISH", "60000"), "1", "0", "c=-2 r=1"),
	run("it does not exist", "add", nil, req, args("2", "ch", "PUBLISH", "60000"), "1", "0", "c=2 r=1"),
	run("exact above 2^53", "add", set("SET c 9007199254740993"), req, args("2", "ch", "PUBLISH", "60000"), "1", "0", "c=9007199254740995 r=1"),
	run("another type", "add", set("HSET c a 1"), req, args("2", "ch", "PUBLISH", "60000"), "WRONGTYPE", "WRONGTYPE", "c{a:1}"),
	run("another type of request", "add", set("SET c 5", "HSET r a 1"), req, args("2", "ch", "PUBLISH", "60000"), "WRONGTYPE", "WRONGTYPE", "c=5 r{a:1}"),
	run("too large", "add", set("SET c 9223372036854775807"), req, args("2", "ch", "PUBLISH", "60000"), "WRONGTYPE", "WRONGTYPE", "c=9223372036854775807"),

	run("all of it", "drain", set("SET c 3"), req, args("60000"), "3", "3", "c=0 r=3"),
	run("below 0", "drain", set("SET c -3"), req, args("60000"), "-3", "-3", "c=0 r=-3"),
	run("it has nothing", "drain", set("SET c 0"), req, args("60000"), "0", "0", "c=0"),
	run("it does not exist", "drain", nil, req, args("60000"), "0", "0", ""),
	run("exact above 2^53", "drain", set("SET c 9007199254740993"), req, args("60000"), "9007199254740993", "9007199254740993", "c=0 r=9007199254740993"),
	run("another type", "drain", set("HSET c a 1"), req, args("60000"), "WRONGTYPE", "WRONGTYPE", "c{a:1}"),

	run("it does not exist", "try_set", nil, req, args("7", "ch", "PUBLISH", "60000"), "1", "1", "c=7 r=1"),
	run("it exists", "try_set", set("SET c 0"), req, args("7", "ch", "PUBLISH", "60000"), "0", "0", "c=0"),
	run("another type", "try_set", set("HSET c a 1"), req, args("7", "ch", "PUBLISH", "60000"), "WRONGTYPE", "WRONGTYPE", "c{a:1}"),

	run("it has", "count", set("SET c 9007199254740993"), keys("c"), nil, "9007199254740993", "9007199254740993", "c=9007199254740993"),
	run("it does not exist", "count", nil, keys("c"), nil, "0", "0", ""),
	run("another type", "count", set("HSET c a 1"), keys("c"), nil, "WRONGTYPE", "WRONGTYPE", "c{a:1}"),
}

func TestScriptsAreSafeToRunTwice(t *testing.T) {
	locktest.RunScripts(t, src, append(semaphoreCases, counterCases...))
}

// A server that takes no writes has said nothing about permits (11.1).
func TestScriptsPassErrorsOn(t *testing.T) {
	locktest.RefuseWrites(t, src, append(semaphoreCases, counterCases...))
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
			"untake":  {set("SET c 3", "SET r 2"), req, back},
		} {
			for _, cmd := range c.setup {
				must(t, s.Do(t, cmd...).Error())
			}
			if got := eval(t, s, script, c.keys, c.args...); got != "[0 1 1]" {
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
			{"acquired", "acquire", args("me", "2", "60000", "5", "ch", "PUBLISH"), 50000, 60001},
			{"sent again with less", "acquire", args("me", "2", "5000", "5", "ch", "PUBLISH"), 50000, 60001},
			{"sent again with more", "acquire", args("me", "2", "90000", "5", "ch", "PUBLISH"), 80000, 90001},
			{"renewed with less", "renew", args("30000", "2:me"), 80000, 90001},
			{"asked for", "renew", args("0", "2:me"), 80000, 90001},
			{"renewed with more", "renew", args("120000", "2:me"), 110000, 120001},
			{"extended by less", "extend", args("me", "2", "30000", "0"), 110000, 120001},
			{"extended by more", "extend", args("me", "2", "150000", "0"), 140000, 150001},
			{"brought closer", "extend", args("me", "2", "30000", "1"), 20000, 30001},
		} {
			eval(t, s, step.script, both, step.args...)
			for _, id := range []string{"me:1", "me:2"} {
				if ms := left(t, s, id); ms < step.from || ms > step.to {
					t.Errorf("%s: %s lives %d ms, want %d to %d", step.what, id, ms, step.from, step.to)
				}
			}
		}
		// Who waits is told when to look again: he himself, and he who is behind one that gets in.
		for i, owner := range []string{"x", "y"} {
			var status, ms, b, c, free, limit int64
			reply := eval(t, s, "acquire", both, owner, "3", "5000", "5", "ch", "PUBLISH")
			_, err := fmt.Sscanf(reply, "[%d %d %d %d %d %d]", &status, &ms, &b, &c, &free, &limit)
			must(t, err)
			if status != int64(1-i) || ms < 1 || ms > 5001 || free != 0 || limit != 5 {
				t.Errorf("%s: %s; the next expires in 5000 ms at most", owner, reply)
			}
		}
		// A semaphore with an end takes its permits along.
		must(t, s.Do(t, "PEXPIRE", "s", "70000").Error())
		eval(t, s, "release", both, "x", "3", "ch", "PUBLISH", "1")
		eval(t, s, "acquire", both, "y", "1", "5000", "5", "ch", "PUBLISH")
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
			"acquire":   args("me", "1", "30000", "9000", "ch", "PUBLISH"),
			"state":     args("9000", "ch", "PUBLISH"),
			"set_limit": args("9000", "ch", "PUBLISH"),
		} {
			s.FlushAll(t)
			must(t, s.Do(t, "SET", "s", "0").Error())
			zadd := []string{"ZADD", "z"}
			for i := range 9000 {
				zadd = append(zadd, "5", fmt.Sprint("dead:", i))
			}
			must(t, s.Do(t, zadd...).Error())
			eval(t, s, script, both, call...)
			if got := strings.Split(locktest.Describe(t, s), " ")[0]; got != "s=9000" && got != "s=8999" {
				t.Errorf("%s left %s", script, got)
			}
		}
	})
}

// Messages are integers, never below 0, and sent only when there is something to tell
// (1.11, 1.12, 1.16).
func TestMessages(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		heard := hears(t, s, "ch")
		for _, c := range []struct {
			what, script string
			setup        [][]string
			keys, args   []string
			want         string // "" for none
		}{
			{"a new semaphore has some left", "acquire", nil, both, get2, "3"},
			{"a new semaphore has none left", "acquire", nil, both, args("me", "2", "30000", "2", "ch", "PUBLISH"), ""},
			{"acquired", "acquire", has(5, inf), both, get2, ""},
			{"refused", "acquire", has(1, inf, "x:1"), both, get2, ""},
			{"expired ones leave some", "acquire", has(0, "5", "x:1", "x:2", "x:3"), both, get2, "1"},
			{"expired ones are too few", "acquire", append(has(0, "5", "x:1"), strings.Fields("ZADD z "+inf+" x:2")), both, get2, "1"},
			{"expired ones and too high a request", "acquire", has(0, "5", "x:1"), both, get2, "1"},
			{"released", "release", has(1, inf, "me:1", "me:2"), both, put2, "3"},
			{"released, and none is free", "release", has(-2, inf, "me:1", "me:2"), both, put2, ""},
			{"nothing released", "release", has(1, "5", "me:1", "me:2"), both, put2, ""},
			{"asked", "state", has(1, inf, "x:1"), both, args("5", "ch", "PUBLISH"), ""},
			{"asked, and some expired", "state", has(1, "5", "x:1"), both, args("5", "ch", "PUBLISH"), "2"},
			{"limit up", "set_limit", has(0, inf, "x:1"), both, args("5", "ch", "PUBLISH"), "4"},
			{"the same limit", "set_limit", has(4, inf, "x:1"), both, args("5", "ch", "PUBLISH"), ""},
			{"limit far down", "set_limit", has(4, inf, "x:1"), both, args("0", "ch", "PUBLISH"), "0"},
			{"counter taken from", "take", set("SET c 5"), req, args("2", "60000"), ""},
			{"counter given back", "untake", set("SET c 5", "SET r 2"), req, back, "7"},
			{"counter up", "add", set("SET c 5"), req, args("2", "ch", "PUBLISH", "60000"), "7"},
			{"counter far down", "add", set("SET c 5"), req, args("-7", "ch", "PUBLISH", "60000"), "0"},
			{"counter up twice", "add", set("SET c 5", "SET r 1"), req, args("2", "ch", "PUBLISH", "60000"), ""},
			{"counter drained", "drain", set("SET c 5"), req, args("60000"), ""},
			{"counter set", "try_set", nil, req, args("2", "ch", "PUBLISH", "60000"), "2"},
			{"counter not set", "try_set", set("SET c 5"), req, args("2", "ch", "PUBLISH", "60000"), ""},
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

// Requests to a counter are remembered for as long as was asked, from the last run on, and
// no longer; counters keep the TTL that they have.
func TestCounterTTLs(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		for script, call := range map[string][]string{
			"take": args("2", "60000"), "untake": back, "drain": args("60000"),
			"add": args("2", "ch", "PUBLISH", "60000"),
		} {
			s.FlushAll(t)
			must(t, s.Do(t, "SET", "c", "5", "PX", "500000").Error())
			for range 2 {
				eval(t, s, script, req, call...)
				for key, most := range map[string]int64{"c": 500000, "r": 60000} {
					ttl, err := s.Do(t, "PTTL", key).AsInt64()
					must(t, err)
					if ttl < most-20000 || ttl > most {
						t.Errorf("%s: PTTL %s = %d, want %d", script, key, ttl, most)
					}
				}
				must(t, s.Do(t, "PEXPIRE", "r", "1000").Error())
			}
		}
	})
}
