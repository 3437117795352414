package explore

import (
	"cmp"
	"encoding/binary"
	"hash/maphash"
	"slices"
	"strings"
)

// A key tells states apart: 128 bits.
type key [2]uint64

// A hasher writes a world in a canonical form: times are told from now, and positions in the line by their order
// alone. Sessions that do the same may change places.
type hasher struct {
	buf       []byte
	now       int64
	opened    float64        // when the gate was opened in the line that is written
	perm      [len(ids)]byte // the letter that stands for each session's
	perms     [][]int
	positions []int64
	moments   []int64  // when replies were made and messages published, of which some clients know the order
	lines     [][2]int // where they stand that are sorted
	plain     []byte   // how they stood
	seeds     [2]maphash.Seed
	alias     map[string]string // see Setup
}

// of returns the key of a world: the least of those of its permutations.
func (h *hasher) of(w *world) key {
	h.now = w.now()
	h.collect(w)
	var best key
	perms := w.set.perms
	if len(perms) > 2 {
		perms = h.inOrder(w)
	}
	for i, p := range perms {
		for at, who := range p {
			h.perm[who] = ids[at]
		}
		h.buf = h.buf[:0]
		h.world(w, p)
		k := h.sum()
		if i == 0 || cmp.Or(cmp.Compare(k[0], best[0]), cmp.Compare(k[1], best[1])) < 0 {
			best = k
		}
	}
	return best
}

// inOrder returns the permutations of a world in which the clients stand in the order of what they look like alone, whatever
// their letters: mostly that is one.
func (h *hasher) inOrder(w *world) [][]int {
	var alone [len(ids)]uint64
	for who := range w.clients {
		for other := range h.perm {
			h.perm[other] = '-'
		}
		h.perm[who] = '+'
		h.buf = h.buf[:0]
		h.client(w, who)
		alone[who] = maphash.Bytes(h.seeds[0], h.buf)
	}
	h.perms = h.perms[:0]
	for _, p := range w.set.perms {
		if slices.IsSortedFunc(p, func(a, b int) int { return cmp.Compare(alone[a], alone[b]) }) {
			h.perms = append(h.perms, p)
		}
	}
	return h.perms
}

// ofRun returns a key of the run of a command on a Redis, before which all was as it says, with those of w who listen.
func (h *hasher) ofRun(before, w *world, c *command) key {
	h.now = before.now()
	before.wires = []wire{{cmds: []*command{c}}}
	h.collect(before)
	copy(h.perm[:], ids)
	h.buf = h.buf[:0]
	for k := range before.redis.Keys {
		h.key(&k)
	}
	for i := range w.wires {
		h.byte(byte(w.wires[i].state))
		h.flag(w.clients[i].listens())
	}
	h.text(c.Script.Source()[:40])
	h.command(c)
	return h.sum()
}

func (h *hasher) sum() key { return sum(&h.seeds, h.buf) }

func sum(seeds *[2]maphash.Seed, b []byte) key {
	return key{maphash.Bytes(seeds[0], b), maphash.Bytes(seeds[1], b)}
}

// collect gathers the positions and the moments that are in use.
func (h *hasher) collect(w *world) {
	h.positions = h.positions[:0]
	for k := range w.redis.Keys {
		for _, m := range k.Members {
			if isEntry(m.Name) && m.Score > 0 {
				h.positions = append(h.positions, int64(place(m.Score)))
			}
		}
	}
	for i := range w.wires {
		h.collectOnWire(&w.wires[i])
	}
	for _, c := range w.clients {
		if p, ok := c.(interface{ places(func(int64)) }); ok {
			p.places(func(n int64) { h.positions = append(h.positions, n) })
		}
	}
	for _, l := range w.late {
		h.collectIn(l.command)
	}
	slices.Sort(h.positions)
	h.positions = slices.Compact(h.positions)
	h.collectMoments(w)
}

// collectOnWire gathers the positions in what is on its way between a client and Redis.
func (h *hasher) collectOnWire(on *wire) {
	for _, c := range on.cmds {
		h.collectIn(c)
	}
	for _, p := range on.parcels {
		h.collectText(p.text)
	}
	for _, a := range on.answers {
		h.collectIn(a.command)
		for _, e := range a.reply.Elems {
			if e.Int > 1e15 {
				h.positions = append(h.positions, e.Int)
			}
		}
	}
}

func (h *hasher) collectIn(c *command) {
	for _, a := range c.Args {
		h.collectText(a)
	}
}

func (h *hasher) collectText(s string) {
	digits(s, func(n int64, long bool) {
		if long {
			h.positions = append(h.positions, n)
		}
	})
}

func (h *hasher) collectMoments(w *world) {
	h.moments = h.moments[:0]
	for i := range w.clients {
		for _, a := range w.wires[i].answers {
			h.moments = append(h.moments, a.us)
		}
		for _, p := range w.wires[i].parcels {
			h.moments = append(h.moments, p.us)
		}
		if w.robbed[i] != 0 {
			h.moments = append(h.moments, w.robbedAt[i])
		}
		w.clients[i].moments(func(us int64) { h.moments = append(h.moments, us) })
	}
	slices.Sort(h.moments)
	h.moments = slices.Compact(h.moments)
}

// passed is what line.lua adds to the position of an entry that was passed over.
const passed = 2.4e15

func place(score float64) float64 {
	if score >= passed {
		return score - passed
	}
	return score
}

// isEntry reports whether a member of the line is an entry.
func isEntry(m string) bool { return len(m) > 20 && strings.IndexByte("gzandefhiPQCVUWN", m[0]) >= 0 }

// isReaders reports whether a member of the line is an entry of readers.
func isReaders(m string) bool { return len(m) > 20 && m[0] == 'R' }

// digits calls fn for each run of 13 digits, a time, and of 16, a position.
func digits(s string, fn func(n int64, long bool)) {
	for i := 0; i < len(s); {
		j, n := i, int64(0)
		for j < len(s) && '0' <= s[j] && s[j] <= '9' {
			n = n*10 + int64(s[j]-'0')
			j++
		}
		if j-i == 13 || j-i == 16 {
			fn(n, j-i == 16)
		}
		i = j + 1
	}
}

func (h *hasher) byte(b byte) { h.buf = append(h.buf, b) }

func (h *hasher) flag(b bool) {
	if b {
		h.byte(1)
	} else {
		h.byte(0)
	}
}

func (h *hasher) num(n int64) { h.buf = binary.AppendVarint(h.buf, n) }

// until writes a time that only counts as long as it is to come.
func (h *hasher) until(ms int64) {
	switch {
	case ms == never:
		h.num(-1)
	default:
		h.num(max(0, ms-h.now))
	}
}

// since writes a time that counts for so many ms after it.
func (h *hasher) since(ms, counts int64) { h.num(max(ms-h.now, -counts-1)) }

// forgotten is after how many ms it makes no difference how long ago a command was sent, and what it says of times: all
// that it could be trusted for is over.
const forgotten = 3_000

// farOff is in how many ms nothing ends for a run: one that remembers its states does not come so far.
const farOff = 1_000_000

// moment writes one by its place among all.
func (h *hasher) moment(us int64) {
	i, _ := slices.BinarySearch(h.moments, us)
	h.num(int64(i))
}

// position writes a position by its place among all.
func (h *hasher) position(n int64) {
	i, _ := slices.BinarySearch(h.positions, n)
	h.num(int64(i))
}

// text writes a text with the letters of the sessions changed, times and positions told as above.
func (h *hasher) text(s string) {
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c >= ids[0] && c <= ids[len(ids)-1]:
			h.byte(h.perm[c-ids[0]])
		case c == '1' && i+12 < len(s) && (i == 0 || s[i-1] < '0' || s[i-1] > '9'):
			j, n := i, int64(0)
			for j < len(s) && '0' <= s[j] && s[j] <= '9' {
				n = n*10 + int64(s[j]-'0')
				j++
			}
			switch j - i {
			case 13:
				h.since(n, forgotten)
				i = j - 1
			case 16:
				h.position(n)
				i = j - 1
			default:
				h.byte(c)
			}
		default:
			h.byte(c)
		}
	}
	h.byte(0xff)
}
