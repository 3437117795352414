package scriptfuzz

import (
	"fmt"
	"slices"
	"strings"
)

// A role is what a key is for a script.
type role struct {
	name string
	ends bool // it has a TTL whenever it is there
	// seldom is of a key that keeps a script from coming to its end, if it is there.
	seldom bool
	// helper is of a key beside a lock, which goes with that, or is written anew, whatever stands there.
	helper bool
	types  []string // the type that it has; or several
	// state returns the commands that make what it may hold, if it is of its type.
	state func(w *world, key string) [][]string
}

// A key is one that a call names.
type key struct {
	name string
	role *role
}

// others are commands that make values of each type.
func others(name string) map[string][]string {
	return map[string][]string{
		"string": {"SET", name, "s"}, "hash": {"HSET", name, "f", "v"}, "set": {"SADD", name, "m"},
		"zset": {"ZADD", name, "1", "m"}, "list": {"RPUSH", name, "e"},
	}
}

// setUp returns the commands that make the state of a key: half of the time what some life of it may have left, else
// nothing, or a value of another type.
func (k key) setUp(w *world) (cmds [][]string) {
	what := w.n(7)
	switch {
	case what < 2 || w.tidy && k.role.seldom && what < 5:
		return nil
	case what == 2 && !w.tidy:
		all := others(k.name)
		for _, t := range k.role.types {
			delete(all, t)
		}
		kinds := make([]string, 0, len(all))
		for t := range all {
			kinds = append(kinds, t)
		}
		slices.Sort(kinds)
		cmds = append(cmds, all[w.of(kinds...)])
	default:
		cmds = k.role.state(w, k.name)
	}
	if len(cmds) == 0 {
		return nil
	}
	if k.role.ends && !w.once(8) || !k.role.ends && w.once(6) {
		cmds = append(cmds, []string{"PEXPIRE", k.name, w.ttl()})
	}
	return cmds
}

// add makes one command of members, none of no members.
func add(command, key string, members []string) [][]string {
	if len(members) == 0 {
		return nil
	}
	return [][]string{append([]string{command, key}, members...)}
}

// The roles that a lock of owners has.
var (
	lockRole = &role{name: "lock", ends: true, types: []string{"hash"}, state: func(w *world, key string) [][]string {
		fields := []string{w.field(), w.of("1", "2", "1", "30", "0", "-1", "text")}
		if w.tidy {
			fields[1] = w.of("1", "2", "1")
		}
		if w.once(8) {
			fields = append(fields, w.anOwner(), "1")
		}
		if w.once(8) {
			fields = append(fields, "mode", w.of("read", "write", "odd"))
		}
		return add("HSET", key, fields)
	}}
	idsRole = &role{name: "ids", ends: true, helper: true, types: []string{"set"}, state: func(w *world, key string) [][]string {
		var all []string
		for _, id := range []string{someID, otherID, "e1", "e2"} {
			all = append(all, id, "x"+id, "r"+id, "w"+id)
		}
		return add("SADD", key, w.some(all...))
	}}
	tokenRole = &role{name: "token", helper: true, types: []string{"string"}, state: func(w *world, key string) [][]string {
		return add("SET", key, []string{w.of("7", "0", "-3", "text", "1.5", "9223372036854775807", "")})
	}}
	markRole = &role{name: "mark", ends: true, seldom: true, types: []string{"set"}, state: func(w *world, key string) [][]string {
		return add("SADD", key, []string{w.field()})
	}}
)

// The scores of a line, see line.lua.
const (
	booked, passed, number, alive = -9_000_000_000_000_000, 2_400_000_000_000_000, 4_850_000_000_000_000, 5_000_000_000_000_000
	listens, passedBy, called     = 6_000_000_000_000_000, 7_000_000_000_000_000, 8_000_000_000_000_000
	kept, marked, gate, waits     = 8_200_000_000_000_000, 8_400_000_000_000_000, 8_500_000_000_000_000, 8_600_000_000_000_000
	lateReads, reads              = 8_700_000_000_000_000, 8_800_000_000_000_000
)

// lineRole is the line of a kind.
func lineRole(kind string) *role {
	return &role{name: "line", ends: true, types: []string{"zset"}, state: func(w *world, key string) (cmds [][]string) {
		var members []string
		put := func(score int64, member string) { members = append(members, itoa(score), member) }
		for range w.n(5) {
			entry := w.entry(kind)
			if w.once(3) {
				entry = w.own(kind) + w.owner
			}
			if kind == "fair" && w.once(3) {
				entry = w.head(kind, w.session, false, 0) + w.session + ":30"
			}
			position := w.near() * 1000
			if w.once(5) {
				position += passed
			}
			put(position, entry)
			if w.once(3) {
				put(number+int64(w.n(4)), "#"+entry)
			}
			if w.once(4) {
				put(waits+int64(w.n(4)), "w"+entry)
			}
			if w.once(4) {
				put(kept+w.near(), "k"+entry)
			}
		}
		for _, s := range sessions {
			if !w.once(3) {
				put(alive-w.later(), "s"+s)
			}
			if w.once(3) {
				put(listens-w.near(), "l"+s)
			}
			if w.once(3) {
				put(waits+int64(w.n(4)), "w"+s)
			}
			if w.once(4) {
				put(passedBy+w.near(), "p"+s)
			}
			if w.once(6) {
				put(booked+(w.near()*1000)+int64(w.n(100)), w.of("b", "b:")+s)
			}
		}
		if w.once(3) {
			put(called+w.near(), "c")
		}
		if kind == "writers" && !w.once(3) {
			put(marked+w.near(), "m")
		}
		if kind == "writers" && w.once(3) {
			put(gate+w.near(), "t")
		}
		if kind == "writers" {
			putReaders(w, put)
		}
		return add("ZADD", key, members)
	}}
}

// putReaders puts entries of readers, some of which were called and have not come.
func putReaders(w *world, put func(score int64, member string)) {
	for range w.n(4) {
		entry, score := w.entry("readers"), int64(reads)
		if w.once(3) {
			entry = w.own("readers") + w.owner
		}
		if w.once(4) {
			score = lateReads
		}
		put(score+w.near(), entry)
	}
}

var mutexLine, writersLine, permitsLine = lineRole("plain"), lineRole("writers"), lineRole("permits")
var fairLine, countersLine = lineRole("fair"), lineRole("counters")

// The roles of a read-write lock.
var (
	sidesRole = &role{name: "sides", ends: true, types: []string{"hash"}, state: func(w *world, key string) [][]string {
		mode := w.of("read", "write", "read", "write", "odd")
		fields := []string{"mode", mode}
		if w.once(6) {
			fields = nil
		}
		for range 1 + w.n(2) {
			owner := w.field()
			if w.tidy && mode == "write" || !w.tidy && w.once(2) {
				owner += ":write"
			}
			count := w.of("1", "2", "0", "30", "5000", "text")
			if owner == w.owner && count == "text" {
				count = "1" // of a private owner there is what this module has written
			}
			fields = append(fields, owner, count)
		}
		return add("HSET", key, fields)
	}}
	readersRole = &role{name: "readers", ends: true, helper: true, types: []string{"zset"}, state: func(w *world, key string) [][]string {
		var members []string
		for range 1 + w.n(3) {
			members = append(members, itoa(w.later()), w.field())
		}
		return add("ZADD", key, members)
	}}
	timeoutRole = &role{name: "timeout", ends: true, helper: true, types: []string{"string"}, state: func(w *world, key string) [][]string {
		return add("SET", key, []string{"1"})
	}}
)

// The roles of semaphores, counters and latches.
var (
	freeRole = &role{name: "free", types: []string{"string"}, state: func(w *world, key string) [][]string {
		return add("SET", key, []string{w.of("3", "1", "0", "100", "-2", "text", "1e3", "007", "", "999999999999999999")})
	}}
	takenRole = &role{name: "taken", types: []string{"zset"}, state: func(w *world, key string) [][]string {
		var members []string
		for range 1 + w.n(2) {
			owner := w.field()
			for _, id := range w.permits(owner, 1+w.n(3)) {
				expiry := w.later()
				if w.once(6) {
					expiry = 922337203685477580 // Redisson's of a permit without a lease
				}
				members = append(members, itoa(expiry), id)
			}
		}
		return add("ZADD", key, members)
	}}
	lastRole = &role{name: "last", ends: true, seldom: true, types: []string{"string"}, state: func(w *world, key string) [][]string {
		return add("SET", key, []string{w.of("5", "4", "6")})
	}}
	latchRole = &role{name: "latch", types: []string{"string"}, state: func(w *world, key string) [][]string {
		return add("SET", key, []string{w.of("3", "1", "0", "-1", "text")})
	}}
	doneRole = &role{name: "done", ends: true, types: []string{"string"}, state: func(w *world, key string) [][]string {
		return add("SET", key, []string{"1"})
	}}
)

// requestsRole is what is remembered of a session's requests, with such outcomes of this one.
func requestsRole(outcomes ...string) *role {
	return &role{name: "requests", ends: true, seldom: true, types: []string{"hash"}, state: func(w *world, key string) [][]string {
		var fields []string
		for _, slot := range w.some("0", "1") {
			fields = append(fields, slot, w.of("5", "4", "6", "9")+":"+w.of(outcomes...))
		}
		return add("HSET", key, fields)
	}}
}

// The roles of what is built on locks.
var (
	lifeRole = &role{name: "life", types: []string{"string"}, state: func(w *world, key string) [][]string {
		return add("SET", key, []string{w.of("", "abc ", "x", "text and more") + itoa(w.near())})
	}}
	leaderRole = &role{name: "leader", types: []string{"hash"}, state: func(w *world, key string) [][]string {
		return add("HSET", key, w.some2("owner", w.anOwner(), "term", "4", "revision", w.of("3", "1", "9"), "value", "v"))
	}}
	textRole  = &role{name: "text", types: []string{"string"}, state: func(w *world, key string) [][]string { return add("SET", key, []string{"id"}) }}
	probeRole = &role{name: "probe", ends: true, state: func(*world, string) [][]string { return nil }}
	// eitherRole is a lock or the counter of a semaphore.
	eitherRole = &role{name: "either", types: []string{"string", "hash"}, state: func(w *world, key string) [][]string {
		if w.once(2) {
			return [][]string{{"SET", key, w.of("3", "0", "-2")}}
		}
		return append(lockRole.state(w, key), []string{"PEXPIRE", key, "60000"})
	}}
)

// timeouts are a reader's timeout keys from the first to the last.
func timeouts(owner string, first, last int) (keys []key) {
	for i := first; i <= last; i++ {
		keys = append(keys, key{fmt.Sprintf("{x}:%s%s%d", owner, readersN, i), timeoutRole})
	}
	return keys
}

// isTimeout reports whether a key is a reader's timeout key, which a script may make out of the name of another.
func isTimeout(name string) bool {
	return strings.HasPrefix(name, "{x}:") && strings.Contains(name, readersN)
}
