package scriptfuzz

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2/server"
	"github.com/redis/rueidis"

	"relock/internal/script"
	"relock/internal/test/redistest"
)

// A redis is a server on which scripts are run.
type redis struct {
	// do runs commands. A reply is an int64, a string, a list, nil or an error.
	do    func(cmds ...[]string) []any
	ms    func() int64 // its time, or what it will hardly differ from
	exact bool         // its time stands still
	known map[string]bool
	// How many runs were answered without an error, and how many of these with 1 or a list that begins with it.
	answers, grants int
}

// On miniredis somebody listens to the channel of this session, and to this channel of a lock.
const (
	hearing = "S1"
	heard   = "heard"
)

// newRedis takes a server: a miniredis without its connections, which cost more than the scripts.
func newRedis(tb testing.TB, s *redistest.Server) *redis {
	tb.Helper()
	if !s.IsMini() {
		return &redis{do: remote(tb, s.Client(tb, func(o *rueidis.ClientOption) { o.AlwaysRESP2 = true })),
			ms: func() int64 { return time.Now().UnixMilli() }, known: map[string]bool{}}
	}
	now := time.UnixMilli(1_800_000_000_000)
	s.Mini.SetTime(now)
	sub := s.Mini.NewSubscriber()
	sub.Subscribe(prefix + hearing)
	sub.Subscribe(heard)
	done := make(chan struct{})
	go func() {
		for range sub.Messages() {
		}
		close(done)
	}()
	tb.Cleanup(func() { sub.Close(); <-done })
	return &redis{do: within(s.Mini.Server()), ms: now.UnixMilli, exact: true, known: map[string]bool{}}
}

// within runs commands in a miniredis.
func within(s *server.Server) func(cmds ...[]string) []any {
	var buf bytes.Buffer
	w := bufio.NewWriter(&buf)
	peer := server.NewPeer(w)
	return func(cmds ...[]string) (replies []any) {
		for _, c := range cmds {
			buf.Reset()
			s.Dispatch(peer, c)
			_ = w.Flush()
			reply, err := server.ParseReply(bufio.NewReader(&buf))
			if err != nil {
				reply = err
			}
			replies = append(replies, plain(reply))
		}
		return replies
	}
}

// plain makes what a miniredis replies that of a client.
func plain(reply any) any {
	switch r := reply.(type) {
	case int:
		return int64(r)
	case server.Simple:
		return string(r)
	case []any:
		for i := range r {
			r[i] = plain(r[i])
		}
	}
	return reply
}

// remote runs commands over a client.
func remote(tb testing.TB, client rueidis.Client) func(cmds ...[]string) []any {
	return func(cmds ...[]string) (replies []any) {
		built := make(rueidis.Commands, len(cmds))
		for i, c := range cmds {
			built[i] = client.B().Arbitrary(c...).Build()
		}
		for _, r := range client.DoMulti(tb.Context(), built...) {
			reply, err := r.ToAny()
			if err != nil && !rueidis.IsRedisNil(err) {
				reply = err
			}
			replies = append(replies, reply)
		}
		return replies
	}
}

// eval runs a script.
func (r *redis) eval(sc *script.Script, keys, argv []string) any {
	if !r.known[sc.Source()] {
		if sha := r.do([]string{"SCRIPT", "LOAD", sc.Source()})[0]; sha != sc.SHA() {
			return fmt.Errorf("SCRIPT LOAD: %v", sha)
		}
		r.known[sc.Source()] = true
	}
	return r.do(slices.Concat([]string{"EVALSHA", sc.SHA(), strconv.Itoa(len(keys))}, keys, argv))[0]
}

// An image is what stands at a key.
type image struct {
	kind, holds, ttl string
	size             int // how many elements a list, a set, a hash or a sorted set has in the reply
}

// read is the command that reads a value of a type.
func read(kind, key string) []string {
	switch kind {
	case "string":
		return []string{"GET", key}
	case "hash":
		return []string{"HGETALL", key}
	case "set":
		return []string{"SMEMBERS", key}
	case "zset":
		return []string{"ZRANGE", key, "0", "-1", "WITHSCORES"}
	}
	return []string{"LRANGE", key, "0", "-1"}
}

// image reads all keys.
func (r *redis) image() (map[string]image, error) {
	all := map[string]image{}
	names, ok := r.do([]string{"KEYS", "*"})[0].([]any)
	if !ok && names != nil {
		return nil, errors.New("KEYS gives no list")
	}
	var ask, reads [][]string
	for _, name := range names {
		ask = append(ask, []string{"TYPE", name.(string)}, []string{"PTTL", name.(string)})
	}
	about := r.do(ask...)
	for i, name := range names {
		reads = append(reads, read(about[2*i].(string), name.(string)))
	}
	for i, what := range r.do(reads...) {
		kind := about[2*i].(string)
		if kind == "none" { // it has ended since
			continue
		}
		fields, isList := what.([]any)
		holds := words(what)
		if isList && (kind == "hash" || kind == "set") {
			holds = sorted(fields, map[string]int{"hash": 2, "set": 1}[kind])
		}
		all[names[i].(string)] = image{kind: kind, ttl: fmt.Sprint(about[2*i+1]), holds: holds, size: len(fields)}
	}
	return all, nil
}

// sorted writes pairs out, or single ones, in their order.
func sorted(list []any, each int) string {
	var all []string
	for group := range slices.Chunk(list, each) {
		all = append(all, words(group))
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// words writes a reply out.
func words(v any) string {
	switch v := v.(type) {
	case []any:
		all := make([]string, len(v))
		for i := range v {
			all[i] = words(v[i])
		}
		return "[" + strings.Join(all, " ") + "]"
	case string:
		return strconv.Quote(v)
	}
	return fmt.Sprint(v)
}
