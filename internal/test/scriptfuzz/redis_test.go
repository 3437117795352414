package scriptfuzz

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"relock/internal/script"
	"relock/internal/test/redistest"
)

// A redis is a server on which scripts are run.
type redis struct {
	// do runs commands. A reply is an int64, a string, a list, nil or an error.
	do    func(cmds ...[]string) []any
	eval  func(sc *script.Script, keys, argv []string) any
	ms    func() int64 // its time, or what it will hardly differ from
	exact bool         // its time stands still
	// How many runs were answered without an error, and how many of these with 1 or a list that begins with it.
	answers, grants int
}

// In memory somebody listens to the channel of this session, and to this channel of a lock.
const (
	hearing = "S1"
	heard   = "heard"
)

// onServer is a real server.
func onServer(tb testing.TB, s *redistest.Server) *redis {
	tb.Helper()
	do := remote(tb, s.Client(tb, func(o *rueidis.ClientOption) { o.AlwaysRESP2 = true }))
	return &redis{do: do, eval: bySHA(do), ms: func() int64 { return time.Now().UnixMilli() }}
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

// bySHA runs scripts that it loads before.
func bySHA(do func(cmds ...[]string) []any) func(sc *script.Script, keys, argv []string) any {
	known := map[string]bool{}
	return func(sc *script.Script, keys, argv []string) any {
		if !known[sc.SHA()] {
			if sha := do([]string{"SCRIPT", "LOAD", sc.Source()})[0]; sha != sc.SHA() {
				return fmt.Errorf("SCRIPT LOAD: %v", sha)
			}
			known[sc.SHA()] = true
		}
		return do(slices.Concat([]string{"EVALSHA", sc.SHA(), strconv.Itoa(len(keys))}, keys, argv))[0]
	}
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
