package mutex_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"relock/internal/mutex"
	"relock/internal/script"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
)

// What may be left of each key, and whether they have a TTL.
var partial = [][][]string{
	{nil, args("HSET lock me 2"), args(other), args("HSET lock A1 1"), args("SET lock x")},
	{nil, stand("f1 fb"), stand("f1 fb gb", heard("A", dead)), args(heard("A", fresh)), args("SET line x")},
	{nil, args("SADD ids a b"), args("HSET ids x y")},
	{nil, args("SET token 7"), args("SET token x"), args("SADD token x")},
	{args("PEXPIRE lock 500000", "PEXPIRE line 500000", "PEXPIRE ids 500000"), nil},
}

// What is run on them.
var partialCalls = map[string]struct {
	script     string
	keys, args []string
}{
	"a caller":                    {"acquire", line, come("f1")},
	"a caller behind":             {"acquire", line, come("fc")},
	"a plain caller":              {"acquire", line, come("g1")[:14]},
	"a caller that joins":         {"acquire", line, join("f2", "f1")},
	"a caller that wants tokens":  {"acquire", lineToken, come("ft")},
	"a named caller":              {"acquire", lineIDs, come("i1")},
	"a TryLock":                   {"acquire", line, try("o", "C1")},
	"a TryLock that wants tokens": {"acquire", lineToken, with(try("o", "C1"), 3, "1")},
	"a TryLock that re-enters":    {"acquire", lineIDs, try("r", "me")},
	"a release":                   {"release", line, free("me")},
	"a release that draws tokens": {"release", lineToken, freeFenced("me")},
	"a release by id":             {"release", lineIDs, freeOne("me")},
	"a release of all by id":      {"release", lineIDs, append(with(freeOne("me"), 15, "2"), "b")},
	"a caller that leaves":        {"release", line, leave("f1")},
	"a named caller that leaves":  {"release", lineIDs, leave("i1")},
	"a look":                      {"look", line, looks("f1", "f2")},
	"a look where all tell":       {"look", line, with(looks("fb"), 2, "1")},
	"a look that draws tokens":    {"look", lineToken, with(looks("fb"), 4, "1")},
	"a lock that is taken away":   {"force_unlock", line, force("me", "other")},
	"a question how many wait":    {"waiters", line[1:], []string{"0"}},
	"a caller whose turn it is":   {"acquire", line, with(come("fb"), 7, "1")},
	"a caller that hears of it":   {"acquire", line, with(come("fc"), 11, "1")},
	"a caller that was in front":  {"acquire", line, with(come("fc"), 16, "1")},
	"a plain caller that re-asks": {"acquire", line, with(come("g1")[:14], 8, "1")},
	"a release where all tell":    {"release", line, with(free("me"), 3, "1")},
	"a release that enters anew":  {"release", line, append(free("me"), "0", "0", "", entries["g1"], "0", "1")},
}

// How long the replies are that are lists.
var partialReplies = map[string][]int{"acquire": {4}, "release": {3, 5}, "look": {2, 3}}

const snapshotLua = `
local all = {}
for i, key in ipairs({'lock', 'line', 'ids', 'token'}) do
  local kind = redis.call('TYPE', key)
  kind = kind.ok or kind
  local how = {hash = {'HGETALL', key}, zset = {'ZRANGE', key, 0, -1, 'WITHSCORES'}, set = {'SMEMBERS', key}, string = {'GET', key}}
  local v = how[kind] and redis.call(unpack(how[kind])) or ''
  if type(v) == 'table' then
    if kind == 'set' then table.sort(v) end
    v = table.concat(v, ' ')
  end
  all[i] = kind .. ' ' .. v
  all[4 + i] = tostring(redis.call('PTTL', key) == -1)
end
return all`

// Whatever is left of the keys, every script answers; an error is WRONGTYPE and changes nothing; an answer
// leaves a lock or a line of another type as it is; no key but the token loses its TTL, or is made without one
// (R20). The ids are made anew, whatever stands there: they never speak of an earlier life.
func TestScriptsThatRefuseChangeNothing(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		every := 23 // scripts are slow on miniredis; a prime, so that each call meets each part of a state
		if testing.Short() {
			every = 71
		}
		if !s.IsMini() {
			redistest.SkipShort(t)
			every = 1
		}
		client, ctx := s.Client(t), locktest.Within(t, 5*time.Minute)
		known := map[string]string{} // the sources are long, and sent once
		for name, src := range mutex.ScriptSources() {
			sha, err := s.Do(t, "SCRIPT", "LOAD", src).ToString()
			locktest.Must(t, err)
			known[name] = sha
		}
		answers, refusals := 0, 0
		for i, state := range partialStates() {
			var cmds rueidis.Commands
			var names []string
			for call := range partialCalls {
				if (i+len(call))%every != 0 {
					continue
				}
				names = append(names, call)
				for _, cmd := range partialCase(state, call, known) {
					cmds = append(cmds, client.B().Arbitrary(cmd...).Build())
				}
			}
			if len(cmds) == 0 {
				continue
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

// partialStates returns all combinations of what may be left of the keys, as Lua.
func partialStates() []string {
	all := []string{"redis.call('DEL', 'lock', 'line', 'ids', 'token')\n"}
	for _, choices := range partial {
		var longer []string
		for _, src := range all {
			for _, cmds := range choices {
				with := src
				for _, cmd := range setup(cmds...) {
					with += "redis.call('" + strings.Join(cmd, "', '") + "')\n"
				}
				longer = append(longer, with)
			}
		}
		all = longer
	}
	return all
}

// partialCase returns the commands that make a state, run a script on it, and look.
func partialCase(state, call string, known map[string]string) (cmds [3][]string) {
	c := partialCalls[call]
	cmds[0] = []string{"EVAL", state + snapshotLua, "0"}
	cmds[1] = append(append([]string{"EVALSHA", known[c.script], fmt.Sprint(len(c.keys))}, c.keys...), c.args...)
	cmds[2] = []string{"EVAL", snapshotLua, "0"}
	return cmds
}

func checkPartial(t *testing.T, call string, made, run, looked rueidis.RedisResult) (answered bool) {
	t.Helper()
	before, err := made.AsStrSlice()
	locktest.Must(t, err)
	after, err := looked.AsStrSlice()
	locktest.Must(t, err)
	where := fmt.Sprintf("%s on %q", call, before)
	if err := run.Error(); err != nil {
		// Some servers put words in front of what a command says inside a script.
		if !strings.Contains(err.Error(), "WRONGTYPE Operation against a key holding the wrong kind of value") {
			t.Errorf("%s: %v", where, err)
		}
		if !slices.Equal(before, after) {
			t.Errorf("%s: refused, but Redis was changed to %q", where, after)
		}
		return false
	}
	if want, list := partialReplies[partialCalls[call].script], run; want != nil {
		// A number alone is short for a grant, or for a release that was one.
		if _, bad := list.AsInt64(); bad != nil {
			// A fifth element of a refusal is the owner.
			if n, _, bad := script.Numbers(nil, list, 4); bad != nil || !slices.Contains(want, len(n)) {
				t.Errorf("%s: replied %v, %v; want %v integers", where, n, bad, want)
			}
		}
	}
	for i, key := range []string{"lock", "line", "ids"} {
		if after[4+i] == "true" && before[4+i] != "true" {
			t.Errorf("%s: afterwards %s has no TTL", where, key)
		}
		if key != "ids" && before[i] == "string x" && after[i] != before[i] {
			t.Errorf("%s: afterwards %s is %q", where, key, after[i])
		}
	}
	return true
}
