package rlock_test

import (
	"fmt"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"testing"

	"relock/internal/redistest"
	"relock/rlock"
)

// scriptCase runs one script by hand, twice, on the state that setup leaves.
type scriptCase struct {
	name   string
	script string
	setup  [][]string
	keys   []string
	args   []string
	first  string // the reply of the first run
	again  string // of the second: the same, but for "changed"
	state  string // HGETALL of lock, and whether other keys exist
}

const (
	held1 = "HSET lock me 1"
	held2 = "HSET lock me 2"
	other = "HSET lock other 1"
	ttl   = "PEXPIRE lock 60000"
)

func setup(cmds ...string) (all [][]string) {
	for _, c := range cmds {
		all = append(all, strings.Fields(c))
	}
	return all
}

var scriptCases = []scriptCase{
	{"a free lock is taken", "acquire", nil, keys("lock"), args("me", "30000"), "[1 1 0 1]", "[1 1 0 0]", "lock{me:1}"},
	{"somebody else's lock is refused", "acquire", setup(other), keys("lock"), args("me", "30000"), "[0 -1 0 0]", "[0 -1 0 0]", "lock{other:1}"},
	{"a token is drawn once", "acquire", setup("SET token 41"), keys("lock", "token"), args("me", "30000"), "[1 1 42 1]", "[1 1 42 0]", "lock{me:1} token=42"},
	{"an unusable token changes nothing", "acquire", setup("SET token x"), keys("lock", "token"), args("me", "30000"), "WRONGTYPE", "WRONGTYPE", "token=x"},
	{"another type changes nothing", "acquire", setup("SET lock x"), keys("lock"), args("me", "30000"), "WRONGTYPE", "WRONGTYPE", "lock=x"},

	{"the last hold frees the lock", "release", setup(held1, ttl), keys("lock", "ids"), args("me", "ch", "PUBLISH", "0", "0"), "[0 1]", "[0 0]", ""},
	{"a hold alone needs no ids", "release", setup(held1, ttl), keys("lock"), args("me", "ch", "PUBLISH", "0", "0"), "[0 1]", "[0 0]", ""},
	{"holds by id ask for the ids", "release", setup(held2, ttl), keys("lock"), args("me", "ch", "PUBLISH", "0", "0"), "[2 0]", "[2 0]", "lock{me:2}"},
	{"what is held by id stays", "release", setup("HSET lock me 3", ttl, "SADD ids a b"), keys("lock", "ids"), args("me", "ch", "PUBLISH", "2", "0"), "[2 1]", "[2 0]", "ids(a b released:me) lock{me:2}"},
	{"somebody else's hold is not released", "release", setup(other), keys("lock", "ids"), args("me", "ch", "PUBLISH", "0", "0"), "[0 0]", "[0 0]", "lock{other:1}"},
	{"another type is left alone", "release", setup("SET lock x"), keys("lock", "ids"), args("me", "ch", "PUBLISH", "0", "0"), "[0 0]", "[0 0]", "lock=x"},

	{"an owner enters by id", "acquire_by_id", nil, keys("lock", "ids"), args("me", "30000", "0", "a", "0"), "[1 1 0 1]", "[1 1 0 1]", "ids(a) lock{me:1}"},
	{"a hold by id is counted once", "acquire_by_id", setup(held2, ttl, "SADD ids b"), keys("lock", "ids"), args("me", "30000", "1", "a", "0"), "[1 3 0 1]", "[1 3 0 1]", "ids(a b) lock{me:3}"},
	{"a further hold keeps the token", "acquire_by_id", setup(held1, ttl, "SET token 7"), keys("lock", "ids", "token"), args("me", "30000", "1", "a", "0"), "[1 2 7 1]", "[1 2 7 1]", "ids(a) lock{me:2} token=7"},
	{"a token is drawn where the owner enters", "acquire_by_id", setup("SET token 7"), keys("lock", "ids", "token"), args("me", "30000", "0", "a", "0"), "[1 1 8 1]", "[1 1 8 1]", "ids(a) lock{me:1} token=8"},
	{"a token is drawn on demand, once", "acquire_by_id", setup(held1, ttl, "SET token 7"), keys("lock", "ids", "token"), args("me", "30000", "1", "a", "1"), "[1 2 8 1]", "[1 2 8 1]", "ids(a) lock{me:2} token=8"},
	{"an unusable token changes nothing", "acquire_by_id", setup("SET token x"), keys("lock", "ids", "token"), args("me", "30000", "0", "a", "1"), "WRONGTYPE", "WRONGTYPE", "token=x"},
	{"another owner is refused", "acquire_by_id", setup(other), keys("lock", "ids"), args("me", "30000", "0", "a", "0"), "[0 -1 0 0]", "[0 -1 0 0]", "lock{other:1}"},
	{"a further hold on a lost lock is no hold", "acquire_by_id", nil, keys("lock", "ids"), args("me", "30000", "1", "a", "0"), "[-1 0 0 0]", "[-1 0 0 0]", ""},
	{"ids of an earlier life do not count", "acquire_by_id", setup("SADD ids a b"), keys("lock", "ids"), args("me", "30000", "0", "a", "0"), "[1 1 0 1]", "[1 1 0 1]", "ids(a) lock{me:1}"},
	{"another type is not entered", "acquire_by_id", setup("SET lock x"), keys("lock", "ids"), args("me", "30000", "0", "a", "0"), "WRONGTYPE", "WRONGTYPE", "lock=x"},

	{"a hold by id ends", "release_by_id", setup("HSET lock me 3", ttl, "SADD ids a b"), keys("lock", "ids"), args("me", "ch", "PUBLISH", "2", "0", "a"), "[2 1]", "[2 0]", "ids(b) lock{me:2}"},
	{"the last hold by id frees", "release_by_id", setup(held1, ttl, "SADD ids a released:me"), keys("lock", "ids"), args("me", "ch", "PUBLISH", "0", "0", "a"), "[0 1]", "[0 0]", ""},
	{"several holds by id end at once", "release_by_id", setup(held2, ttl, "SADD ids a b"), keys("lock", "ids"), args("me", "ch", "PUBLISH", "0", "0", "b", "a"), "[0 1]", "[0 0]", ""},
	{"a hold of an earlier life is not released", "release_by_id", setup(held1, ttl, "SADD ids b"), keys("lock", "ids"), args("me", "ch", "PUBLISH", "0", "0", "a"), "[1 0]", "[1 0]", "ids(b) lock{me:1}"},
	{"nothing is held by id", "release_by_id", setup(other, "SADD ids a"), keys("lock", "ids"), args("me", "ch", "PUBLISH", "0", "0", "a"), "[0 0]", "[0 0]", "ids(a) lock{other:1}"},

	{"many are renewed, each for itself", "renew", setup(held1, ttl, "SET token x", "HSET req other 1"), keys("lock", "token", "req", "gone", "token"), args("30000", "me", "me", "me", "me", ""), "[1 0 0 0 1]", "[1 0 0 0 1]", "lock{me:1} req{other:1} token=x"},
	{"a hold is extended", "extend", setup(held1, ttl), keys("lock"), args("me", "90000", "0"), "1", "1", "lock{me:1}"},
	{"nothing is extended", "extend", setup(other), keys("lock"), args("me", "90000", "1"), "0", "0", "lock{other:1}"},
	{"any hold is forced", "force_unlock", setup(held2, ttl), keys("lock"), args("ch", "PUBLISH", "s:"), "[me]", "[]", ""},
	{"another type is not forced", "force_unlock", setup("SET lock x"), keys("lock"), args("ch", "PUBLISH", "s:"), "WRONGTYPE", "WRONGTYPE", "lock=x"},
	{"a lock is described", "state", setup(held2), keys("lock"), nil, "[-1 me 2]", "[-1 me 2]", "lock{me:2}"},
	{"a free lock is described", "state", nil, keys("lock"), nil, "[-2]", "[-2]", ""},
	{"another type is not described", "state", setup("SET lock x"), keys("lock"), nil, "WRONGTYPE", "WRONGTYPE", "lock=x"},
}

func keys(k ...string) []string { return k }
func args(a ...string) []string { return a }

// Every script, run twice with the same arguments, gives the same state, and the same
// reply but for the "changed" flag by which a resend is told from a loss.
func TestScriptsAreSafeToRunTwice(t *testing.T) {
	sources := rlock.ScriptSources()
	seen := map[string]bool{}
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		for _, c := range scriptCases {
			seen[c.script] = true
			t.Run(c.script+"/"+c.name, func(t *testing.T) {
				s.FlushAll(t)
				for _, cmd := range c.setup {
					must(t, s.Do(t, cmd...).Error())
				}
				eval := append([]string{"EVAL", sources[c.script], strconv.Itoa(len(c.keys))}, append(c.keys, c.args...)...)
				for i, want := range []string{c.first, c.again} {
					if got := reply(s, t, eval); got != want {
						t.Errorf("run %d replied %s, want %s", i+1, got, want)
					}
					if got := describe(t, s); got != c.state {
						t.Errorf("after run %d Redis has %q, want %q", i+1, got, c.state)
					}
				}
			})
		}
	})
	for name := range sources {
		if !seen[name] {
			t.Errorf("%s.lua has no case", name)
		}
	}
}

func reply(s *redistest.Server, t *testing.T, cmd []string) string {
	m, err := s.Do(t, cmd...).ToAny()
	if err != nil {
		if word, _, _ := strings.Cut(err.Error(), " "); word == "WRONGTYPE" {
			return word
		}
		return err.Error()
	}
	return fmt.Sprint(m)
}

// describe returns all keys with what they hold.
func describe(t *testing.T, s *redistest.Server) string {
	var all []string
	for _, k := range s.Keys(t) {
		if h, err := s.Do(t, "HGETALL", k).AsStrMap(); err == nil {
			for f, v := range h {
				all = append(all, fmt.Sprintf("%s{%s:%s}", k, f, v))
			}
			continue
		}
		if m, err := s.Do(t, "SMEMBERS", k).AsStrSlice(); err == nil {
			sort.Strings(m)
			all = append(all, fmt.Sprintf("%s(%s)", k, strings.Join(m, " ")))
			continue
		}
		v, err := s.Do(t, "GET", k).ToString()
		must(t, err)
		all = append(all, k+"="+v)
	}
	return strings.Join(all, " ")
}

// A lease belongs to the acquisition: a nested shorter one does not cut the outer, and
// releasing an inner hold never lengthens what is left (R24). No lock is ever without
// a TTL.
func TestScriptsKeepTheLongerLease(t *testing.T) {
	src := rlock.ScriptSources()
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		pttl := func() int64 {
			n, err := s.Do(t, "PTTL", "lock").AsInt64()
			must(t, err)
			return n
		}
		for _, step := range []struct {
			what     string
			cmd      []string
			from, to int64
		}{
			{"outer", []string{"EVAL", src["acquire"], "1", "lock", "me", "60000"}, 59000, 60000},
			{"a shorter inner one", []string{"EVAL", src["acquire_by_id"], "2", "lock", "ids", "me", "5000", "1", "a", "0"}, 58000, 60000},
			{"a longer inner one", []string{"EVAL", src["acquire_by_id"], "2", "lock", "ids", "me", "90000", "2", "b", "0"}, 89000, 90000},
			{"a renewal", []string{"EVAL", src["renew"], "1", "lock", "30000", "me"}, 88000, 90000},
			{"a question", []string{"EVAL", src["renew"], "1", "lock", "0", "me"}, 88000, 90000},
			{"an extension that would cut another's", []string{"EVAL", src["extend"], "1", "lock", "me", "1000", "2"}, 88000, 90000},
			{"unlock while others keep it", []string{"EVAL", src["release_by_id"], "2", "lock", "ids", "me", "ch", "PUBLISH", "1", "50000", "x"}, 88000, 90000},
			{"unlock of the longer one", []string{"EVAL", src["release_by_id"], "2", "lock", "ids", "me", "ch", "PUBLISH", "2", "60000", "b"}, 58000, 60000},
			{"unlock that deserves more", []string{"EVAL", src["release"], "2", "lock", "ids", "me", "ch", "PUBLISH", "1", "99000"}, 57000, 60000},
			{"extension", []string{"EVAL", src["extend"], "2", "lock", "ids", "me", "2000", "1"}, 1000, 2000},
			{"a key that lost its TTL", []string{"PERSIST", "lock"}, -1, -1},
			{"a question about that", []string{"EVAL", src["renew"], "1", "lock", "0", "me"}, -1, -1},
		} {
			must(t, s.Do(t, step.cmd...).Error())
			if got := pttl(); got < step.from || got > step.to {
				t.Errorf("after %s the TTL is %d ms, want %d to %d", step.what, got, step.from, step.to)
			}
		}
	})
}

// Every script has a header that tells its keys, arguments, reply and messages, and
// uses no key that its header does not name.
func TestScriptHeaders(t *testing.T) {
	used := regexp.MustCompile(`(KEYS|ARGV)\[(\d+)\]`)
	for name, src := range rlock.ScriptSources() {
		head, body, _ := strings.Cut(src, "\nlocal ")
		if !strings.HasPrefix(head, "-- "+name+".lua: ") || !strings.Contains(head, "-- Returns ") || !strings.Contains(head, "-- Publishes ") {
			t.Errorf("%s.lua: the header must begin with its name and have Returns and Publishes", name)
		}
		for _, m := range used.FindAllString(body, -1) {
			if !strings.Contains(head, m) {
				t.Errorf("%s.lua uses %s, which its header does not name", name, m)
			}
		}
	}
}
