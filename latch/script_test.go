package latch_test

import (
	"strconv"
	"testing"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
)

var (
	run  = locktest.Case
	set  = locktest.Setup
	one  = locktest.Keys("x")
	two  = locktest.Keys("x", "r")
	down = locktest.Args("ch", "PUBLISH", "60000")
	up   = locktest.Args("ch", "PUBLISH", "60000", "3")
)

var cases = []locktest.ScriptCase{
	run("one of several", "count_down", set("SET x 3"), two, down, "1", "0", "r=1 x=2"),
	run("the last one", "count_down", set("SET x 1"), two, down, "1", "0", "r=1"),
	run("it is open", "count_down", nil, two, down, "0", "0", ""),
	run("it is 0", "count_down", set("SET x 0"), two, down, "1", "0", "r=1"),
	run("exact above 2^53", "count_down", set("SET x 9007199254740993"), two, down, "1", "0", "r=1 x=9007199254740992"),
	run("sent again after the latch was set anew", "count_down", set("SET x 3", "SET r 1"), two, down, "0", "0", "r=1 x=3"),
	run("another type", "count_down", set("HSET x a 1"), two, down, "WRONGTYPE", "WRONGTYPE", "x{a:1}"),
	run("another type of request", "count_down", set("SET x 3", "HSET r a 1"), two, down, "WRONGTYPE", "WRONGTYPE", "r{a:1} x=3"),
	run("no integer", "count_down", set("SET x 1.5"), two, down, "WRONGTYPE", "WRONGTYPE", "x=1.5"),

	run("it is open", "try_set", nil, two, up, "1", "1", "r=1 x=3"),
	run("it is closed", "try_set", set("SET x 1"), two, up, "0", "0", "x=1"),
	run("sent again after it has opened", "try_set", set("SET r 1"), two, up, "1", "1", "r=1"),
	run("another type", "try_set", set("HSET x a 1"), two, up, "WRONGTYPE", "WRONGTYPE", "x{a:1}"),
	run("another type of request", "try_set", set("HSET r a 1"), two, up, "WRONGTYPE", "WRONGTYPE", "r{a:1}"),

	run("it is open", "await", nil, one, nil, "[1 -1 0 0 1 -1]", "[1 -1 0 0 1 -1]", ""),
	run("it is 0", "await", set("SET x 0"), one, nil, "[1 -1 0 0 1 -1]", "[1 -1 0 0 1 -1]", "x=0"),
	run("it is closed", "await", set("SET x 1"), one, nil, "[0 -1 0 0 0 -1]", "[0 -1 0 0 0 -1]", "x=1"),
	run("another type", "await", set("HSET x a 1"), one, nil, "WRONGTYPE", "WRONGTYPE", "x{a:1}"),
	run("no integer", "await", set("SET x text"), one, nil, "WRONGTYPE", "WRONGTYPE", "x=text"),
	run("no number of this world", "await", set("SET x 1234567890123456789"), one, nil, "WRONGTYPE", "WRONGTYPE", "x=1234567890123456789"),
	run("no zero of Redis's", "await", set("SET x -0"), one, nil, "WRONGTYPE", "WRONGTYPE", "x=-0"),

	run("it is open", "count", nil, one, nil, "0", "0", ""),
	run("it is closed", "count", set("SET x 9007199254740993"), one, nil, "9007199254740993", "9007199254740993", "x=9007199254740993"),
	run("another type", "count", set("HSET x a 1"), one, nil, "WRONGTYPE", "WRONGTYPE", "x{a:1}"),
}

func TestScriptsAreSafeToRunTwice(t *testing.T) { locktest.RunScripts(t, src, cases) }
func TestScriptsPassErrorsOn(t *testing.T)      { locktest.RefuseWrites(t, src, cases) }
func TestScriptsWhileTheirSlotMoves(t *testing.T) {
	t.Parallel()
	locktest.WhileASlotMoves(t, src, cases)
}
func TestScriptHeaders(t *testing.T) { locktest.CheckHeaders(t, src) }

// Messages are Redisson's: 1 when the latch is set, 0 when it opens, nothing in between. A
// request is remembered for as long as was asked, from the last run on; a latch has no TTL.
func TestMessagesAndTTLs(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		heard := locktest.Hears(t, s, "ch")
		eval := func(script, request string, args []string) {
			t.Helper()
			cmd := append([]string{"EVAL", src[script], strconv.Itoa(2), "x", request}, args...)
			must(t, s.Do(t, cmd...).Error())
		}
		eval("try_set", "r1", locktest.Args("ch", "PUBLISH", "60000", "2"))
		eval("try_set", "r2", up)
		eval("count_down", "r3", down)
		for key, want := range map[string]int64{"x": -1, "r1": 60000, "r3": 60000} {
			ttl, err := s.Do(t, "PTTL", key).AsInt64()
			must(t, err)
			if ttl > want || ttl < want-20000 {
				t.Errorf("PTTL %s = %d, want %d", key, ttl, want)
			}
		}
		for script, request := range map[string]string{"try_set": "r1", "count_down": "r3"} {
			must(t, s.Do(t, "PEXPIRE", request, "1000").Error())
			eval(script, request, up)
			ttl, err := s.Do(t, "PTTL", request).AsInt64()
			must(t, err)
			if ttl < 40000 {
				t.Errorf("%s sent again: PTTL %d", script, ttl)
			}
		}
		eval("count_down", "r4", down)
		eval("count_down", "r4", down)
		eval("count_down", "r5", down)
		must(t, s.Do(t, "PUBLISH", "ch", "end").Error())
		var all string
		for m := ""; m != "end"; all += m + " " {
			m = locktest.Get(t, heard, patience, "a message")
		}
		if all != "1 0 end " {
			t.Errorf("published %s", all)
		}
	})
}
