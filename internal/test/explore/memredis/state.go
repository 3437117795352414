package memredis

import (
	"encoding/binary"
	"math"
	"slices"
	"strings"
)

// A Message is what was published.
type Message struct{ Channel, Payload string }

// Redis is the state of a server, and what its clients subscribe to. The zero value is empty.
type Redis struct {
	us   int64   // the clock, in µs since 1970
	keys []entry // sorted by name; ends are looked at when a key is

	// Listeners is how many connections are subscribed to a channel. It must be set before a command asks.
	Listeners func(channel string) int
	// Published collects what commands publish.
	Published []Message
}

// An entry is a key. Values are never changed: a command that writes puts another one in.
type entry struct {
	name string
	val  *value
	end  int64 // in ms since 1970; 0: none
}

type sort uint8

const (
	text sort = iota
	hash
	set
	zset
	list
)

var types = [...]string{text: "string", hash: "hash", set: "set", zset: "zset", list: "list"}

// A value is one of the five sorts. Fields of hashes and members of sets and lists stand in pairs or one after
// the other in items, in the order in which they came; those of sorted sets in members.
type value struct {
	sort    sort
	text    string
	items   []string
	members []Member // sorted by score, then by name
}

// A Member is one of a sorted set.
type Member struct {
	Name  string
	Score float64
}

// Copy returns a state that does not change with the other one.
func (r *Redis) Copy() Redis {
	return Redis{us: r.us, keys: slices.Clone(r.keys), Listeners: r.Listeners}
}

// Micros is what the clock says, in µs since 1970.
func (r *Redis) Micros() int64 { return r.us }

// Millis is what the clock says, in whole ms.
func (r *Redis) Millis() int64 { return r.us / 1000 }

// SetMicros sets the clock.
func (r *Redis) SetMicros(us int64) { r.us = us }

// find returns the index of a key, and whether it is there; one whose end is over goes.
func (r *Redis) find(name string) (int, bool) {
	for i := range r.keys {
		switch c := strings.Compare(r.keys[i].name, name); {
		case c == 0 && r.keys[i].end != 0 && r.Millis() > r.keys[i].end:
			r.keys = slices.Delete(r.keys, i, i+1)
			return i, false
		case c >= 0:
			return i, c == 0
		}
	}
	return len(r.keys), false
}

// get returns the value of a key, nil if there is none, or an error if it is of another sort.
func (r *Redis) get(name string, s sort) (*value, *Reply) {
	i, ok := r.find(name)
	switch {
	case !ok:
		return nil, nil
	case r.keys[i].val.sort != s:
		return nil, &wrongType
	}
	return r.keys[i].val, nil
}

// change returns a copy of the value of a key, which may be changed and given to put; a new one if there is none.
func (r *Redis) change(name string, s sort) (*value, *Reply) {
	v, bad := r.get(name, s)
	if bad != nil {
		return nil, bad
	}
	if v == nil {
		return &value{sort: s}, nil
	}
	c := *v
	c.items, c.members = slices.Clone(v.items), slices.Clone(v.members)
	return &c, nil
}

// put sets the value of a key, which keeps its end. Collections that are empty go.
func (r *Redis) put(name string, v *value) {
	i, ok := r.find(name)
	empty := v.sort != text && len(v.items) == 0 && len(v.members) == 0
	switch {
	case empty && ok:
		r.keys = slices.Delete(r.keys, i, i+1)
	case empty:
	case ok:
		r.keys[i].val = v
	default:
		r.keys = slices.Insert(r.keys, i, entry{name: name, val: v})
	}
}

// Delete removes a key, and reports whether it was there.
func (r *Redis) Delete(name string) bool {
	i, ok := r.find(name)
	if ok {
		r.keys = slices.Delete(r.keys, i, i+1)
	}
	return ok
}

// A Key is what a caller may see of one.
type Key struct {
	Name    string
	Type    string   // as the command TYPE says
	End     int64    // in ms since 1970; 0: none
	Text    string   // of a string
	Items   []string // of a hash, a set or a list; must not be changed
	Members []Member // of a sorted set; must not be changed
}

// Keys calls yield for each key that is not over, sorted by name.
func (r *Redis) Keys(yield func(Key) bool) {
	now := r.Millis()
	for i := range r.keys {
		e := &r.keys[i]
		if e.end != 0 && now > e.end {
			continue
		}
		if !yield(Key{Name: e.name, Type: types[e.val.sort], End: e.end, Text: e.val.text, Items: e.val.items, Members: e.val.members}) {
			return
		}
	}
}

// AppendTo appends all that a script may see of the state: two states of which it is the same are alike to scripts.
func (r *Redis) AppendTo(b []byte) []byte {
	text := func(s string) { b = append(binary.AppendUvarint(b, uint64(len(s))), s...) }
	b = binary.AppendVarint(b, r.us)
	now := r.Millis()
	for i := range r.keys {
		e := &r.keys[i]
		if e.end != 0 && now > e.end {
			continue
		}
		text(e.name)
		b = binary.AppendVarint(b, e.end)
		b = append(b, byte(e.val.sort))
		text(e.val.text)
		b = binary.AppendUvarint(b, uint64(len(e.val.items)+len(e.val.members)))
		for _, it := range e.val.items {
			text(it)
		}
		for _, m := range e.val.members {
			text(m.Name)
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(m.Score))
		}
	}
	return b
}

// Field returns a field of a hash.
func (r *Redis) Field(key, name string) (string, bool) {
	v, bad := r.get(key, hash)
	if v == nil || bad != nil {
		return "", false
	}
	if i := v.field(name); i >= 0 {
		return v.items[i+1], true
	}
	return "", false
}

// Fields returns the names of the fields of a hash.
func (r *Redis) Fields(key string) (names []string) {
	v, bad := r.get(key, hash)
	for i := 0; bad == nil && v != nil && i < len(v.items); i += 2 {
		names = append(names, v.items[i])
	}
	return names
}

// End returns the end of a key in ms since 1970, 0 if it has none or is not there.
func (r *Redis) End(key string) int64 {
	if i, ok := r.find(key); ok {
		return r.keys[i].end
	}
	return 0
}

// Exists reports whether a key is there.
func (r *Redis) Exists(key string) bool {
	_, ok := r.find(key)
	return ok
}

// Equal reports whether two states have the same keys, values and ends.
func (r *Redis) Equal(o *Redis) bool {
	for i := 0; i < len(r.keys); i++ { // what is over goes
		if _, ok := r.find(r.keys[i].name); !ok {
			i--
		}
	}
	for i := 0; i < len(o.keys); i++ {
		if _, ok := o.find(o.keys[i].name); !ok {
			i--
		}
	}
	return slices.EqualFunc(r.keys, o.keys, func(a, b entry) bool {
		return a.name == b.name && a.end == b.end && (a.val == b.val || a.val.equal(b.val))
	})
}

func (v *value) equal(w *value) bool {
	return v.sort == w.sort && v.text == w.text && slices.Equal(v.items, w.items) && slices.Equal(v.members, w.members)
}

// field returns the index of a field of a hash in items, -1 if there is none.
func (v *value) field(name string) int {
	for i := 0; i < len(v.items); i += 2 {
		if v.items[i] == name {
			return i
		}
	}
	return -1
}
