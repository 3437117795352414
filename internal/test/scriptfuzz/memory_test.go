package scriptfuzz

import (
	"errors"
	"testing"
	"time"

	"relock/internal/script"
	"relock/internal/test/explore/memredis"
)

// inMemory is a Redis that keeps its interpreter, where a miniredis makes one for each script. Its time stands still.
func inMemory(tb testing.TB) *redis {
	now := time.UnixMilli(1_800_000_000_000)
	m := &memory{in: memredis.NewInterpreter(), us: now.UnixMicro()}
	tb.Cleanup(m.in.Close)
	eval := func(sc *script.Script, keys, argv []string) any {
		return plain(m.in.Run(&m.Redis, sc.Source(), keys, argv))
	}
	return &redis{do: m.do, eval: eval, ms: now.UnixMilli, exact: true}
}

type memory struct {
	memredis.Redis
	in *memredis.Interpreter
	us int64 // its time
}

func (m *memory) do(cmds ...[]string) (replies []any) {
	for _, c := range cmds {
		replies = append(replies, m.run(c))
	}
	return replies
}

// run runs one command, also those that no script sends.
func (m *memory) run(c []string) any {
	switch c[0] {
	case "FLUSHALL":
		m.Redis = memredis.Redis{Listeners: func(channel string) int { return map[string]int{prefix + hearing: 1, heard: 1}[channel] }}
		m.SetMicros(m.us)
		return "OK"
	case "KEYS":
		names := []any{}
		for k := range m.Keys {
			names = append(names, k.Name)
		}
		return names
	case "TYPE", "LRANGE":
		for k := range m.Keys {
			switch {
			case k.Name != c[1]:
			case c[0] == "TYPE":
				return k.Type
			default:
				return anys(k.Items)
			}
		}
		return "none"
	}
	return plain(m.Do(c...))
}

// plain makes of a reply what a client makes of it.
func plain(r memredis.Reply) any {
	switch r.Kind {
	case memredis.Int:
		return r.Int
	case memredis.Array:
		all := make([]any, len(r.Elems))
		for i, e := range r.Elems {
			all[i] = plain(e)
		}
		return all
	case memredis.Nil:
		return nil
	case memredis.Error:
		return errors.New(r.Text)
	}
	return r.Text
}

func anys(items []string) []any {
	all := make([]any, len(items))
	for i, it := range items {
		all[i] = it
	}
	return all
}
