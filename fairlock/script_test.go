package fairlock_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"relock/fairlock"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
)

// Places of two waiters of the session A, with the owners o1 and o2 and the ids i1 and i2.
const (
	p1 = "01000000;1:A2:o1i1"
	p2 = "01000000;1:A2:o2i2"
	f1 = "11000000;1:A2:o1i1" // the same, but they want tokens
	f2 = "11000000;1:A2:o2i2"

	fresh = " 2999999999999 " // it keeps its place for longer than it asked for
	stale = " 1 "

	heldByMe    = "HSET lock me 1"
	heldByOther = "HSET lock other 1"
	mineByID    = "SADD ids a"
)

var keys = locktest.Keys("lock", "queue", "heartbeats", "ids", "token")

// args are those of grant.lua, for a server of which PUBLISH does not tell who hears, and
// those of the script. The QueueLease is a thousand seconds.
func args(more ...string) []string {
	return append([]string{"ch", "PUBLISH", "s:", "0", "1000000"}, more...)
}

// telling are the same where PUBLISH tells: nobody hears.
func telling(more ...string) []string {
	a := args(more...)
	a[3] = "1"
	return a
}

// Arguments of acquire.lua for the first hold of an owner, and for one more.
func enter(owner, id, place string) []string {
	return args(owner, "300000", "0", id, "0", place, "0")
}

func enterFenced(owner, id, place string) []string {
	return args(owner, "300000", "0", id, "1", place, "0")
}

func again(owner, id string) []string { return args(owner, "300000", "1", id, "0", "", "0") }

// set is a state.
func set(cmds ...string) [][]string { return locktest.Setup(cmds...) }

// waiting is a state with these waiters, in this order, fresh or stale.
func waiting(heard string, places ...string) (cmds []string) {
	for i, p := range places {
		cmds = append(cmds, fmt.Sprint("ZADD queue ", i+1, " ", p), "ZADD heartbeats"+heard+p)
	}
	return cmds
}

// In replies and states "~" stands for whatever counts in ms: a TTL, or Redis's time.
var scriptCases = []locktest.ScriptCase{
	locktest.Case("a free lock is taken", "acquire", nil, keys, enter("o1", "i1", p1), "[1 1 0 1]", "[1 1 0 1]", "ids(i1) lock{o1:1}"),
	locktest.Case("a free lock is taken at once", "acquire", nil, keys, enter("o1", "i1", ""), "[1 1 0 1]", "[1 1 0 1]", "ids(i1) lock{o1:1}"),
	locktest.Case("the first that waits is told the TTL", "acquire", set(heldByOther, "PEXPIRE lock 900000"), keys, enter("o1", "i1", p1), "[0 ~ ~ 0]", "[0 ~ ~ 0]", "heartbeats<"+p1+"> lock{other:1} queue<"+p1+">"),
	locktest.Case("the second is told nothing", "acquire", set(append(waiting(fresh, p2), heldByOther, "PEXPIRE lock 900000")...), keys, enter("o1", "i1", p1), "[0 -1 ~ 0]", "[0 -1 ~ 0]", "heartbeats<"+p1+" "+p2+"> lock{other:1} queue<"+p2+" "+p1+">"),
	locktest.Case("a place is kept", "acquire", set(append(waiting(fresh, p1, p2), heldByOther)...), keys, enter("o1", "i1", p1), "[0 -1 ~ 0]", "[0 -1 ~ 0]", "heartbeats<"+p1+" "+p2+"> lock{other:1} queue<"+p1+" "+p2+">"),
	locktest.Case("who does not wait does not queue", "acquire", set(heldByOther), keys, enter("o1", "i1", ""), "[0 -1 ~ 0]", "[0 -1 ~ 0]", "lock{other:1}"),
	locktest.Case("who does not wait does not overtake", "acquire", set(waiting(fresh, p2)...), keys, enter("o1", "i1", ""), "[0 ~ ~ 0]", "[0 ~ ~ 0]", "ids(i2) lock{o2:1}"),
	locktest.Case("who comes does not overtake", "acquire", set(waiting(fresh, p2)...), keys, enter("o1", "i1", p1), "[0 ~ ~ 0]", "[0 ~ ~ 0]", "heartbeats<"+p1+"> ids(i2) lock{o2:1} queue<"+p1+">"),
	locktest.Case("the first is let in", "acquire", set(waiting(fresh, p1, p2)...), keys, enter("o1", "i1", p1), "[1 1 0 1]", "[1 1 0 1]", "heartbeats<"+p2+"> ids(i1) lock{o1:1} queue<"+p2+">"),
	locktest.Case("the dead leave the queue", "acquire", set(waiting(stale, p2)...), keys, enter("o1", "i1", p1), "[1 1 0 1]", "[1 1 0 1]", "ids(i1) lock{o1:1}"),
	locktest.Case("who cannot be told is passed over", "acquire", set(waiting(fresh, p2)...), keys, telling("o1", "300000", "0", "i1", "0", p1, "0"), "[1 1 0 1]", "[1 1 0 1]", "heartbeats<"+p2+"> ids(i1) lock{o1:1} queue<"+p2+">"),
	locktest.Case("a lost heartbeat is a dead waiter", "acquire", set("ZADD queue 1 "+p2), keys, enter("o1", "i1", p1), "[1 1 0 1]", "[1 1 0 1]", "ids(i1) lock{o1:1}"),
	locktest.Case("what is no place is no waiter", "acquire", set("ZADD queue 1 nonsense"), keys, enter("o1", "i1", p1), "[1 1 0 1]", "[1 1 0 1]", "ids(i1) lock{o1:1}"),
	locktest.Case("a grant is taken up", "acquire", set("HSET lock o1 1", "SADD ids i1", "PEXPIRE lock 1000"), keys, enter("o1", "i1", p1), "[1 1 0 1]", "[1 1 0 1]", "ids(i1) lock{o1:1}"),
	locktest.Case("a further hold is counted once", "acquire", set("HSET lock o1 1", "SADD ids i1"), keys, again("o1", "i9"), "[1 2 0 1]", "[1 2 0 1]", "ids(i1 i9) lock{o1:2}"),
	locktest.Case("an owner that got in elsewhere leaves the queue", "acquire", set(append(waiting(fresh, p1), "HSET lock o1 1", "SADD ids i9")...), keys, enter("o1", "i1", p1), "[1 2 0 1]", "[1 2 0 1]", "ids(i1 i9) lock{o1:2}"),
	locktest.Case("who gets in after its queue was deleted leaves nothing there", "acquire", set("ZADD heartbeats"+fresh+p1), keys, enter("o1", "i1", p1), "[1 1 0 1]", "[1 1 0 1]", "ids(i1) lock{o1:1}"),
	locktest.Case("a further hold does not queue", "acquire", set(append(waiting(fresh, p2), "HSET lock o1 1", "SADD ids i1")...), keys, again("o1", "i9"), "[1 2 0 1]", "[1 2 0 1]", "heartbeats<"+p2+"> ids(i1 i9) lock{o1:2} queue<"+p2+">"),
	locktest.Case("a further hold on a lost lock is no hold", "acquire", nil, keys, again("o1", "i9"), "[-1 0 0 0]", "[-1 0 0 0]", ""),
	locktest.Case("ids of an earlier life do not count", "acquire", set("SADD ids i1 i9"), keys, enter("o1", "i1", ""), "[1 1 0 1]", "[1 1 0 1]", "ids(i1) lock{o1:1}"),
	locktest.Case("a token is drawn once", "acquire", set("SET token 41"), keys, enterFenced("o1", "i1", f1), "[1 1 42 1]", "[1 1 42 1]", "ids(i1) lock{o1:1} token=42"),
	locktest.Case("a further hold needs no token", "acquire", set("HSET lock o1 1", "SADD ids i1", "SET token 42"), keys, args("o1", "300000", "1", "i9", "0", "", "0"), "[1 2 0 1]", "[1 2 0 1]", "ids(i1 i9) lock{o1:2} token=42"),
	locktest.Case("a token is drawn on demand, once", "acquire", set("HSET lock o1 1", "SADD ids i1", "SET token 42"), keys, args("o1", "300000", "1", "i9", "1", "", "0"), "[1 2 43 1]", "[1 2 43 1]", "ids(i1 i9) lock{o1:2} token=43"),
	locktest.Case("a named owner that is in elsewhere keeps the token", "acquire", set("HSET lock o1 1", "SADD ids i1", "SET token 42"), keys, enterFenced("o1", "i9", ""), "[1 2 42 1]", "[1 2 42 1]", "ids(i1 i9) lock{o1:2} token=42"),
	locktest.Case("a token is drawn for who is let in", "acquire", set(append(waiting(fresh, f2), "SET token 42")...), keys, enterFenced("o1", "i1", ""), "[0 ~ ~ 0]", "[0 ~ ~ 0]", "ids(i2) lock{o2:1} token=43"),
	locktest.Case("an unusable token changes nothing", "acquire", set("SET token x"), keys, enterFenced("o1", "i1", f1), "WRONGTYPE", "WRONGTYPE", "token=x"),
	locktest.Case("who wants no token draws none", "acquire", set("SET token x"), keys, enter("o1", "i1", p1), "[1 1 0 1]", "[1 1 0 1]", "ids(i1) lock{o1:1} token=x"),
	locktest.Case("a token that cannot be counted up changes nothing", "acquire", set("SET token 1.5"), keys, enterFenced("o1", "i1", ""), "WRONGTYPE", "WRONGTYPE", "token=1.5"),
	locktest.Case("no waiter is let in without its token", "acquire", set(append(waiting(fresh, f2), "SET token x")...), keys, enter("o1", "i1", p1), "[0 -1 ~ 0]", "[0 -1 ~ 0]", "heartbeats<"+p1+" "+f2+"> queue<"+f2+" "+p1+"> token=x"),
	locktest.Case("another type is not entered", "acquire", set("SET lock x"), keys, enter("o1", "i1", p1), "WRONGTYPE", "WRONGTYPE", "lock=x"),

	locktest.Case("the last hold frees the lock", "release", set(heldByMe, mineByID), keys, args("me", "0", "0", "01000000;1:A2:me", "1", "a"), "[0 1 -1]", "[0 0 -1]", ""),
	locktest.Case("the next is let in", "release", set(append(waiting(fresh, p1, p2), heldByMe, mineByID)...), keys, args("me", "0", "0", "01000000;1:A2:me", "1", "a"), "[0 1 -1]", "[0 0 -1]", "heartbeats<"+p2+"> ids(i1) lock{o1:1} queue<"+p2+">"),
	locktest.Case("the dead are skipped", "release", set(append(waiting(stale, p1), heldByMe, mineByID, "ZADD queue 2 "+p2, "ZADD heartbeats"+fresh+p2)...), keys, args("me", "0", "0", "01000000;1:A2:me", "1", "a"), "[0 1 -1]", "[0 0 -1]", "ids(i2) lock{o2:1}"),
	locktest.Case("a waiter that cannot be told stays in the queue", "release", set(append(waiting(fresh, p1), heldByMe, mineByID)...), keys, telling("me", "0", "0", "01000000;1:A2:me", "1", "a"), "[0 1 0]", "[0 0 -1]", "heartbeats<"+p1+"> queue<"+p1+">"),
	locktest.Case("who cannot be told anything is let in all the same", "release", set(heldByMe, mineByID, "ZADD queue 1 "+p1, "ZADD heartbeats 3000000000000.5 "+p1), keys, telling("me", "0", "0", "01000000;1:A2:me", "1", "a"), "[0 1 -1]", "[0 0 -1]", "ids(i1) lock{o1:1}"),
	locktest.Case("a token is drawn for the next", "release", set(append(waiting(fresh, f1), heldByMe, mineByID, "SET token 7")...), keys, args("me", "0", "0", "01000000;1:A2:me", "1", "a"), "[0 1 -1]", "[0 0 -1]", "ids(i1) lock{o1:1} token=8"),
	locktest.Case("several holds end at once", "release", set("HSET lock me 2", "SADD ids a b"), keys, args("me", "0", "0", "01000000;1:A2:me", "2", "b", "a"), "[0 1 -1]", "[0 0 -1]", ""),
	locktest.Case("an inner hold ends", "release", set(append(waiting(fresh, p1), "HSET lock me 2", "SADD ids a b")...), keys, args("me", "0", "0", "01000000;1:A2:me", "1", "b"), "[1 1 -1]", "[1 0 -1]", "heartbeats<"+p1+"> ids(a) lock{me:1} queue<"+p1+">"),
	locktest.Case("a hold of an earlier life is not released", "release", set(heldByMe, mineByID), keys, args("me", "0", "0", "01000000;1:A2:me", "1", "z"), "[1 0 -1]", "[1 0 -1]", "ids(a) lock{me:1}"),
	locktest.Case("somebody else's hold is not released", "release", set(heldByOther, mineByID), keys, args("me", "0", "0", "01000000;1:A2:me", "1", "a"), "[0 0 -1]", "[0 0 -1]", "ids(a) lock{other:1}"),
	locktest.Case("all of a private owner ends, whatever the ids", "release", set("HSET lock me 3", mineByID), keys, args("me", "2", "0", "01000000;1:A2:me", "0"), "[0 1 -1]", "[0 0 -1]", ""),
	locktest.Case("all of a private owner ends, and its place goes", "release", set(append(waiting(fresh, p1, p2), "HSET lock o1 2")...), keys, args("o1", "2", "0", "01000000;1:A2:o1", "1", "i1"), "[0 1 -1]", "[0 0 -1]", "ids(i2) lock{o2:1}"),
	locktest.Case("a private owner that is lost ends nothing", "release", set(heldByOther, mineByID), keys, args("me", "2", "0", "01000000;1:A2:me", "0"), "[0 0 -1]", "[0 0 -1]", "ids(a) lock{other:1}"),
	locktest.Case("the receivers are told where they are counted", "release", set(heldByMe, mineByID), keys, telling("me", "2", "0", "01000000;1:A2:me", "0"), "[0 1 0]", "[0 0 -1]", ""),
	locktest.Case("a waiter leaves the queue", "release", set(append(waiting(fresh, p1, p2), heldByOther)...), keys, args("o1", "0", "0", "01000000;1:A2:o1", "1", "i1"), "[0 0 -1]", "[0 0 -1]", "heartbeats<"+p2+"> lock{other:1} queue<"+p2+">"),
	locktest.Case("a waiter that was just let in passes it on", "release", set(append(waiting(fresh, p2), "HSET lock o1 1", "SADD ids i1")...), keys, args("o1", "0", "0", "01000000;1:A2:o1", "1", "i1"), "[0 1 -1]", "[0 0 -1]", "ids(i2) lock{o2:1}"),
	locktest.Case("a waiter that leaves a free lock lets the next one in", "release", set(waiting(fresh, p1, p2)...), keys, args("o1", "0", "0", "01000000;1:A2:o1", "1", "i1"), "[0 0 -1]", "[0 0 -1]", "ids(i2) lock{o2:1}"),
	locktest.Case("another type is left alone", "release", set("SET lock x"), keys, args("me", "0", "0", "01000000;1:A2:me", "1", "a"), "[0 0 -1]", "[0 0 -1]", "lock=x"),

	locktest.Case("places are kept", "heartbeat", set(append(waiting(stale, p1, p2), heldByOther, "PEXPIRE lock 900000")...), keys, args("0", p2, p1), "[-1 ~ ~]", "[-1 ~ ~]", "heartbeats<"+p1+" "+p2+"> lock{other:1} queue<"+p1+" "+p2+">"),
	locktest.Case("a place that is gone is not made", "heartbeat", set(heldByOther), keys, args("0", p1), "[0 ~]", "[0 ~]", "lock{other:1}"),
	locktest.Case("the first is let in by its heartbeat", "heartbeat", set(waiting(stale, p1)...), keys, telling("0", p1), "[0 ~]", "[0 ~]", "ids(i1) lock{o1:1}"),
	locktest.Case("another's heartbeat lets the first in", "heartbeat", set(waiting(fresh, p1, p2)...), keys, args("0", p2), "[~ ~]", "[~ ~]", "heartbeats<"+p2+"> ids(i1) lock{o1:1} queue<"+p2+">"),
	locktest.Case("a heartbeat does not overtake", "heartbeat", set(append(waiting(fresh, p1, p2), heldByOther)...), keys, args("0", p2), "[-1 ~]", "[-1 ~]", "heartbeats<"+p2+" "+p1+"> lock{other:1} queue<"+p1+" "+p2+">"),
	locktest.Case("an owner that got in elsewhere is to ask", "heartbeat", set(append(waiting(fresh, p1), "HSET lock o1 1", "SADD ids i9")...), keys, args("0", p1), "[0 ~]", "[0 ~]", "heartbeats<"+p1+"> ids(i9) lock{o1:1} queue<"+p1+">"),

	locktest.Case("any hold is forced", "force_unlock", set("HSET lock me 2", "SADD ids a b"), keys, args("r1"), "[me]", "[]", ""),
	locktest.Case("a free lock is not forced", "force_unlock", set(waiting(fresh, p1)...), keys, args("r1"), "[]", "[]", "heartbeats<"+p1+"> queue<"+p1+">"),
	locktest.Case("the next is let in, and not forced by a resend", "force_unlock", set(append(waiting(fresh, p1), heldByMe, mineByID)...), keys, args("r1"), "[me]", "[]", "ids(forced:r1 i1) lock{o1:1}"),
	locktest.Case("another type is not forced", "force_unlock", set("SET lock x"), keys, args("r1"), "WRONGTYPE", "WRONGTYPE", "lock=x"),

	locktest.Case("nobody waits", "waiters", nil, locktest.Keys("heartbeats"), locktest.Args("1000"), "0", "0", ""),
	locktest.Case("the living are counted", "waiters", set("ZADD heartbeats"+stale+p1, "ZADD heartbeats"+fresh+p2), locktest.Keys("heartbeats"), locktest.Args("1000"), "1", "1", "heartbeats<"+p1+" "+p2+">"),
	locktest.Case("another type is not counted", "waiters", set("SET heartbeats x"), locktest.Keys("heartbeats"), locktest.Args("1000"), "WRONGTYPE", "WRONGTYPE", "heartbeats=x"),
}

// timeless wraps scripts so that what counts in ms reads "~" in their replies.
func timeless() map[string]string {
	all := map[string]string{}
	for name, src := range fairlock.ScriptSources() {
		all[name] = "local function script()\n" + src + `
end
local reply = script()
if type(reply) == 'table' then
  for i, v in ipairs(reply) do
    if type(v) == 'number' and v > 100000 then
      reply[i] = '~'
    end
  end
end
return reply`
	}
	return all
}

func TestScriptsAreSafeToRunTwice(t *testing.T) {
	t.Parallel()
	locktest.RunScripts(t, timeless(), scriptCases)
}

// A server that takes no writes has said nothing about a lock (11.1).
func TestScriptsPassErrorsOn(t *testing.T) {
	t.Parallel()
	locktest.RefuseWrites(t, timeless(), scriptCases)
}

// Unlocking one hold shortens the lease to what the others deserve, if they are all of the
// session that says so: those of a private owner are.
func TestReleaseShortensOwnHolds(t *testing.T) {
	each(t, func(t *testing.T, s *redistest.Server) {
		src := fairlock.ScriptSources()["release"]
		for _, c := range []struct {
			what string
			args []string
			most int64
		}{
			{"a named owner that holds elsewhere", args("me", "0", "20000", "01:A2:me", "1", "a", "b"), 60000},
			{"a named owner with all ids", args("me", "0", "20000", "01:A2:me", "1", "a", "b", "c"), 20000},
			{"a private owner", args("me", "1", "20000", "01:A2:me", "1", "a"), 20000},
			{"what deserves more", args("me", "1", "90000", "01:A2:me", "1", "a"), 60000},
			{"what leaves the TTL", args("me", "1", "0", "01:A2:me", "1", "a"), 60000},
		} {
			s.FlushAll(t)
			for _, cmd := range set("HSET lock me 3", "SADD ids a b c", "PEXPIRE lock 60000", "PEXPIRE ids 60000") {
				must(t, s.Do(t, cmd...).Error())
			}
			must(t, s.Do(t, append(append([]string{"EVAL", src, "5"}, keys...), c.args...)...).Error())
			for _, key := range []string{"lock", "ids"} {
				if ms, err := s.Do(t, "PTTL", key).AsInt64(); err != nil || ms > c.most || ms < c.most-5000 {
					t.Errorf("%s: %s lives %d ms, %v; want %d", c.what, key, ms, err, c.most)
				}
			}
		}
	})
}

func TestScriptHeaders(t *testing.T) { locktest.CheckHeaders(t, fairlock.ScriptSources()) }

// A state of each key: what makes it, after the key was deleted.
var partial = [][]string{
	{"", "redis.call('HSET', 'lock', 'me', 2)", "redis.call('HSET', 'lock', 'other', 1)", "redis.call('SET', 'lock', 'x')"},
	{"", "redis.call('ZADD', 'queue', 1, ARGV[1], 2, ARGV[2])", "redis.call('SET', 'queue', 'x')"},
	{"", "redis.call('ZADD', 'heartbeats', ARGV[3], ARGV[1], ARGV[3], ARGV[2])", "redis.call('ZADD', 'heartbeats', 1, ARGV[1], ARGV[3], ARGV[2])", "redis.call('SADD', 'heartbeats', 'x')"},
	{"", "redis.call('SADD', 'ids', 'a', 'b')", "redis.call('HSET', 'ids', 'x', 'y')"},
	{"", "redis.call('SET', 'token', 7)", "redis.call('SET', 'token', 'x')", "redis.call('SET', 'token', '1.5')", "redis.call('SADD', 'token', 'x')"},
}

const snapshotLua = `
local all = {}
for i, key in ipairs({'lock', 'queue', 'heartbeats', 'ids', 'token'}) do
  local kind = redis.call('TYPE', key)
  kind = kind.ok or kind
  local how = {hash = {'HGETALL', key}, zset = {'ZRANGE', key, 0, -1, 'WITHSCORES'}, set = {'SMEMBERS', key}, string = {'GET', key}}
  local v = how[kind] and redis.call(unpack(how[kind])) or ''
  if type(v) == 'table' then
    if kind == 'set' then
      table.sort(v)
    end
    v = table.concat(v, ' ')
  end
  all[i] = kind .. ' ' .. v
  all[5 + i] = tostring(redis.call('PTTL', key) == -1)
end
return all`

// Whatever is left of the keys, every script answers; an error is WRONGTYPE and changes
// nothing; no key but the token is left without a TTL (R20).
func TestScriptsAnswerOnAnyPartialState(t *testing.T) {
	calls := map[string][]string{
		"acquire waiting":          args("me", "300000", "0", "i1", "1", "11:A2:mei1", "0"),
		"acquire at once":          args("new", "300000", "0", "i1", "1", "", "0"),
		"acquire unfenced":         args("new", "300000", "0", "i1", "0", "01:A3:newi1", "1"),
		"acquire nested":           args("me", "300000", "1", "c", "1", "", "0"),
		"release last":             args("me", "0", "0", "01:A2:me", "2", "a", "b"),
		"release one":              args("me", "0", "5000", "01:A2:me", "1", "a", "b"),
		"release all":              args("me", "2", "0", "01:A2:me", "0"),
		"release leaver":           telling("o1", "0", "0", "01:A2:o1", "1", "i1"),
		"heartbeat":                args("0", p1, "nonsense"),
		"heartbeat where all tell": telling("1", f2),
		"force_unlock":             args("r1"),
		"waiters":                  {"1000"},
	}
	each(t, func(t *testing.T, s *redistest.Server) {
		var combos [][]string
		var expand func(so []string)
		expand = func(so []string) {
			if len(so) == len(partial) {
				combos = append(combos, append([]string(nil), so...))
				return
			}
			for _, p := range partial[len(so)] {
				expand(append(so, p))
			}
		}
		expand(nil)
		client := s.Client(t)
		ctx := within(t, 60*time.Second)
		answers, refusals := 0, 0
		for i, state := range combos {
			var cmds rueidis.Commands
			var names []string
			for call, argv := range calls {
				if s.IsMini() && (i+len(call))%12 != 0 {
					continue // scripts are slow there
				}
				names = append(names, call)
				for _, cmd := range partialCase(state, call, argv) {
					cmds = append(cmds, client.B().Arbitrary(cmd...).Build())
				}
			}
			results := client.DoMulti(ctx, cmds...)
			for j, call := range names {
				if checkPartial(t, call, results[3*j], results[3*j+1], results[3*j+2]) {
					answers++
				} else {
					refusals++
				}
			}
			if t.Failed() {
				return
			}
		}
		t.Logf("%d answers, %d times WRONGTYPE", answers, refusals)
	})
}

// partialCase returns the commands that make a state, run a script on it, and look.
func partialCase(state []string, call string, argv []string) (cmds [3][]string) {
	src := "redis.call('DEL', 'lock', 'queue', 'heartbeats', 'ids', 'token')\n" + strings.Join(state, "\n") +
		"\nfor _, k in ipairs({'lock', 'queue', 'heartbeats', 'ids'}) do redis.call('PEXPIRE', k, 500000) end\n"
	name, _, _ := strings.Cut(call, " ")
	keys := keys
	if name == "waiters" {
		keys = locktest.Keys("heartbeats")
	}
	cmds[0] = []string{"EVAL", src + snapshotLua, "0", p1, f2, "2999999999999"}
	cmds[1] = append(append([]string{"EVAL", fairlock.ScriptSources()[name], strconv.Itoa(len(keys))}, keys...), argv...)
	cmds[2] = []string{"EVAL", snapshotLua, "0"}
	return cmds
}

func checkPartial(t *testing.T, call string, made, run, looked rueidis.RedisResult) (answered bool) {
	t.Helper()
	before, err := made.AsStrSlice()
	must(t, err)
	after, err := looked.AsStrSlice()
	must(t, err)
	where := fmt.Sprintf("%s on %q", call, before)
	if err := run.Error(); err != nil {
		if !strings.HasPrefix(err.Error(), "WRONGTYPE Operation against a key holding the wrong kind of value") {
			t.Errorf("%s: %v", where, err)
		}
		if fmt.Sprint(before) != fmt.Sprint(after) {
			t.Errorf("%s: refused, but Redis was changed to %q", where, after)
		}
		return false
	}
	name, _, _ := strings.Cut(call, " ")
	if want := map[string]int{"acquire": 4, "release": 3}[name]; want > 0 {
		if list, err := run.AsIntSlice(); err != nil || len(list) != want {
			t.Errorf("%s: replied %v, %v; want %d integers", where, list, err, want)
		}
	}
	for i, key := range []string{"lock", "queue", "heartbeats", "ids"} {
		if after[5+i] == "true" {
			t.Errorf("%s: afterwards %s has no TTL", where, key)
		}
	}
	return true
}
