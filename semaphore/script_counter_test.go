package semaphore_test

import (
	"testing"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
)

// The keys of a counter: its own, that of the taken permits of a Semaphore of that name, and what
// is remembered of a session's requests.
var (
	req     = locktest.Keys("c", "t", "r")
	undoing = locktest.Keys("c", "r")
	back    = once("ch", "PUBLISH", "1", "", "", "me") // untake
)

// once returns the arguments of request 7 in slot 3.
func once(more ...string) []string { return append([]string{"3", "7", "60000", "0"}, more...) }

const late = "LATE a later request has the slot: the call has ended"

var counterCases = []locktest.ScriptCase{
	run("it has enough", "take", set("SET c 5"), req, once("2", ""), "[1 -1 0 1 3 -1]", "[1 -1 0 0 3 -1]", "c=3 r{3:7:2}"),
	run("it has just that", "take", set("SET c 2"), req, once("2", ""), "[1 -1 0 1 0 -1]", "[1 -1 0 0 0 -1]", "c=0 r{3:7:2}"),
	run("it has less", "take", set("SET c 1"), req, once("2", ""), "[0 -1 0 0 1 -1]", "[0 -1 0 0 1 -1]", "c=1"),
	run("it does not exist", "take", nil, req, once("2", ""), "[0 -1 0 0 0 -1]", "[0 -1 0 0 0 -1]", ""),
	run("the slot had another", "take", set("SET c 5", "HSET r 3 6:1 4 9:1"), req, once("2", ""), "[1 -1 0 1 3 -1]", "[1 -1 0 0 3 -1]", "c=3 r{3:7:2 4:9:1}"),
	run("the slot has a later one", "take", set("SET c 5", "HSET r 3 10:2"), req, once("2", ""), late, late, "c=5 r{3:10:2}"),
	run("done before", "take", set("SET c 5", "HSET r 3 7:2"), req, once("2", ""), "[1 -1 0 0 5 -1]", "[1 -1 0 0 5 -1]", "c=5 r{3:7:2}"),
	run("undone before", "take", set("SET c 5", "HSET r 3 7:undone"), req, once("2", ""), "[0 -1 0 0 5 -1]", "[0 -1 0 0 5 -1]", "c=5 r{3:7:undone}"),
	run("another type", "take", set("HSET c a 1"), req, once("2", ""), "WRONGTYPE", "WRONGTYPE", "c{a:1}"),
	run("another type of request", "take", set("SET c 5", "SET r 1"), req, once("2", ""), "WRONGTYPE", "WRONGTYPE", "c=5 r=1"),
	run("no integer", "take", set("SET c x"), req, once("2", ""), "WRONGTYPE", "WRONGTYPE", "c=x"),
	run("permits are taken under the name", "take", set("SET c 5", "ZADD t 5 x"), req, once("2", ""), "WRONGTYPE", "WRONGTYPE", "c=5 t<x>"),

	run("it was taken", "untake", set("SET c 3", "HSET r 3 7:2"), undoing, back, "[0 1 0]", "[0 0 -1]", "c=5 r{3:7:undone}"),
	run("the count may be unknown", "untake", set("SET c 3", "HSET r 3 7:2"), undoing, once("ch", "PUBLISH", "0", "", "", "me"), "[0 1 -1]", "[0 0 -1]", "c=5 r{3:7:undone}"),
	run("it was not", "untake", set("SET c 3"), undoing, back, "[0 0 -1]", "[0 0 -1]", "c=3 r{3:7:undone}"),
	run("the slot had another", "untake", set("SET c 3", "HSET r 3 6:2"), undoing, back, "[0 0 -1]", "[0 0 -1]", "c=3 r{3:7:undone}"),
	run("the slot has a later one", "untake", set("SET c 3", "HSET r 3 10:2"), undoing, back, "[0 0 -1]", "[0 0 -1]", "c=3 r{3:10:2}"),
	run("it was deleted since", "untake", set("HSET r 3 7:2"), undoing, back, "[0 0 -1]", "[0 0 -1]", "r{3:7:undone}"),
	run("another type", "untake", set("HSET c a 1", "HSET r 3 7:2"), undoing, back, "[0 0 -1]", "[0 0 -1]", "c{a:1} r{3:7:undone}"),
	run("another type of request", "untake", set("SET c 1", "SET r 1"), undoing, back, "[0 0 -1]", "[0 0 -1]", "c=1 r=1"),

	run("up", "add", set("SET c 3"), req, once("2", "ch", "PUBLISH", "1", ""), "1", "0", "c=5 r{3:7:1}"),
	run("down", "add", set("SET c 3"), req, once("-5", "ch", "PUBLISH", "1", ""), "1", "0", "c=-2 r{3:7:1}"),
	run("it does not exist", "add", nil, req, once("2", "ch", "PUBLISH", "1", ""), "1", "0", "c=2 r{3:7:1}"),
	run("the slot has a later one", "add", set("SET c 5", "HSET r 3 8:2"), req, once("2", "ch", "PUBLISH", "1", ""), late, late, "c=5 r{3:8:2}"),
	run("exact above 2^53", "add", set("SET c 9007199254740993"), req, once("2", "ch", "PUBLISH", "1", ""), "1", "0", "c=9007199254740995 r{3:7:1}"),
	run("another type", "add", set("HSET c a 1"), req, once("2", "ch", "PUBLISH", "1", ""), "WRONGTYPE", "WRONGTYPE", "c{a:1}"),
	run("another type of request", "add", set("SET c 5", "SET r 1"), req, once("2", "ch", "PUBLISH", "1", ""), "WRONGTYPE", "WRONGTYPE", "c=5 r=1"),
	run("too large", "add", set("SET c 9223372036854775807"), req, once("2", "ch", "PUBLISH", "1", ""), "WRONGTYPE", "WRONGTYPE", "c=9223372036854775807"),
	run("permits are taken under the name", "add", set("SET c 5", "ZADD t 5 x"), req, once("2", "ch", "PUBLISH", "1", ""), "WRONGTYPE", "WRONGTYPE", "c=5 t<x>"),

	run("all of it", "drain", set("SET c 3"), req, once(), "3", "3", "c=0 r{3:7:3}"),
	run("below 0", "drain", set("SET c -3"), req, once(), "-3", "-3", "c=0 r{3:7:-3}"),
	run("it has nothing", "drain", set("SET c 0"), req, once(), "0", "0", "c=0 r{3:7:0}"),
	run("it does not exist", "drain", nil, req, once(), "0", "0", "r{3:7:0}"),
	run("it found nothing, and more came", "drain", set("SET c 5", "HSET r 3 7:0"), req, once(), "0", "0", "c=5 r{3:7:0}"),
	run("it found nothing, and less came", "drain", set("SET c -5", "HSET r 3 7:0"), req, once(), "0", "0", "c=-5 r{3:7:0}"),
	run("the slot has a later one", "drain", set("SET c 5", "HSET r 3 8:0"), req, once(), late, late, "c=5 r{3:8:0}"),
	run("exact above 2^53", "drain", set("SET c 9007199254740993"), req, once(), "9007199254740993", "9007199254740993", "c=0 r{3:7:9007199254740993}"),
	run("another type", "drain", set("HSET c a 1"), req, once(), "WRONGTYPE", "WRONGTYPE", "c{a:1}"),

	run("it does not exist", "try_set", nil, req, once("7", "ch", "PUBLISH", "1", ""), "1", "1", "c=7 r{3:7:1}"),
	run("to nothing", "try_set", nil, req, once("0", "ch", "PUBLISH", "1", ""), "1", "1", "c=0 r{3:7:1}"),
	run("it exists", "try_set", set("SET c 0"), req, once("7", "ch", "PUBLISH", "1", ""), "0", "0", "c=0 r{3:7:0}"),
	run("it existed, and was deleted", "try_set", set("HSET r 3 7:0"), req, once("7", "ch", "PUBLISH", "1", ""), "0", "0", "r{3:7:0}"),
	run("another type", "try_set", set("HSET c a 1"), req, once("7", "ch", "PUBLISH", "1", ""), "WRONGTYPE", "WRONGTYPE", "c{a:1}"),

	run("it is there", "delete_counter", set("SET c 5"), req, once(), "1", "0", "r{3:7:1}"),
	run("it does not exist", "delete_counter", nil, req, once(), "1", "0", "r{3:7:1}"),
	run("it was made anew since", "delete_counter", set("SET c 5", "HSET r 3 7:1"), req, once(), "0", "0", "c=5 r{3:7:1}"),
	run("the slot has a later one", "delete_counter", set("SET c 5", "HSET r 3 8:1"), req, once(), late, late, "c=5 r{3:8:1}"),
	run("another type", "delete_counter", set("HSET c a 1"), req, once(), "WRONGTYPE", "WRONGTYPE", "c{a:1}"),

	run("it has", "count", set("SET c 9007199254740993"), keys("c", "t"), nil, "9007199254740993", "9007199254740993", "c=9007199254740993"),
	run("it does not exist", "count", nil, keys("c", "t"), nil, "0", "0", ""),
	run("another type", "count", set("HSET c a 1"), keys("c", "t"), nil, "WRONGTYPE", "WRONGTYPE", "c{a:1}"),
	run("no integer", "count", set("SET c x"), keys("c", "t"), nil, "WRONGTYPE", "WRONGTYPE", "c=x"),
	run("permits are taken under the name", "count", set("SET c 5", "ZADD t 5 x"), keys("c", "t"), nil, "WRONGTYPE", "WRONGTYPE", "c=5 t<x>"),
}

// Requests to a counter are remembered for as long as was asked, from the last run on, and
// no longer; counters keep the TTL that they have.
func TestCounterTTLs(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		for script, call := range map[string][]string{
			"take": once("2", ""), "untake": back, "drain": once(), "try_set": once("2", "ch", "PUBLISH", "1", ""),
			"add": once("2", "ch", "PUBLISH", "1", ""),
		} {
			s.FlushAll(t)
			must(t, s.Do(t, "SET", "c", "5", "PX", "500000").Error())
			on := req
			if script == "untake" {
				on = undoing
			}
			for range 2 {
				eval(t, s, script, on, call...)
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
