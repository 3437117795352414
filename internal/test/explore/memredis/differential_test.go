package memredis_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/rueidis"

	"relock/internal/script"
	"relock/internal/test/explore/memredis"
	"relock/internal/test/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// Random commands, wrong ones among them, are answered as by a real server. PTTL may differ by what that has
// lived on meanwhile.
func TestCommandsAgainstAServer(t *testing.T) {
	s := redistest.Real(t)
	rng := rand.New(rand.NewPCG(1, 2))
	var mine memredis.Redis
	for i := range rounds(6000) {
		args := randomCommand(rng)
		mine.SetMicros(serverTime(t, s))
		want := reply(s.Do(t, args...))
		if got := mine.Do(args...); !same(got, want, args[0]) {
			t.Fatalf("%d: %q: got %v, the server says %v", i, args, got, want)
		}
	}
}

// Scripts of the mutexes, with a line, tokens and ids, answer and leave what they do on the server.
func TestScriptsAgainstAServer(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		rng := rand.New(rand.NewPCG(3, 4))
		var mine memredis.Redis
		in := memredis.NewInterpreter()
		defer in.Close()
		for i := range rounds(4000) {
			c := randomScript(rng)
			before := serverTime(t, s)
			args := append([]string{"EVAL", c.Script.Source(), strconv.Itoa(len(c.Keys))}, append(c.Keys, c.Args...)...)
			want := []memredis.Reply{reply(s.Do(t, args...))}
			for _, look := range looks {
				want = append(want, reply(s.Do(t, look...)))
			}
			// What has run out by the one time may not have by the other.
			from := mine.Copy()
			bad := ranAs(in, &mine, c, before, want)
			if bad != "" {
				mine = from
				bad = ranAs(in, &mine, c, serverTime(t, s), want)
			}
			if bad != "" {
				t.Fatalf("%d: after %q %q, %s\n%s", i, c.Keys, c.Args, bad, c.Script.Source()[:200])
			}
		}
	})
}

// looks are what tells the state that a script has left.
var looks = [][]string{
	{"HGETALL", "lock"}, {"ZRANGE", "relock_line1:{lock}", "0", "-1"}, {"SMEMBERS", "relock_holds:{lock}"},
	{"GET", "redisson_lock_token:{lock}"}, {"PTTL", "lock"}, {"PTTL", "relock_line1:{lock}"},
}

// ranAs runs a script at a time, and says where its reply and what it leaves are not as on the server.
func ranAs(in *memredis.Interpreter, r *memredis.Redis, c script.Command, us int64, want []memredis.Reply) string {
	r.SetMicros(us)
	if got := in.Run(r, c.Script.Source(), c.Keys, c.Args); !same(got, want[0], "EVAL") {
		return fmt.Sprintf("got %v, the server says %v", got, want[0])
	}
	for i, look := range looks {
		// Of the line it is compared who stands there: positions are those of the server's clock.
		how := look[0]
		if how == "ZRANGE" {
			how = "SMEMBERS"
		}
		if got := r.Do(look...); !same(got, want[i+1], how) {
			return fmt.Sprintf("%q: got %v, the server says %v", look, got, want[i+1])
		}
	}
	return ""
}

func serverTime(t *testing.T, s *redistest.Server) int64 {
	clock, err := s.Do(t, "TIME").AsStrSlice()
	if err != nil {
		t.Fatal(err)
	}
	sec, _ := strconv.ParseInt(clock[0], 10, 64)
	us, _ := strconv.ParseInt(clock[1], 10, 64)
	return sec*1e6 + us
}

// reply translates what the client gives.
func reply(r rueidis.RedisResult) memredis.Reply {
	m, err := r.ToMessage()
	if err != nil {
		if rueidis.IsRedisNil(err) {
			return memredis.Reply{}
		}
		return memredis.Reply{Kind: memredis.Error, Text: err.Error()}
	}
	return message(m)
}

func message(m rueidis.RedisMessage) memredis.Reply {
	switch {
	case m.IsNil():
		return memredis.Reply{}
	case m.IsInt64():
		n, _ := m.AsInt64()
		return memredis.Reply{Kind: memredis.Int, Int: n}
	case m.IsArray():
		elems, _ := m.ToArray()
		a := memredis.Reply{Kind: memredis.Array}
		for _, e := range elems {
			a.Elems = append(a.Elems, message(e))
		}
		return a
	case m.IsMap():
		fields, _ := m.AsStrMap()
		a := memredis.Reply{Kind: memredis.Array}
		for name, v := range fields {
			a.Elems = append(a.Elems, bulk(name), bulk(v))
		}
		return a
	case m.IsFloat64():
		f, _ := m.AsFloat64()
		return bulk(strconv.FormatFloat(f, 'f', -1, 64))
	}
	text, _ := m.ToString()
	if text == "OK" {
		return memredis.Reply{Kind: memredis.Status, Text: text}
	}
	return bulk(text)
}

func bulk(s string) memredis.Reply { return memredis.Reply{Kind: memredis.Bulk, Text: s} }

// same compares replies. Elements of hashes and sets may come in another order; times may differ by 1 s.
func same(got, want memredis.Reply, cmd string) bool {
	flat := func(r memredis.Reply) (parts []string) {
		var walk func(r memredis.Reply)
		walk = func(r memredis.Reply) {
			for _, e := range r.Elems {
				walk(e)
			}
			if r.Kind != memredis.Array {
				parts = append(parts, r.String())
			}
		}
		walk(r)
		return parts
	}
	if got.Kind == memredis.Error || want.Kind == memredis.Error {
		code := func(r memredis.Reply) string { first, _, _ := strings.Cut(r.Text, " "); return first }
		text, _, _ := strings.Cut(want.Text, " script: ")
		got.Text, text = strings.TrimPrefix(got.Text, "ERR "), strings.TrimPrefix(text, "ERR ") // the client cuts that
		return got.Kind == want.Kind && (got.Text == text || code(got) == "WRONGTYPE" && code(want) == "WRONGTYPE")
	}
	g, w := flat(got), flat(want)
	if cmd == "HGETALL" || cmd == "SMEMBERS" || cmd == "HKEYS" {
		slices.Sort(g)
		slices.Sort(w)
	}
	if cmd == "TIME" {
		return len(g) == len(w)
	}
	return slices.EqualFunc(g, w, func(a, b string) bool {
		x, err := strconv.ParseInt(a, 10, 64)
		y, err2 := strconv.ParseInt(b, 10, 64)
		slack := int64(0)
		switch {
		case x > 1e15:
			slack = 1e6
		case x > 1e9 || cmd == "PTTL" || cmd == "EVAL" && x > 100:
			slack = 1000
		}
		return a == b || err == nil && err2 == nil && max(x-y, y-x) <= slack
	})
}

// rounds is [redistest.Rounds], and a tenth of that with the race detector, which has nothing to find here.
func rounds(n int) int {
	if redistest.Race {
		n /= 10
	}
	return redistest.Rounds(n)
}
