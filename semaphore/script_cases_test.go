package semaphore_test

import (
	"fmt"
	"strings"

	"relock/internal/test/locktest"
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
	run("nor if its first has been given back", "acquire", append(has(4, inf, "me:2"), strings.Fields("ZADD z 5 x:1")), both, get2, "[1 30001 0 1 4 -1]", "[1 30001 0 0 4 -1]", "s=4 z<me:1 me:2>").Rest("4"),
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

	run("they stand", "renew_taken", has(1, inf, "me:1", "me:2", "x:1"), keys("z"), args("30000", "2", "60000", "me:1", "me:2"),
		"[1 1 1 1]", "[1 1 1 1]", "s=1 z<me:1 me:2 x:1>"),
	run("some are gone", "renew_taken", has(1, inf, "me:1"), keys("z"), args("30000", "2", "0", "me:1", "me:2"), "[0 0 0 0]", "[0 0 0 0]", "s=1 z<me:1>"),
	run("expired", "renew_taken", has(1, "5", "me:1"), keys("z"), args("0", "1", "0", "me:1"), "[0 0 0]", "[0 0 0]", "s=1 z<me:1>"),
	run("another type", "renew_taken", has(1, inf), keys("s"), args("30000", "1", "0", "me:1"), "[0 0 0]", "[0 0 0]", "s=1"),

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
