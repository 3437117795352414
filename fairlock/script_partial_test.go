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

// A state of each key: what makes it, after the key was deleted.
var partial = [][]string{
	{"", "redis.call('HSET', 'lock', 'me', 2)", "redis.call('HSET', 'lock', 'other', 1)", "redis.call('SET', 'lock', 'x')"},
	{"", "redis.call('ZADD', 'queue', 1, ARGV[1], 2, ARGV[2])", "redis.call('SET', 'queue', 'x')"},
	{"", "redis.call('HSET', 'waiters', ARGV[1], ARGV[3], ARGV[2], ARGV[4], 'sA', ARGV[5])", "redis.call('HSET', 'waiters', ARGV[1], 'x', ARGV[2], ARGV[4], 'sA', ARGV[5])", "redis.call('SADD', 'waiters', 'x')"},
	{"", "redis.call('SADD', 'ids', 'a', 'b')", "redis.call('HSET', 'ids', 'x', 'y')"},
	{"", "redis.call('SET', 'token', 7)", "redis.call('SET', 'token', 'x')", "redis.call('SET', 'token', '1.5')", "redis.call('SADD', 'token', 'x')"},
}

const snapshotLua = `
local all = {}
for i, key in ipairs({'lock', 'queue', 'waiters', 'ids', 'token'}) do
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
		"acquire waiting":          enter(e1, ""),
		"acquire joining":          enter("00001A3", e2),
		"acquire by name":          enterNamed("1"),
		"acquire fenced":           enterFenced("00001A4", "3"),
		"acquire at once":          try("A5", "1", ""),
		"release":                  args("me", "00001A9"),
		"release leaver":           telling("A1", e1),
		"release by id, last":      args("me", "00001A#", "0", "0", "2", "a", "b"),
		"release by id, one":       args("me", "00001A#", "0", "5000", "1", "a", "b"),
		"heartbeat":                args("A", life, e1, "nonsense"),
		"heartbeat where all tell": telling("A", life, e2),
		"force_unlock":             args("r1"),
		"waiters":                  nil,
	}
	each(t, func(t *testing.T, s *redistest.Server) {
		client := s.Client(t)
		ctx := within(t, 5*time.Minute)
		answers, refusals := 0, 0
		every := 12
		if testing.Short() {
			every = 36
		}
		if !s.IsMini() {
			redistest.SkipShort(t) // all of them take two seconds
		}
		for i, state := range partialStates() {
			var cmds rueidis.Commands
			var names []string
			for call, argv := range calls {
				if s.IsMini() && (i+len(call))%every != 0 {
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

// partialStates returns all combinations of what may be left of the keys.
func partialStates() (all [][]string) {
	var expand func(so []string)
	expand = func(so []string) {
		if len(so) == len(partial) {
			all = append(all, append([]string(nil), so...))
			return
		}
		for _, p := range partial[len(so)] {
			expand(append(so, p))
		}
	}
	expand(nil)
	return all
}

// partialCase returns the commands that make a state, run a script on it, and look.
func partialCase(state []string, call string, argv []string) (cmds [3][]string) {
	src := "redis.call('DEL', 'lock', 'queue', 'waiters', 'ids', 'token')\n" + strings.Join(state, "\n") +
		"\nfor _, k in ipairs({'lock', 'queue', 'waiters', 'ids'}) do redis.call('PEXPIRE', k, 500000) end\n"
	name, _, _ := strings.Cut(call, " ")
	keys := keys
	if name == "waiters" {
		keys = locktest.Keys("waiters")
	}
	cmds[0] = []string{"EVAL", src + snapshotLua, "0", e1, e2, run1 + "3", fenced + "3", life + fresh}
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
		// A number alone is short for a grant, or for a release that was one.
		short, err := run.AsInt64()
		if list, bad := run.AsIntSlice(); (err != nil || strings.HasPrefix(call, "release by id") || name == "acquire" && short != 1) && (bad != nil || len(list) != want) {
			t.Errorf("%s: replied %v, %v; want %d integers", where, list, bad, want)
		}
	}
	for i, key := range []string{"lock", "queue", "waiters", "ids"} {
		if after[5+i] == "true" {
			t.Errorf("%s: afterwards %s has no TTL", where, key)
		}
	}
	return true
}
