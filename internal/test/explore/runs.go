package explore

import (
	"encoding/binary"
	"hash/maphash"

	"relock/internal/script"
	"relock/internal/test/explore/memredis"
)

// Runs runs scripts. What a script makes of a state of Redis depends on that alone, and in most states one runs on a
// Redis on which it has run before: only the clients differ. So it remembers what came of the last runs.
type runs struct {
	in    *memredis.Interpreter
	seeds [2]maphash.Seed
	buf   []byte
	known map[key]*result
}

// A result is what a run has led to.
type result struct {
	redis     memredis.Redis
	published []memredis.Message
	reply     memredis.Reply
}

// mostRuns is how many are remembered.
const mostRuns = 100_000

func newRuns() *runs {
	return &runs{in: memredis.NewInterpreter(), seeds: newSeeds(), known: make(map[key]*result)}
}

func newSeeds() [2]maphash.Seed { return [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()} }

// run runs a script on the Redis of w; src is its source, as the setup has it. known says that it has run on such a
// Redis before.
func (r *runs) run(w *world, src string, c *script.Command) (reply memredis.Reply, known bool) {
	k := r.key(w, c)
	res := r.known[k]
	if known = res != nil; !known {
		w.redis.Listeners = w.listeners
		res = &result{reply: r.in.Run(&w.redis, src, c.Keys, c.Args)}
		w.redis.Listeners = nil
		res.redis, res.published = w.redis.Copy(), w.redis.Published
		if len(r.known) >= mostRuns {
			clear(r.known)
		}
		r.known[k] = res
	}
	w.redis = res.redis.Copy()
	w.redis.Published = res.published
	return res.reply, known
}

// key tells runs apart by all that they may depend on.
func (r *runs) key(w *world, c *script.Command) key {
	b := w.redis.AppendTo(r.buf[:0])
	for i := range w.wires {
		b = append(b, byte(w.wires[i].state))
		if w.clients[i].listens() {
			b = append(b, 1)
		}
	}
	text := func(s string) { b = append(binary.AppendUvarint(b, uint64(len(s))), s...) }
	text(c.Script.SHA())
	for _, k := range c.Keys {
		text(k)
	}
	for _, a := range c.Args {
		text(a)
	}
	r.buf = b
	return sum(&r.seeds, b)
}
