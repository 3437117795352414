package fairlock_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/rueidis"

	"relock/fairlock"
	"relock/internal/locktest"
	"relock/internal/redistest"
)

// Places of two waiters of the session A, with the owners o1 and o2 and the ids i1 and i2.
const (
	p1 = "1:A2:o1i1"
	p2 = "1:A2:o2i2"

	fresh = " 9000000000000000 " // last heard of later than now
	stale = " 1 "

	heldByMe    = "HSET lock me 1"
	heldByOther = "HSET lock other 1"
	mineByID    = "SADD ids a"
)

var (
	plain  = locktest.Keys("lock", "queue", "beats", "ids")
	fenced = locktest.Keys("lock", "queue", "beats", "ids", "token")
)

// args are those of grant.lua, for a server of which PUBLISH does not tell who hears, and
// those of the script. The claim time is ten minutes.
func args(more ...string) []string {
	return append([]string{"ch", "PUBLISH", "s:", "0", "600000", "700000", "1000000"}, more...)
}

// telling are the same where PUBLISH tells: nobody hears.
func telling(more ...string) []string {
	a := args(more...)
	a[3] = "1"
	return a
}

func enter(owner, id, place string) []string { return args(owner, "300000", "0", id, "0", place) }

// set is a state.
func set(cmds ...string) [][]string { return locktest.Setup(cmds...) }

// waiting is a state with these waiters, in this order, fresh or stale.
func waiting(heard string, places ...string) (cmds []string) {
	for i, p := range places {
		cmds = append(cmds, fmt.Sprint("ZADD queue ", i+1, " ", p), "ZADD beats"+heard+p)
	}
	return cmds
}

// In replies and states "~" stands for whatever counts in ms: a TTL, or Redis's time.
var scriptCases = []locktest.ScriptCase{
	locktest.Case("a free lock is taken", "acquire", nil, plain, enter("o1", "i1", p1), "[1 1 0 1]", "[1 1 0 1]", "ids(i1) lock{o1:1}"),
	locktest.Case("a free lock is taken at once", "acquire", nil, plain, enter("o1", "i1", ""), "[1 1 0 1]", "[1 1 0 1]", "ids(i1) lock{o1:1}"),
	locktest.Case("the first that waits is told the TTL", "acquire", set(heldByOther, "PEXPIRE lock 900000"), plain, enter("o1", "i1", p1), "[0 ~ ~ 0]", "[0 ~ ~ 0]", "beats<"+p1+"> lock{other:1} queue<"+p1+">"),
	locktest.Case("the second is told nothing", "acquire", set(append(waiting(fresh, p2), heldByOther, "PEXPIRE lock 900000")...), plain, enter("o1", "i1", p1), "[0 -1 ~ 0]", "[0 -1 ~ 0]", "beats<"+p1+" "+p2+"> lock{other:1} queue<"+p2+" "+p1+">"),
	locktest.Case("a place is kept", "acquire", set(append(waiting(fresh, p1, p2), heldByOther)...), plain, enter("o1", "i1", p1), "[0 -1 ~ 0]", "[0 -1 ~ 0]", "beats<"+p1+" "+p2+"> lock{other:1} queue<"+p1+" "+p2+">"),
	locktest.Case("who does not wait does not queue", "acquire", set(heldByOther), plain, enter("o1", "i1", ""), "[0 -1 ~ 0]", "[0 -1 ~ 0]", "lock{other:1}"),
	locktest.Case("who does not wait does not overtake", "acquire", set(waiting(fresh, p2)...), plain, enter("o1", "i1", ""), "[0 ~ ~ 0]", "[0 ~ ~ 0]", "ids(i2) lock{o2:1}"),
	locktest.Case("who comes does not overtake", "acquire", set(waiting(fresh, p2)...), plain, enter("o1", "i1", p1), "[0 ~ ~ 0]", "[0 ~ ~ 0]", "beats<"+p1+"> ids(i2) lock{o2:1} queue<"+p1+">"),
	locktest.Case("the first is let in", "acquire", set(waiting(fresh, p1, p2)...), plain, enter("o1", "i1", p1), "[1 1 0 1]", "[1 1 0 1]", "beats<"+p2+"> ids(i1) lock{o1:1} queue<"+p2+">"),
	locktest.Case("the dead leave the queue", "acquire", set(waiting(stale, p2)...), plain, enter("o1", "i1", p1), "[1 1 0 1]", "[1 1 0 1]", "ids(i1) lock{o1:1}"),
	locktest.Case("who cannot be told is passed over", "acquire", set(waiting(fresh, p2)...), plain, telling("o1", "300000", "0", "i1", "0", p1), "[1 1 0 1]", "[1 1 0 1]", "beats<"+p2+"> ids(i1) lock{o1:1} queue<"+p2+">"),
	locktest.Case("a lost heartbeat is a dead waiter", "acquire", set("ZADD queue 1 "+p2), plain, enter("o1", "i1", p1), "[1 1 0 1]", "[1 1 0 1]", "ids(i1) lock{o1:1}"),
	locktest.Case("what is no place is no waiter", "acquire", set("ZADD queue 1 nonsense"), plain, enter("o1", "i1", p1), "[1 1 0 1]", "[1 1 0 1]", "ids(i1) lock{o1:1}"),
	locktest.Case("a grant is taken up", "acquire", set("HSET lock o1 1", "SADD ids i1", "PEXPIRE lock 1000"), plain, enter("o1", "i1", p1), "[1 1 0 1]", "[1 1 0 1]", "ids(i1) lock{o1:1}"),
	locktest.Case("a further hold is counted once", "acquire", set("HSET lock o1 1", "SADD ids i1"), plain, args("o1", "300000", "1", "i9", "0", ""), "[1 2 0 1]", "[1 2 0 1]", "ids(i1 i9) lock{o1:2}"),
	locktest.Case("an owner that got in elsewhere leaves the queue", "acquire", set(append(waiting(fresh, p1), "HSET lock o1 1", "SADD ids i9")...), plain, enter("o1", "i1", p1), "[1 2 0 1]", "[1 2 0 1]", "ids(i1 i9) lock{o1:2}"),
	locktest.Case("a further hold does not queue", "acquire", set(append(waiting(fresh, p2), "HSET lock o1 1", "SADD ids i1")...), plain, args("o1", "300000", "1", "i9", "0", ""), "[1 2 0 1]", "[1 2 0 1]", "beats<"+p2+"> ids(i1 i9) lock{o1:2} queue<"+p2+">"),
	locktest.Case("a further hold on a lost lock is no hold", "acquire", nil, plain, args("o1", "300000", "1", "i9", "0", ""), "[-1 0 0 0]", "[-1 0 0 0]", ""),
	locktest.Case("ids of an earlier life do not count", "acquire", set("SADD ids i1 i9"), plain, enter("o1", "i1", ""), "[1 1 0 1]", "[1 1 0 1]", "ids(i1) lock{o1:1}"),
	locktest.Case("a token is drawn once", "acquire", set("SET token 41"), fenced, enter("o1", "i1", p1), "[1 1 42 1]", "[1 1 42 1]", "ids(i1) lock{o1:1} token=42"),
	locktest.Case("a further hold keeps the token", "acquire", set("HSET lock o1 1", "SADD ids i1", "SET token 42"), fenced, args("o1", "300000", "1", "i9", "0", ""), "[1 2 42 1]", "[1 2 42 1]", "ids(i1 i9) lock{o1:2} token=42"),
	locktest.Case("a token is drawn on demand, once", "acquire", set("HSET lock o1 1", "SADD ids i1", "SET token 42"), fenced, args("o1", "300000", "1", "i9", "1", ""), "[1 2 43 1]", "[1 2 43 1]", "ids(i1 i9) lock{o1:2} token=43"),
	locktest.Case("a token is drawn for who is let in", "acquire", set(append(waiting(fresh, p2), "SET token 42")...), fenced, enter("o1", "i1", ""), "[0 ~ ~ 0]", "[0 ~ ~ 0]", "ids(i2) lock{o2:1} token=43"),
	locktest.Case("an unusable token changes nothing", "acquire", set("SET token x"), fenced, enter("o1", "i1", p1), "WRONGTYPE", "WRONGTYPE", "token=x"),
	locktest.Case("another type is not entered", "acquire", set("SET lock x"), plain, enter("o1", "i1", p1), "WRONGTYPE", "WRONGTYPE", "lock=x"),

	locktest.Case("the last hold frees the lock", "release", set(heldByMe, mineByID), plain, args("me", "0", "0", "1:A2:me", "a"), "[0 1]", "[0 0]", ""),
	locktest.Case("the next is let in", "release", set(append(waiting(fresh, p1, p2), heldByMe, mineByID)...), plain, args("me", "0", "0", "1:A2:me", "a"), "[0 1]", "[0 0]", "beats<"+p2+"> ids(i1) lock{o1:1} queue<"+p2+">"),
	locktest.Case("the dead are skipped", "release", set(append(waiting(stale, p1), heldByMe, mineByID, "ZADD queue 2 "+p2, "ZADD beats"+fresh+p2)...), plain, args("me", "0", "0", "1:A2:me", "a"), "[0 1]", "[0 0]", "ids(i2) lock{o2:1}"),
	locktest.Case("who cannot be told keeps his place", "release", set(append(waiting(fresh, p1), heldByMe, mineByID)...), plain, telling("me", "0", "0", "1:A2:me", "a"), "[0 1]", "[0 0]", "beats<"+p1+"> queue<"+p1+">"),
	locktest.Case("a token is drawn for the next", "release", set(append(waiting(fresh, p1), heldByMe, mineByID, "SET token 7")...), fenced, args("me", "0", "0", "1:A2:me", "a"), "[0 1]", "[0 0]", "ids(i1) lock{o1:1} token=8"),
	locktest.Case("several holds end at once", "release", set("HSET lock me 2", "SADD ids a b"), plain, args("me", "0", "0", "1:A2:me", "b", "a"), "[0 1]", "[0 0]", ""),
	locktest.Case("an inner hold ends", "release", set(append(waiting(fresh, p1), "HSET lock me 2", "SADD ids a b")...), plain, args("me", "1", "0", "1:A2:me", "b"), "[1 1]", "[1 0]", "beats<"+p1+"> ids(a) lock{me:1} queue<"+p1+">"),
	locktest.Case("a hold of an earlier life is not released", "release", set(heldByMe, mineByID), plain, args("me", "0", "0", "1:A2:me", "z"), "[1 0]", "[1 0]", "ids(a) lock{me:1}"),
	locktest.Case("somebody else's hold is not released", "release", set(heldByOther, mineByID), plain, args("me", "0", "0", "1:A2:me", "a"), "[0 0]", "[0 0]", "ids(a) lock{other:1}"),
	locktest.Case("a waiter leaves the queue", "release", set(append(waiting(fresh, p1, p2), heldByOther)...), plain, args("o1", "0", "0", "1:A2:o1", "i1"), "[0 0]", "[0 0]", "beats<"+p2+"> lock{other:1} queue<"+p2+">"),
	locktest.Case("a waiter that was just let in passes it on", "release", set(append(waiting(fresh, p2), "HSET lock o1 1", "SADD ids i1")...), plain, args("o1", "0", "0", "1:A2:o1", "i1"), "[0 1]", "[0 0]", "ids(i2) lock{o2:1}"),
	locktest.Case("a waiter that leaves a free lock lets the next one in", "release", set(waiting(fresh, p1, p2)...), plain, args("o1", "0", "0", "1:A2:o1", "i1"), "[0 0]", "[0 0]", "ids(i2) lock{o2:1}"),
	locktest.Case("another type is left alone", "release", set("SET lock x"), plain, args("me", "0", "0", "1:A2:me", "a"), "[0 0]", "[0 0]", "lock=x"),

	locktest.Case("places are kept", "beat", set(append(waiting(stale, p1, p2), heldByOther, "PEXPIRE lock 900000")...), plain, args(p2, p1), "[-1 ~ ~]", "[-1 ~ ~]", "beats<"+p1+" "+p2+"> lock{other:1} queue<"+p1+" "+p2+">"),
	locktest.Case("a place that is gone is not made", "beat", set(heldByOther), plain, args(p1), "[0 ~]", "[0 ~]", "lock{other:1}"),
	locktest.Case("the first is let in by its beat", "beat", set(waiting(stale, p1)...), plain, telling(p1), "[0 ~]", "[0 ~]", "ids(i1) lock{o1:1}"),
	locktest.Case("another's beat lets the first in", "beat", set(waiting(fresh, p1, p2)...), plain, args(p2), "[~ ~]", "[~ ~]", "beats<"+p2+"> ids(i1) lock{o1:1} queue<"+p2+">"),
	locktest.Case("a beat does not overtake", "beat", set(append(waiting(fresh, p1, p2), heldByOther)...), plain, args(p2), "[-1 ~]", "[-1 ~]", "beats<"+p2+" "+p1+"> lock{other:1} queue<"+p1+" "+p2+">"),
	locktest.Case("an owner that got in elsewhere is to ask", "beat", set(append(waiting(fresh, p1), "HSET lock o1 1", "SADD ids i9")...), plain, args(p1), "[0 ~]", "[0 ~]", "beats<"+p1+"> ids(i9) lock{o1:1} queue<"+p1+">"),

	locktest.Case("any hold is forced", "force_unlock", set("HSET lock me 2", "SADD ids a b"), plain, args("r1"), "[me]", "[]", ""),
	locktest.Case("a free lock is not forced", "force_unlock", set(waiting(fresh, p1)...), plain, args("r1"), "[]", "[]", "beats<"+p1+"> queue<"+p1+">"),
	locktest.Case("the next is let in, and not forced by a resend", "force_unlock", set(append(waiting(fresh, p1), heldByMe, mineByID)...), plain, args("r1"), "[me]", "[]", "ids(forced:r1 i1) lock{o1:1}"),
	locktest.Case("another type is not forced", "force_unlock", set("SET lock x"), plain, args("r1"), "WRONGTYPE", "WRONGTYPE", "lock=x"),

	locktest.Case("nobody waits", "waiters", nil, locktest.Keys("beats"), locktest.Args("1000"), "0", "0", ""),
	locktest.Case("the living are counted", "waiters", set("ZADD beats"+stale+p1, "ZADD beats"+fresh+p2), locktest.Keys("beats"), locktest.Args("1000"), "1", "1", "beats<"+p1+" "+p2+">"),
	locktest.Case("another type is not counted", "waiters", set("SET beats x"), locktest.Keys("beats"), locktest.Args("1000"), "WRONGTYPE", "WRONGTYPE", "beats=x"),
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

func TestScriptHeaders(t *testing.T) { locktest.CheckHeaders(t, fairlock.ScriptSources()) }

// A state of each key: what makes it, after the key was deleted.
var partial = [][]string{
	{"", "return redis.call('HSET', 'lock', 'me', 2)", "return redis.call('HSET', 'lock', 'other', 1)", "return redis.call('SET', 'lock', 'x')"},
	{"", "redis.call('ZADD', 'queue', 1, ARGV[1], 2, ARGV[2])", "redis.call('SET', 'queue', 'x')"},
	{"", "redis.call('ZADD', 'beats', ARGV[3], ARGV[1], ARGV[3], ARGV[2])", "redis.call('ZADD', 'beats', 1, ARGV[1], ARGV[3], ARGV[2])", "redis.call('SADD', 'beats', 'x')"},
	{"", "redis.call('SADD', 'ids', 'a', 'b')", "redis.call('HSET', 'ids', 'x', 'y')"},
	{"", "redis.call('SET', 'token', 7)", "redis.call('SET', 'token', 'x')", "redis.call('SET', 'token', '1.5')", "redis.call('SADD', 'token', 'x')"},
}

const snapshotLua = `
local all = {}
for i, key in ipairs({'lock', 'queue', 'beats', 'ids', 'token'}) do
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
		"acquire waiting":     args("me", "300000", "0", "i1", "0", "1:A2:mei1"),
		"acquire at once":     args("new", "300000", "0", "i1", "0", ""),
		"acquire nested":      args("me", "300000", "1", "c", "1", ""),
		"release last":        args("me", "0", "0", "1:A2:me", "a", "b"),
		"release one":         args("me", "1", "5000", "1:A2:me", "a"),
		"release leaver":      telling("o1", "0", "0", "1:A2:o1", "i1"),
		"beat":                args(p1, "nonsense"),
		"beat where all tell": telling(p2),
		"force_unlock":        args("r1"),
		"waiters":             {"1000"},
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
		answers, refusals := 0, 0
		for i, c := range combos {
			for call, argv := range calls {
				if s.IsMini() && (i+len(call))%3 != 0 {
					continue // scripts are slow there
				}
				if checkPartial(t, s, c, call, argv) {
					answers++
				} else {
					refusals++
				}
				if t.Failed() {
					return
				}
			}
		}
		t.Logf("%d answers, %d times WRONGTYPE", answers, refusals)
	})
}

func checkPartial(t *testing.T, s *redistest.Server, state []string, call string, argv []string) (answered bool) {
	t.Helper()
	src := "redis.call('DEL', 'lock', 'queue', 'beats', 'ids', 'token')\n"
	for _, make := range state {
		src += strings.TrimPrefix(make, "return ") + "\n"
	}
	src += "for _, k in ipairs({'lock', 'queue', 'beats', 'ids'}) do redis.call('PEXPIRE', k, 500000) end\n"
	snapshot := func(src string) []string {
		list, err := s.Do(t, "EVAL", src+snapshotLua, "0", p1, p2, "9000000000000000").AsStrSlice()
		must(t, err)
		return list
	}
	before := snapshot(src)
	name, _, _ := strings.Cut(call, " ")
	keys := fenced
	if name == "waiters" {
		keys = locktest.Keys("beats")
	}
	r := s.Do(t, append(append([]string{"EVAL", fairlock.ScriptSources()[name], strconv.Itoa(len(keys))}, keys...), argv...)...)
	after := snapshot("")
	where := fmt.Sprintf("%s on %q", call, before)
	if err := r.Error(); err != nil && !rueidis.IsRedisNil(err) {
		if !strings.HasPrefix(err.Error(), "WRONGTYPE Operation against a key holding the wrong kind of value") {
			t.Errorf("%s: %v", where, err)
		}
		if fmt.Sprint(before) != fmt.Sprint(after) {
			t.Errorf("%s: refused, but Redis was changed to %q", where, after)
		}
		return false
	}
	if name == "acquire" || name == "release" {
		want := map[string]int{"acquire": 4, "release": 2}[name]
		if list, err := r.AsIntSlice(); err != nil || len(list) != want {
			t.Errorf("%s: replied %v, %v; want %d integers", where, list, err, want)
		}
	}
	for i, key := range []string{"lock", "queue", "beats", "ids"} {
		if after[5+i] == "true" {
			t.Errorf("%s: afterwards %s has no TTL", where, key)
		}
	}
	return true
}
