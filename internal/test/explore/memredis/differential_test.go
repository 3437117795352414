package memredis_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/rueidis"

	"relock/internal/keyname"
	"relock/internal/kind"
	"relock/internal/mutex"
	"relock/internal/script"
	"relock/internal/test/explore/memredis"
	"relock/internal/test/redistest"
	"relock/internal/waiting"
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

// randomCommand is one of those that there are, on few keys, some of which are of another sort.
func randomCommand(rng *rand.Rand) []string {
	pick := func(of ...string) string { return of[rng.IntN(len(of))] }
	key := func() string { return pick("a", "b", "c", "d", "e") }
	name := func() string { return pick("x", "y", "z", "7", "") }
	num := func() string { return pick("0", "1", "-3", "12", "9007199254740991", "007", "no", "1.5") }
	bound := func() string { return pick("-inf", "+inf", "(1", "0", "(5000", "12", "(-9e15", "3e15") }
	score := func() string { return pick("1", "2", "-9e15", "8600000000000001", "12", "0.5", "no") }
	index := func() string { return pick("0", "1", "-1", "-2", "5") }
	switch rng.IntN(36) {
	case 0:
		return []string{"DEL", key(), key()}
	case 1:
		return []string{"EXISTS", key(), key(), key()}
	case 2:
		return []string{"PTTL", key()}
	case 3:
		return []string{"PEXPIRE", key(), pick("100000", "200000", "0", "-5", "x")}
	case 4:
		return []string{"PERSIST", key()}
	case 5:
		return []string{"GET", key()}
	case 6:
		return slices.Concat([]string{"SET", key(), num()}, [][]string{nil, {"PX", "300000"}, {"PX", "0"}, {"QX", "1"}}[rng.IntN(4)])
	case 7:
		return []string{pick("INCRBY", "DECRBY"), key(), pick("1", "5", "-2", "9223372036854775807", "x")}
	case 8:
		return []string{"HGET", key(), name()}
	case 9, 10:
		return []string{"HSET", key(), name(), num(), name(), num()}
	case 11:
		return []string{"HSET", key(), name()}
	case 12:
		return []string{"HDEL", key(), name(), name()}
	case 13:
		return []string{pick("HLEN", "HGETALL", "HKEYS", "SCARD", "ZCARD", "SMEMBERS", "LLEN"), key()}
	case 14:
		return []string{"HEXISTS", key(), name()}
	case 15:
		return []string{"HINCRBY", key(), name(), pick("1", "-1", "x", "100")}
	case 16:
		return []string{"HMGET", key(), name(), name()}
	case 17:
		return []string{"SADD", key(), name(), name()}
	case 18:
		return []string{"SREM", key(), name(), name()}
	case 19:
		return []string{"SISMEMBER", key(), name()}
	case 20, 21, 22:
		return slices.Concat([]string{"ZADD", key()}, [][]string{nil, {"LT"}, {"GT"}, {"XX"}}[rng.IntN(4)], []string{score(), name(), score(), name()})
	case 23:
		return []string{"ZREM", key(), name(), name()}
	case 24:
		return []string{"ZSCORE", key(), name()}
	case 25:
		return []string{"ZMSCORE", key(), name(), name()}
	case 26:
		return []string{"ZCOUNT", key(), bound(), bound()}
	case 27:
		return slices.Concat([]string{pick("ZRANGE", "ZREVRANGE"), key(), index(), index()}, [][]string{nil, {"WITHSCORES"}}[rng.IntN(2)])
	case 28, 29:
		return slices.Concat([]string{pick("ZRANGEBYSCORE", "ZREVRANGEBYSCORE"), key(), bound(), bound()},
			[][]string{nil, {"WITHSCORES"}, {"LIMIT", "0", "2"}, {"WITHSCORES", "LIMIT", "1", "1"}}[rng.IntN(4)])
	case 30:
		return []string{"ZREMRANGEBYSCORE", key(), bound(), bound()}
	case 31:
		return []string{"RPUSH", key(), name(), name()}
	case 32:
		return []string{pick("LPOP", "TIME"), key()}
	case 33:
		return []string{"LINDEX", key(), index()}
	case 34:
		return []string{"LREM", key(), "0", name()}
	}
	return []string{"ZINCRBY", key(), pick("1", "-2", "0.5", "x"), name()}
}

// randomScript is a call of a script of a mutex for one of three owners.
func randomScript(rng *rand.Rand) script.Command {
	space := &keyname.Space{Publishing: keyname.Publishes(false, false)}
	names := space.Names("lock")
	fair := rng.IntN(2) == 0
	p := mutex.New(names, mutex.Fencing{Fenced: true})
	if fair {
		p = mutex.NewFair(names, mutex.Fencing{Fenced: true})
	}
	session := string(rune('A' + rng.IntN(3)))
	owner := fmt.Sprintf("%s:%d", session, rng.IntN(2))
	w := waiting.Want{Session: session, Fair: fair, Deaf: fair && rng.IntN(2) == 0, Tokens: 1, Lease: 1250e6, Life: 500e9}
	op := &kind.Op{Owner: owner, Lease: 200e9, Private: true, Request: kind.Request{Tokens: 1}, Line: kind.Line{Named: true, Head: w.Head()}}
	if rng.IntN(4) == 0 {
		op.ID, op.ByIDs = fmt.Sprintf("%032d", rng.IntN(2)), true
	}
	op.Line.Again, op.Line.Waiting = rng.IntN(2) == 0, rng.IntN(2)
	switch rng.IntN(7) {
	case 0, 1, 2:
		if fair {
			op.Position = &waiting.Position{Entry: w.Head() + owner, Last: int64(1 + rng.IntN(2)), Waiting: 1, Again: op.Line.Again}
		}
		return p.Acquire(op)
	case 3, 4:
		op.All = true
		return p.Release(op)
	case 5:
		if fair {
			return p.Look([]string{w.Head() + owner})
		}
		keys, args := p.RenewArgs(op)
		return script.Command{Script: p.RenewScript(), Keys: keys, Args: append([]string{"200000"}, args...)}
	}
	f := kind.Force{Owners: []string{owner}, ID: fmt.Sprint(rng.IntN(3)), Remembered: 100e9}
	return p.ForceUnlock(&f)
}

// rounds is [redistest.Rounds], and a tenth of that with the race detector, which has nothing to find here.
func rounds(n int) int {
	if redistest.Race {
		n /= 10
	}
	return redistest.Rounds(n)
}
