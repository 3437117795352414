package locktest

import (
	"context"
	"fmt"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"relock/internal/test/redistest"
)

// ScriptCase runs one script by hand, twice, on the state that setup leaves.
type ScriptCase struct {
	name   string
	script string
	setup  [][]string
	keys   []string
	args   []string
	first  string
	again  string
	state  string
	rest   string // see Rest
	moving string // see Moving
}

// Case makes a case of a script's name in the sources, of commands that set up the state
// (see Setup), keys and arguments, of the reply of the first run and that of the second
// (the same, but for "changed"), and of what Redis has after each (see Describe). All of
// it in one line, so that cases can be read as a table.
func Case(name, script string, setup [][]string, keys, args []string, first, again, state string) ScriptCase {
	return ScriptCase{name, script, setup, keys, args, first, again, state, "", ""}
}

// Setup splits commands at blanks.
func Setup(cmds ...string) (all [][]string) {
	for _, c := range cmds {
		all = append(all, strings.Fields(c))
	}
	return all
}

// Keys and Args are short for slices in a table of cases.
func Keys(k ...string) []string { return k }
func Args(a ...string) []string { return a }

// RunScripts runs the cases on both kinds of server: every script, run twice with the same
// arguments, must give the same state, and the same reply but for the "changed" flag by
// which a resend is told from a loss. A script without a case is an error. plain, if given,
// takes what differs from run to run, as times, out of the description of a state.
func RunScripts(t *testing.T, sources map[string]string, cases []ScriptCase, plain ...func(state string) string) {
	seen := map[string]bool{}
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		for _, c := range cases {
			seen[c.script] = true
			t.Run(c.script+"/"+c.name, func(t *testing.T) {
				s.FlushAll(t)
				for _, cmd := range c.setup {
					Must(t, s.Do(t, cmd...).Error())
				}
				eval := append([]string{"EVAL", sources[c.script], strconv.Itoa(len(c.keys))}, append(c.keys, c.args...)...)
				for i, want := range []string{c.first, c.again} {
					if got := reply(s, t, eval); got != want {
						t.Errorf("run %d replied %s, want %s", i+1, got, want)
					}
					got := Describe(t, s)
					for _, fn := range plain {
						got = fn(got)
					}
					if got != c.state {
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

// RefuseWrites runs the cases on a server that takes no writes at the moment. A script then
// changes nothing, and gives the server's error as it is: it speaks of the server, and not
// of the lock. What needs no write is answered as always. An ACL's refusal is no
// WRONGTYPE either.
func RefuseWrites(t *testing.T, sources map[string]string, cases []ScriptCase) {
	s := redistest.Real(t)
	takes := func(writes bool) {
		Must(t, s.Do(t, "CONFIG", "SET", "min-replicas-to-write", map[bool]string{true: "0", false: "1"}[writes]).Error())
	}
	refused := false
	for _, c := range cases {
		takes(true)
		s.FlushAll(t)
		for _, cmd := range c.setup {
			Must(t, s.Do(t, cmd...).Error())
		}
		before := Describe(t, s)
		takes(false)
		eval := append([]string{"EVAL", sources[c.script], strconv.Itoa(len(c.keys))}, append(c.keys, c.args...)...)
		got := reply(s, t, eval)
		if strings.Contains(got, "NOREPLICAS") { // Redis 6.2 puts words of its own before it
			refused = true
		} else if got != c.first {
			t.Errorf("%s/%s replied %s, want NOREPLICAS, or %s if that needs no write", c.script, c.name, got, c.first)
		}
		if after := Describe(t, s); after != before {
			t.Errorf("%s/%s was refused, but Redis has %q, and had %q", c.script, c.name, after, before)
		}
		takes(true)
		Must(t, s.Do(t, "ACL", "SETUSER", "default", "-@read").Error())
		if got := reply(s, t, eval); strings.HasPrefix(got, "WRONGTYPE") {
			t.Errorf("%s/%s replied %s where the user may not read", c.script, c.name, got)
		}
		Must(t, s.Do(t, "ACL", "SETUSER", "default", "+@read").Error())
	}
	if !refused {
		t.Error("no script was refused")
	}
}

// Hears subscribes to a channel and returns what is published there.
func Hears(t testing.TB, s *redistest.Server, channel string) <-chan string {
	t.Helper()
	client := s.Client(t)
	return receives(t, client, client.B().Subscribe().Channel(channel).Build())
}

// Watches subscribes to all channels by a pattern, as an operator does, and returns what is published.
func Watches(t testing.TB, s *redistest.Server) <-chan string {
	t.Helper()
	client := s.Client(t)
	return receives(t, client, client.B().Psubscribe().Pattern("*").Build())
}

func receives(t testing.TB, client rueidis.Client, subscribe rueidis.Completed) <-chan string {
	t.Helper()
	c := make(chan string, 10000)
	ctx, cancel := context.WithCancel(context.Background())
	ready, done := make(chan struct{}), make(chan struct{})
	ctx = rueidis.WithOnSubscriptionHook(ctx, func(rueidis.PubSubSubscription) { close(ready) })
	go func() {
		defer close(done)
		_ = client.Receive(ctx, subscribe, func(m rueidis.PubSubMessage) { c <- m.Message })
	}()
	t.Cleanup(func() { cancel(); <-done })
	Get(t, ready, 10*time.Second, "the subscription")
	return c
}

// Forever is a TTL for cases. What is left of it is "forever" in replies.
const Forever = "9000000000"

var forever = regexp.MustCompile(`\b(8999999\d{3}|9000000000)\b`)

func reply(s *redistest.Server, t *testing.T, cmd []string) string {
	m, err := s.Do(t, cmd...).ToAny()
	if err != nil {
		if word, _, _ := strings.Cut(err.Error(), " "); word == "WRONGTYPE" {
			return word
		}
		return err.Error()
	}
	return forever.ReplaceAllString(fmt.Sprint(m), "forever")
}

// Describe returns all keys with what they hold: k{field:value} for a hash, k(members)
// for a set, k<members> for a sorted set in its order, k=value for a string.
func Describe(t testing.TB, s *redistest.Server) string {
	var all []string
	for _, k := range s.Keys(t) {
		kind, err := s.Do(t, "TYPE", k).ToString()
		Must(t, err)
		switch kind {
		case "hash":
			h, err := s.Do(t, "HGETALL", k).AsStrMap()
			Must(t, err)
			fields := make([]string, 0, len(h))
			for f, v := range h {
				fields = append(fields, f+":"+v)
			}
			sort.Strings(fields)
			all = append(all, k+"{"+strings.Join(fields, " ")+"}")
		case "set":
			m, err := s.Do(t, "SMEMBERS", k).AsStrSlice()
			Must(t, err)
			sort.Strings(m)
			all = append(all, k+"("+strings.Join(m, " ")+")")
		case "zset":
			m, err := s.Do(t, "ZRANGE", k, "0", "-1").AsStrSlice()
			Must(t, err)
			all = append(all, k+"<"+strings.Join(m, " ")+">")
		default:
			v, err := s.Do(t, "GET", k).ToString()
			Must(t, err)
			all = append(all, k+"="+v)
		}
	}
	return strings.Join(all, " ")
}

// CheckHeaders checks that every script has a header that tells its keys, arguments and reply, and its
// messages if it publishes any; and uses no key or argument that neither its header names nor that of
// a snippet that it includes.
func CheckHeaders(t *testing.T, sources map[string]string) {
	used := regexp.MustCompile(`(KEYS|ARGV)\[(\d+)\]`)
	comments := regexp.MustCompile(`(?m)^--.*$`)
	publishes := regexp.MustCompile(`PUBLISH|call\(ARGV`)
	for name, src := range sources {
		head, code := strings.Join(comments.FindAllString(src, -1), "\n"), comments.ReplaceAllString(src, "")
		if !strings.HasPrefix(head, "-- "+name+".lua: ") || !strings.Contains(head, "-- Returns ") {
			t.Errorf("%s.lua: the header must begin with its name and have Returns", name)
		}
		if told := strings.Contains(head, "\n-- Publishes "); told != publishes.MatchString(code) {
			t.Errorf("%s.lua: the header tells of messages: %v; the script publishes: %v", name, told, !told)
		}
		for _, m := range used.FindAllString(code, -1) {
			if !strings.Contains(head, m) {
				t.Errorf("%s.lua uses %s, which its header does not name", name, m)
			}
		}
	}
}
