package semaphore_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"relock/internal/idgen"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/internal/waiting"
)

// What the scripts do with a line. The cases call an entry by its session and how many permits it wants, so that they
// can be read: A2 wants two. In c2 it is called, in q2 it is one of a slow taker. Its owner is "A:2".
var (
	withLine  = locktest.Keys("s", "z", "line")
	countLine = locktest.Keys("c", "t", "r", "line")
)

const (
	fresh = 5000000000000000 - 2999999999999 // the score of a session that is alive
	dead  = 5000000000000000 - 1             // of one that is not
)

// head returns what an entry begins with: it gives permits for 9.999 s and keeps its session alive for a thousand.
func head(letter string, n int) string {
	if letter == "C" {
		digits := "0000" + strconv.FormatInt(int64(n), 36)
		return fmt.Sprintf("C%s001000000%05d", digits[len(digits)-5:], 1)
	}
	return fmt.Sprintf("%s%03d99991000000%05d", letter, n, 1)
}

// entryNames are the names of entries in states.
var entryNames = func() *strings.Replacer {
	var pairs []string
	for _, session := range []string{"A", "B", "C"} {
		for _, n := range []int{1, 2, 3, 65} {
			owner := fmt.Sprintf("%s:%d", session, n)
			pairs = append(pairs, head("P", n)+owner, fmt.Sprint(session, n), head("C", n)+owner, fmt.Sprint("c", session, n))
			for i, id := range idgen.AppendPermits(nil, owner, n) {
				pairs = append(pairs, id, fmt.Sprintf("%s%d.%d", session, n, i))
			}
		}
	}
	return strings.NewReplacer(pairs...)
}()

// entry makes an entry of its name.
func entry(name string) string {
	letter, rest := "P", name
	if name[0] == 'c' {
		letter, rest = "C", name[1:]
	}
	var n int
	fmt.Sscan(rest[1:], &n)
	return fmt.Sprintf("%s%s:%d", head(letter, n), rest[:1], n)
}

// stand puts entries in the line, at the positions 1, 2 and so on; their sessions are alive. What follows are members
// with their scores before them.
func stand(setup [][]string, names string, more ...string) [][]string {
	cmd := []string{"ZADD", "line"}
	for i, name := range strings.Fields(names) {
		e := entry(name)
		cmd = append(cmd, fmt.Sprint(i+1), e, fmt.Sprint(fresh), "s"+e[20:21])
	}
	return append(append([][]string(nil), setup...), append(cmd, more...))
}

// come are the arguments of acquire.lua for an entry; again says that it may stand there.
func come(name, again string) []string {
	e := entry(name)
	a := args("30000", "5", "ch", "PUBLISH", "0", "1", e[:20], again, "0", "0", "s:", "0", e[20:], "", "")
	n := size(name)
	return idgen.AppendPermits(a, e[20:], n)
}

func size(name string) (n int) { fmt.Sscan(strings.TrimLeft(name, "cABC"), &n); return n }

// takes are those of take.lua, leaves those of release.lua, and frees those of a release of me:1 and me:2.
func takes(name string) []string {
	e := entry(name)
	return once(fmt.Sprint(size(name)), e[:20], "0", "0", "0", "s:", "0", e[20:], "", "", "ch", "PUBLISH")
}

func leaves(name string) []string {
	e := entry(name)
	return idgen.AppendPermits(args("ch", "PUBLISH", "0", "0", "s:", e[:20], e[20:], "0", "0"), e[20:], size(name))
}

// polls are those of a session that comes again for two.
var polls = args("30000", "5", "ch", "PUBLISH", "0", "0", "b", "0", "0", "1", "s:", "0", "A", "100", "50", "x:8", "x:9")

// share are those of a session that has had its permits for longer than its share.
func share(owner string) []string {
	return args("ch", "PUBLISH", "0", "0", "s:", "", owner, "0", "1", "me:1", "me:2")
}

var alone = args("ch", "PUBLISH", "0", "0", "s:", "", "me:1", "", "0", "me:1", "me:2") // of a session that knows of nobody who waits

var frees = args("ch", "PUBLISH", "0", "0", "s:", "", "me:1", "0", "0", "me:1", "me:2")

// timeless has what is counted by the clock read "~" in the replies of scripts.
func timeless() map[string]string {
	all := map[string]string{}
	for _, name := range []string{"acquire", "release", "take", "untake"} {
		all[name] = "local function script()\n" + src[name] + `
end
local reply = script()
if type(reply) == 'table' then
  for i, v in ipairs(reply) do
    if type(v) == 'number' and (v > 1e11 or v > 9000 and v <= 10000) then reply[i] = '~' end
  end
end
return reply`
	}
	return all
}

const never = "2000000000" // see serve.lua

var lineCases = []locktest.ScriptCase{
	run("none is free: it enters", "acquire", has(0, inf, "x:1", "x:2"), withLine, come("A2", "0"), "[0 "+never+" ~ ~ 0 2]", "[0 "+never+" ~ ~ 0 2]", "line<A2 sA> s=0 z<x:1 x:2>"),
	run("it stands there", "acquire", stand(has(0, inf, "x:1", "x:2"), "A2"), withLine, come("A2", "1"), "[0 "+never+" ~ 1 0 2]", "[0 "+never+" ~ 1 0 2]", "line<A2 sA> s=0 z<x:1 x:2>"),
	run("behind another", "acquire", stand(has(0, inf, "x:1", "x:2"), "A2"), withLine, come("B1", "0"), "[0 -1 ~ ~ 0 2]", "[0 -1 ~ ~ 0 2]", "line<A2 B1 sA sB> s=0 z<x:1 x:2>"),
	run("in front of one that was passed over", "acquire", append(stand(has(0, inf, "x:1", "x:2"), "A2"), []string{"ZADD", "line", "2400000000000001", entry("A2")}), withLine, come("B1", "0"), "[0 "+never+" ~ ~ 0 2]", "[0 "+never+" ~ ~ 0 2]", "line<B1 A2 sA sB> s=0 z<x:1 x:2>"),
	run("behind one that keeps what is free", "acquire", stand(has(1, inf, "x:1"), "A2"), withLine, come("B1", "0"), "[0 -1 ~ ~ 1 2]", "[0 -1 ~ ~ 1 2]", "line<A2 B1 sA sB kA2> s=1 z<x:1>"),
	run("there are enough for both", "acquire", stand(has(3, inf, "x:1"), "A2"), withLine, come("B1", "0"), "[1 ~ 0 1 0 -1]", "[1 ~ 0 0 0 -1]", "s=0 z<A2.0 A2.1 B1.0 x:1>"),
	run("it is granted, and nobody waits", "acquire", stand(has(2, inf, "x:1"), "A2"), withLine, come("A2", "1"), "[1 30001 0 1 0 -1]", "[1 30001 0 0 0 -1]", "s=0 z<A2.0 A2.1 x:1>"),
	run("it is granted, and others wait", "acquire", stand(has(2, inf, "x:1"), "A2 B1"), withLine, come("A2", "1"), "[1 30001 0 1 0 -1]", "[1 30001 0 0 0 -1]", "line<B1 sA sB> s=0 z<A2.0 A2.1 x:1>"),
	run("it was granted by another, and asks", "acquire", stand(has(0, inf, "x:1", idgen.AppendPermits(nil, "A:1", 1)[0]), "B1"), withLine, come("A1", "1"), "[1 -1 0 0 0 -1]", "[1 -1 0 0 0 -1]", "line<B1 sB> s=0 z<A1.0 x:1>"),
	run("more than the limit leaves the line", "acquire", stand(has(0, inf, "x:1"), "A2 B1"), withLine, come("A2", "1"), "[-2 1 0 0]", "[-2 1 0 0]", "line<B1 sA sB> s=0 z<x:1>"),
	run("and lets those behind in", "acquire", stand(has(1, inf), "A2 B1"), withLine, come("A2", "1"), "[-2 1 0 0]", "[-2 1 0 0]", "s=0 z<B1.0>"),
	run("nobody listens for a dead one", "acquire", stand(has(1, inf, "x:1"), "A1 B1", fmt.Sprint(dead), "sA"), withLine, come("B1", "1"), "[1 30001 0 1 0 -1]", "[1 30001 0 0 0 -1]", "s=0 z<B1.0 x:1>"),
	run("the line is of another type", "acquire", append(has(0, inf, "x:1", "x:2"), strings.Fields("SET line x")), withLine, come("A2", "0"), "WRONGTYPE", "WRONGTYPE", "line=x s=0 z<x:1 x:2>"),
	run("none is free, and it polls: it books what comes free before it comes", "acquire", has(0, inf, "x:1", "x:2"), withLine, polls, "[0 -1 0 0 0 2]", "[0 -1 0 0 0 2]", "line<bA> s=0 z<x:1 x:2>"),
	run("too few are free for it, which others may have", "acquire", has(1, inf, "x:1"), withLine, polls, "[0 -1 0 0 1 2]", "[0 -1 0 0 1 2]", "s=1 z<x:1>"),
	run("the line of a new one is of another type, and it polls", "acquire", set("SET line x"), withLine, args("30000", "1", "ch", "PUBLISH", "0", "0", "b", "0", "0", "1", "s:", "0", "A", "100", "50", "x:1", "x:2"), "[-2 1 0 0]", "[-2 1 0 0]", "line=x"),
	run("the line of one whose permits are out is of another type, and it polls", "acquire", set("ZADD z "+inf+" x:9", "SET line x"), withLine, args("30000", "1", "ch", "PUBLISH", "0", "0", "b", "0", "0", "1", "s:", "0", "A", "100", "50", "x:1"), "WRONGTYPE", "WRONGTYPE", "line=x z<x:9>"),

	run("nobody waits", "release", has(1, inf, "me:1", "me:2"), withLine, frees, "-1", "[0 0 -1]", "s=3"),
	run("it grants to two", "release", stand(has(0, inf, "me:1", "me:2", "x:1"), "A1 B1 C1"), withLine, frees, "[0 1 -1 0 0]", "[0 0 -1 0 0]", "line<C1 sA sB sC> s=0 z<A1.0 B1.0 x:1>"),
	run("it grants to two, of whom its session knew nothing", "release", stand(has(0, inf, "me:1", "me:2", "x:1"), "A1 B1 C1"), withLine, alone, "[0 1 -1 0 0]", "[0 0 -1 0 0]", "line<C1 sA sB sC> s=0 z<A1.0 B1.0 x:1>"),
	run("nobody waits, as its session has it", "release", has(1, inf, "me:1", "me:2"), withLine, alone, "-1", "[0 0 -1]", "s=3"),
	run("it grants all", "release", stand(has(0, inf, "me:1", "me:2", "x:1"), "A2"), withLine, frees, "[0 1 -1 0 0]", "[0 0 -1]", "s=0 z<A2.0 A2.1 x:1>"),
	run("it has its permit", "release", stand(has(0, inf, "me:1", "me:2", "x:1", idgen.AppendPermits(nil, "A:1", 1)[0]), "A1 B1"), withLine, frees, "[0 1 -1 0 0]", "[0 0 -1]", "s=1 z<B1.0 A1.0 x:1>"),
	run("it has one of two", "release", stand(has(0, inf, "me:1", "me:2", "x:1", idgen.AppendPermits(nil, "A:2", 2)[0]), "A2"), withLine, frees, "[0 1 -1 0 0]", "[0 0 -1]", "s=1 z<A2.1 A2.0 x:1>"),
	run("it is not enough", "release", stand(has(0, inf, "me:1", "me:2", "x:1"), "A3 B1"), withLine, frees, "[0 1 -1 0 0]", "[0 0 -1 0 0]", "line<A3 B1 sA sB kA3> s=2 z<x:1>"),
	run("it calls for more than 64", "release", stand(has(70, inf, "me:1", "me:2"), "cA65 B1"), withLine, frees, "[0 1 -1 0 0]", "[0 0 -1 0 0]", "line<cA65 B1 sA sB c> s=72"),
	run("its session waits, and leaves it to others", "release", stand(has(0, inf, "me:1", "me:2"), "A1 B1"), withLine, share("A:7"), "[0 1 -1 0 0]", "[0 0 -1 0 0]", "line<A1 B1 sA sB> s=2"),
	run("another session waits", "release", stand(has(0, inf, "me:1", "me:2"), "B1 A1"), withLine, share("A:7"), "[0 1 -1 0 0]", "[0 0 -1]", "s=0 z<A1.0 B1.0>").Moving("line<B1 A1 sA sB c> s=2"),
	run("a session that polls waits", "release", append(has(0, inf, "me:1", "me:2"), []string{"ZADD", "line", "-8999999999999999", "bA", fmt.Sprint(fresh), "sA"}), withLine, share("A:7"), "[0 1 -1]", "[0 0 -1]", "line<bA sA> s=2"),
	run("it grants all who stand there, and a session that polls comes later", "release", stand(has(0, inf, "me:1", "me:2"), "A1", "-7000000000000001", "bB"), withLine, frees, "[0 1 -1 0 0]", "[0 0 -1]", "line<bB sA> s=1 z<A1.0>").Moving("line<bB A1 sA c> s=2"),
	run("the first has died", "release", stand(has(0, inf, "me:1", "me:2"), "A1 B1", fmt.Sprint(dead), "sA"), withLine, frees, "[0 1 -1 0 0]", "[0 0 -1]", "s=1 z<B1.0>").Moving("line<B1 sB c> s=2"),
	run("the first leaves", "release", stand(has(0, inf, "x:1"), "A2 B1"), withLine, leaves("A2"), "[0 0 -1 0 0]", "[0 0 -1 0 0]", "line<B1 sA sB> s=0 z<x:1>"),
	run("the first leaves what it kept", "release", stand(has(1, inf, "x:1"), "A2 B1", "8200000000000001", "k"+entry("A2")), withLine, leaves("A2"), "[0 0 -1 0 0]", "[0 0 -1]", "s=0 z<B1.0 x:1>"),
	run("the last leaves", "release", stand(has(1, inf, "x:1"), "A2"), withLine, leaves("A2"), "[0 0 -1 0 0]", "[0 0 -1]", "s=1 z<x:1>"),
	run("another leaves", "release", stand(has(0, inf, "x:1"), "A2 B1", "8000000000000001", "c"), withLine, leaves("B1"), "[0 0 -1 0 0]", "[0 0 -1 0 0]", "line<A2 sA sB c> s=0 z<x:1>"),

	run("it has less: it enters", "take", set("SET c 1"), countLine, takes("cA2"), "[0 "+never+" ~ ~ 1 -1]", "[0 "+never+" ~ ~ 1 -1]", "c=1 line<cA2 sA kcA2>"),
	run("it has enough, and the line is of another type", "take", set("SET c 5", "SET line x"), countLine, takes("cA2"), "WRONGTYPE", "WRONGTYPE", "c=5 line=x"),
	run("behind another", "take", stand(set("SET c 1"), "cA2"), countLine, takes("cB1"), "[0 -1 ~ ~ 1 -1]", "[0 -1 ~ ~ 1 -1]", "c=1 line<cA2 cB1 sA sB kcA2>"),
	run("too few for one that polls, which others may have", "take", set("SET c 1"), countLine, once("2", "b", "0", "0", "1", "s:", "0", "A", "100", "50", "ch", "PUBLISH"), "[0 -1 0 0 1 -1]", "[0 -1 0 0 1 -1]", "c=1"),
	run("it takes, and the next is called", "take", stand(set("SET c 2"), "cA1 cB1"), countLine, takes("cA1"), "[1 -1 0 1 1 -1]", "[1 -1 0 0 1 -1]", "c=1 line<cB1 sA sB c> r{3:7:1}"),
	run("it takes, and nobody waits", "take", stand(set("SET c 2"), "cA1"), countLine, takes("cA1"), "[1 -1 0 1 1 -1]", "[1 -1 0 0 1 -1]", "c=1 r{3:7:1}"),
	run("it leaves", "untake", stand(set("SET c 1"), "cA2 cB1"), locktest.Keys("c", "r", "line"),
		once("ch", "PUBLISH", "0", "s:", head("C", 2), "A:2"), "[0 0 -1]", "[0 0 -1]", "c=1 line<cB1 sA sB c> r{3:7:undone}"),
}

// Scripts do with a line what they say, and a second run changes nothing.
func TestLineScriptsAreSafeToRunTwice(t *testing.T) {
	locktest.RunScripts(t, timeless(), lineCases, entryNames.Replace)
}

// A server that takes no writes has said nothing about the line.
func TestLineScriptsPassErrorsOn(t *testing.T) { locktest.RefuseWrites(t, timeless(), lineCases) }

// Who lets an entry in tells its session; and who comes to be the first is told too, and asks if it still is.
func TestSessionsAreToldWhatTheirEntriesWereGiven(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		hears := locktest.Hears(t, s, "s:A")
		full := has(0, inf, "me:1", "me:2", "x:1")
		slow := was("A2", "s", false, 5*time.Millisecond)
		slow.Head = "Q" + slow.Head[1:]
		// A was heard of a while ago, and has just been passed by.
		doze := []string{"2", slow.Head + slow.Owner, fmt.Sprint(5000000000000000 - time.Now().UnixMilli() - 900_000), "sA", "7002999999999999", "pA"}
		// B was called, and has not been heard of since.
		gone := []string{fmt.Sprint(int64(dead)), "sB", fmt.Sprint(8000000000000000 + time.Now().UnixMilli() + 900), "c"}
		for _, c := range []struct {
			what, script string
			keys, args   []string
			state        [][]string
			want         []waiting.Message
		}{
			{"granted by a release", "release", withLine, frees, stand(full, "A2"), []waiting.Message{was("A2", "s", true, 0)}},
			{"granted behind another", "release", withLine, frees, stand(full, "B1 A1"), []waiting.Message{was("A1", "s", true, 0)}},
			{"the first, since another was granted", "release", withLine, frees, stand(full, "B2 A1"), []waiting.Message{was("A1", "s", false, 5*time.Millisecond)}},
			{"a slow taker that is passed by, and the first", "release", withLine, frees, stand(full, "B1 C2", append([]string{"3", entry("C2")}, doze...)...), []waiting.Message{slow}},
			{"a slow taker that comes to be the first, and the next is called", "release", withLine, leaves("B2"), stand(has(70, inf), "B2 cC65", append([]string{"3", entry("cC65")}, doze...)...), []waiting.Message{slow}},
			{"not the first", "release", withLine, frees, stand(full, "B2 C1 A1"), nil},
			{"called for more than 64", "release", withLine, frees, stand(has(70, inf, "me:1", "me:2"), "cA65"), []waiting.Message{was("cA65", "s", false, 0)}},
			{"the counter is gone, and the first makes it anew", "release", withLine, frees, stand(set("ZADD z "+inf+" me:1 "+inf+" me:2"), "A1 B1"), []waiting.Message{was("A1", "s", false, 0)}},
			{"behind one that is called", "release", withLine, frees, stand(has(70, inf, "me:1", "me:2"), "cB65 A1"), []waiting.Message{was("A1", "s", false, 5*time.Millisecond)}},
			{"behind one that keeps what comes free", "release", withLine, frees, stand(full, "B3 A1"), []waiting.Message{was("A1", "s", false, time.Second)}},
			{"the first, since another has left", "release", withLine, leaves("B2"), stand(has(0, inf, "x:1"), "B2 A1"), []waiting.Message{was("A1", "s", false, 5*time.Millisecond)}},
			{"the first has gone, and what was left to it is still left", "release", withLine, frees, stand(full, "B1 A1", gone...), []waiting.Message{was("A1", "s", false, 5*time.Millisecond)}},
			{"granted what another has kept", "release", withLine, leaves("B2"), stand(has(1, inf, "x:1"), "B2 A1"), []waiting.Message{was("A1", "s", true, 0)}},
			{"granted by one that comes", "acquire", withLine, come("B1", "0"), stand(has(2, inf, "x:1"), "A1"), []waiting.Message{was("A1", "s", true, 0)}},
			{"granted by a new limit", "set_limit", append(limitKeys[:4:4], "line"), args("5", "ch", "PUBLISH", "7", "60000", "0", "0", "s:"), stand(full, "A2"), []waiting.Message{was("A2", "s", true, 0)}},
			{"too much for a new limit", "set_limit", append(limitKeys[:4:4], "line"), args("1", "ch", "PUBLISH", "7", "60000", "0", "0", "s:"), stand(full, "B1 A2"), []waiting.Message{was("A2", "s", false, 0)}},
			{"granted by ids", "release_by_id", withLine, args("ch", "PUBLISH", "0", "0", "s:", "me:1"), stand(full, "A1"), []waiting.Message{was("A1", "s", true, 0)}},
			{"granted what had expired", "state", append(stateKeys[:3:3], "line"), args("5", "ch", "PUBLISH", "0", "s:"), stand(has(0, "5", "x:1"), "A1"), []waiting.Message{was("A1", "s", true, 0)}},
			{"deleted", "delete", append(limitKeys[:4:4], "line"), args("7", "60000", "ch", "PUBLISH", "s:"), stand(full, "A1 B1"), []waiting.Message{was("A1", "s", false, 0)}},
			{"a counter", "add", countLine, once("2", "ch", "PUBLISH", "0", "s:"), stand(set("SET c 0"), "cA1"), []waiting.Message{was("cA1", "c", false, 0)}},
			{"a counter that is set", "try_set", countLine, once("2", "ch", "PUBLISH", "0", "s:"), stand(nil, "cA1"), []waiting.Message{was("cA1", "c", false, 0)}},
		} {
			s.FlushAll(t)
			for _, cmd := range c.state {
				must(t, s.Do(t, cmd...).Error())
			}
			eval(t, s, c.script, c.keys, c.args...)
			must(t, s.Do(t, "PUBLISH", "s:A", "end").Error())
			got := toldUntilTheEnd(t, hears, c.what)
			if fmt.Sprint(got) != fmt.Sprint(c.want) {
				t.Errorf("%s: told %+v, want %+v", c.what, got, c.want)
			}
		}
	})
}

// A session that polls has what comes free shortly before it comes: the first of the line is called behind it.
func TestAReleaseLeavesPermitsToASessionThatPolls(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		hears := locktest.Hears(t, s, "s:A")
		comes := fmt.Sprint(-9000000000000000 + time.Now().UnixMilli()*1000 + 999) // within a second
		for _, cmd := range stand(has(0, inf, "me:1", "me:2"), "A2", comes, "bB") {
			must(t, s.Do(t, cmd...).Error())
		}
		eval(t, s, "release", withLine, frees...)
		must(t, s.Do(t, "PUBLISH", "s:A", "end").Error())
		if got := toldUntilTheEnd(t, hears, "a release"); len(got) != 1 || got[0].Granted || got[0].After <= 0 {
			t.Errorf("told %+v, want a call for later", got)
		}
		if free := value(t, s, "s"); free != "2" {
			t.Errorf("%s are free, want 2", free)
		}
	})
}

// was is the message to the session of an entry, but for its time.
func was(name string, key string, granted bool, ms time.Duration) waiting.Message {
	e := entry(name)
	m := waiting.Message{Head: e[:20], Owner: e[20:], Key: key, Granted: granted, After: ms}
	if granted {
		m.Lease = 9999 * time.Millisecond
	}
	return m
}

// toldUntilTheEnd returns what the session A has been told until "end" was published. Grants alone have a time,
// which is left out.
func toldUntilTheEnd(t *testing.T, hears <-chan string, what string) (got []waiting.Message) {
	t.Helper()
	for text := locktest.Get(t, hears, 10*time.Second, what); text != "end"; text = locktest.Get(t, hears, 10*time.Second, what) {
		m, ok := waiting.Parse(text, "A")
		if !ok || m.Granted != (m.At > 0) {
			t.Errorf("%s: told %q", what, text)
		}
		m.At = 0
		got = append(got, m)
	}
	return got
}

// While the slot moves they are refused, or do what they do elsewhere; but where the last permit has been given back,
// they call an entry instead: nothing can be granted there.
func TestLineScriptsWhileTheirSlotMoves(t *testing.T) {
	t.Parallel()
	locktest.WhileASlotMoves(t, timeless(), lineCases, entryNames.Replace)
}
