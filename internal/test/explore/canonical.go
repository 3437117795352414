package explore

import (
	"bytes"
	"slices"
	"strings"

	"relock/internal/test/explore/memredis"
)

// What the canonical form of a world says of its parts.

// world writes everything, the sessions in the order of p.
func (h *hasher) world(w *world, p []int) {
	h.byte(byte(w.faults))
	h.byte(byte(w.taints))
	h.num(w.tokens)
	for k := range w.redis.Keys {
		h.key(&k)
	}
	h.byte(0xfe)
	for _, who := range p {
		h.client(w, who)
	}
	h.sorted(len(w.late), func(i int) {
		h.byte(h.perm[w.late[i].who])
		h.command(w.late[i].command)
	})
	if w.judge != nil {
		w.judge.write(h)
	}
}

// client writes a client and what is on its wire.
func (h *hasher) client(w *world, who int) {
	wi := &w.wires[who]
	h.byte(byte(wi.state))
	h.byte(byte(w.robbed[who]))
	if w.robbed[who] != 0 {
		h.moment(w.robbedAt[who])
	}
	w.clients[who].write(h)
	for _, c := range wi.cmds {
		h.command(c)
	}
	h.byte(0xfd)
	for _, a := range wi.answers {
		h.command(a.command)
		h.reply(&a.reply)
		h.moment(a.us)
	}
	h.byte(0xfd)
	for _, m := range wi.parcels {
		h.flag(m.fromLock)
		h.text(m.text)
		h.moment(m.us)
	}
	h.byte(0xfd)
}

// sorted writes n things in an order that does not depend on theirs.
func (h *hasher) sorted(n int, write func(i int)) {
	from := len(h.buf)
	h.lines = h.lines[:0]
	for i := range n {
		at := len(h.buf)
		write(i)
		h.lines = append(h.lines, [2]int{at, len(h.buf)})
	}
	if n > 1 {
		h.plain = append(h.plain[:0], h.buf...)
		line := func(l [2]int) []byte { return h.plain[l[0]:l[1]] }
		slices.SortFunc(h.lines, func(a, b [2]int) int { return bytes.Compare(line(a), line(b)) })
		h.buf = h.buf[:from]
		for _, l := range h.lines {
			h.buf = append(h.buf, line(l)...)
		}
	}
	h.byte(0xfc)
}

func (h *hasher) command(c *command) {
	h.byte(byte(c.what))
	h.byte(byte(c.num))
	h.byte(byte(c.anew))
	h.flag(c.resent)
	h.since(c.sent, forgotten)
	for _, a := range c.Args {
		if known, ok := h.alias[a]; ok {
			a = known
		}
		h.text(a)
	}
}

func (h *hasher) reply(r *memredis.Reply) {
	h.byte(byte(r.Kind))
	switch {
	case r.Kind == memredis.Int && r.Int > 1e15:
		h.position(r.Int)
	case r.Kind == memredis.Int && r.Int > 1e12:
		h.since(r.Int, forgotten)
	case r.Kind == memredis.Int:
		h.num(r.Int)
	}
	h.text(r.Text)
	for i := range r.Elems {
		h.reply(&r.Elems[i])
	}
}

// key writes a key of Redis.
func (h *hasher) key(k *memredis.Key) {
	h.text(k.Name)
	if k.End == 0 {
		h.byte(0)
	} else {
		h.num(min(k.End-h.now, farOff) + 1)
	}
	h.text(k.Text)
	switch {
	case k.Items != nil && strings.HasPrefix(k.Name, "relock_"): // a set
		h.sorted(len(k.Items), func(i int) { h.text(k.Items[i]) })
	case k.Items != nil:
		h.sorted(len(k.Items)/2, func(i int) {
			h.text(k.Items[2*i])
			h.text(k.Items[2*i+1])
		})
	}
	if k.Members != nil {
		h.opened = 0
		for _, m := range k.Members {
			if m.Name == "t" {
				h.opened = m.Score - sinceScore['t']
			}
		}
		h.sorted(len(k.Members), func(i int) { h.member(k.Members[i].Name, k.Members[i].Score) })
	}
}

// The scores of line.lua, serve.lua, mark.lua and gate.lua, by the letter that a member begins with: what is until a time,
// what is less a time, what counts.
var (
	untilScore = map[byte]float64{'c': 8e15, 'm': 8.4e15}
	sinceScore = map[byte]float64{'p': 7e15, 'k': 8.2e15, 't': 8.5e15, 'R': 8.8e15}
	lessScore  = map[byte]float64{'s': 5e15, 'l': 6e15}
	countScore = map[byte]float64{'w': 8.6e15, '#': 4.85e15}
)

// lateBy is less the score of readers that were called, and have not come.
const lateBy = 1e14

// member writes a member of a sorted set: of the line, or with its end.
func (h *hasher) member(name string, score float64) {
	if isEntry(name) {
		h.text(name)
		h.flag(score >= passed)
		h.position(int64(place(score)))
		return
	}
	if known, ok := h.alias[name]; ok {
		h.text(known)
		h.expiry(score)
		return
	}
	h.text(name)
	switch c := name[0]; {
	case score > 1e15 && untilScore[c] != 0:
		h.since(int64(score-untilScore[c]), 1000)
	case isReaders(name):
		since := score - sinceScore[c]
		h.flag(since < 0)
		h.flag(since <= h.opened)
		if since < 0 {
			since += lateBy
		}
		h.since(int64(since), 10) // it makes no difference, but for the order of three
	case c == 't':
		h.since(int64(h.opened), 10)
	case score > 1e15 && sinceScore[c] != 0:
		h.since(int64(score-sinceScore[c]), 70_000)
	case score > 1e15 && lessScore[c] != 0:
		h.since(int64(lessScore[c]-score), 5_001)
	case score > 1e15 && countScore[c] != 0:
		h.num(int64(score - countScore[c]))
	case score > 1e12:
		h.expiry(score)
	default:
		h.num(int64(score))
	}
}

// expiry writes when a reader or a permit expires. One that has expired stands there until a script throws it out, while others
// are renewed for ever: scripts ask whether it has, and not how long ago that was.
func (h *hasher) expiry(score float64) { h.since(int64(score), 0) }
