package scriptfuzz

import "strconv"

var (
	sides   = named("x", sidesRole)
	readers = named("relock_readers:{x}", readersRole)
	writers = named("relock_line1:{x}", writersLine)
	ofOwner = keys(func(w *world) []key { return []key{{"relock_rw_holds:{x}:" + w.owner, idsRole}} })
	// before is the hold of a reader that comes next, by its number.
	next  = keys(func(w *world) []key { return timeouts(w.owner, w.held+1, w.held+1) })
	first = keys(func(w *world) []key { return timeouts(w.owner, 1, 1) })
	more  = keys(func(w *world) []key { return timeouts(w.owner, 2, w.held+1) })
	all   = keys(func(w *world) []key { return timeouts(w.owner, 1, w.held) })
)

// withID are holds that have ids.
func withID(w *world) { w.id = someID }

// again are holds that the session has already.
func again(w *world) { w.id, w.held = someID, 1+w.held }

var sideScripts = []scriptRow{
	{path: "rwlock/lua/acquire_read.lua", reply: withOwner, grants: sidesRole, calls: []call{
		{as: (*world).bare, keys: k(sides, readers, writers, next), args: a(owner, lease)},
		{as: func(w *world) { withID(w); w.held = 0 }, keys: k(sides, readers, writers, next, ofOwner), args: a(owner, lease, id)},
		{as: again, keys: k(sides, readers, writers, next, ofOwner, first), args: a(owner, lease, id, held, any1("0", "1"), any1("", "w2"))},
		{as: func(w *world) { withID(w); w.held = 0 }, keys: k(sides, readers, writers, next, ofOwner), args: a(owner, lease, id, is("0", "1"), any1("", "w2"))},
		{as: (*world).bare, keys: k(sides, readers, writers, next), args: a(owner, lease, id, is("0", "0", ""), is("b"), session, comesIn, window)},
		{as: func(w *world) { withID(w); w.held = 0 }, keys: k(sides, readers, writers, next, ofOwner), args: a(owner, lease, id, is("0", "0", ""), is("b"), session, comesIn, window)},
		{as: (*world).bare, keys: k(sides, readers, writers, next), args: a(owner, lease, id, is("0", "0", ""), head("readers"), flag, ofSession, counts, any1("0", "3", "50000"))},
		{as: func(w *world) { withID(w); w.held = 0 }, keys: k(sides, readers, writers, next, ofOwner), args: a(owner, lease, id, is("0", "0", ""), head("readers"), flag, ofSession, counts, any1("0", "3", "50000"))},
	}},
	{path: "rwlock/lua/acquire_write.lua", reply: withOwner, grants: sidesRole, calls: []call{
		{as: (*world).bare, keys: k(sides, readers, writers), args: a(owner, lease, id, pollMark, timeoutPrefix)},
		{as: withID, keys: k(sides, readers, writers, ofOwner), args: a(owner, lease, id, pollMark, timeoutPrefix, optional(held, any1("0", "1"), any1("", "w2")))},
		{as: (*world).bare, keys: k(sides, readers, writers), args: a(owner, lease, id, pollMark, timeoutPrefix, is("0", "0", ""), head("writers"), flag, flag, callers, ch, publish, counts, ofSession, flag)},
		{as: withID, keys: k(sides, readers, writers, ofOwner), args: a(owner, lease, id, pollMark, timeoutPrefix, held, any1("0", "1"), any1("", "w2"), is("b"), session, comesIn, window)},
		{as: withID, keys: k(sides, readers, writers, ofOwner), args: a(owner, lease, id, pollMark, timeoutPrefix, held, any1("0", "1"), any1("", "w2"), head("writers"), flag, flag, callers, ch, publish, counts, ofSession, flag)},
	}},
	{path: "rwlock/lua/release_read.lua", reply: numbers(1, 5), calls: []call{
		{as: (*world).bare, keys: k(sides, readers, writers, first), args: a(owner, ch, publish, counts, ofSession)},
		{as: (*world).bare, keys: k(sides, readers, writers, first), args: a(owner, ch, publish, counts, ofSession, one(func(w *world) string { return w.of("0", "2") + w.own("readers") }), is("0", "0", "0", "0"))},
		{keys: k(sides, readers, writers, first, ofOwner, more), args: a(owner, ch, publish, counts, ofSession, whose, keep, any1("0", "1"), sideEndings())},
	}},
	{path: "rwlock/lua/release_write.lua", reply: numbers(1, 5), calls: []call{
		{as: (*world).bare, keys: k(sides, readers, writers, first), args: a(owner, ch, publish, counts, ofSession, is("2", "0", "0", "0", "0"), orNone("writers"), anew("writers"), flag, callers)},
		{keys: k(sides, readers, writers, first, ofOwner), args: a(owner, ch, publish, counts, ofSession, whose, keep, any1("0", "1"), sideEndings(orNone("writers"), anew("writers"), flag, callers))},
	}},
	{path: "rwlock/lua/leave_write.lua", reply: numbers(3, 3), calls: []call{
		{keys: k(sides, readers, writers, ofOwner), args: a(owner, lease, sharer, ch, publish, ofSession, some(someID, otherID))},
		{as: (*world).bare, keys: k(sides, readers, writers), args: a(owner, lease, sharer, ch, publish, ofSession)},
	}},
	{path: "rwlock/lua/extend.lua", reply: numbers(1, 1), calls: []call{
		{keys: k(sides, readers, ofOwner, first, more), args: a(owner, lease, is("r"), sharer, flag, any1("", "e1"), twice(is(), "xv", "e2"))},
		{keys: k(sides, readers, ofOwner), args: a(owner, lease, is("w"), sharer, flag, any1("", "e1"), twice(is(), "xv", "e2"))},
	}},
	{path: "rwlock/lua/renew.lua", reply: numbers(1, 3), calls: []call{
		{as: again, keys: k(sides, readers, ofOwner, all), args: a(renewed, one(func(w *world) string {
			return map[bool]string{true: "s", false: "r"}[w.named] + strconv.Itoa(3+w.held) + ":" + w.owner
		}))},
		{keys: k(sides, readers), args: a(renewed, field("r2:"))},
		{keys: k(sides, ofOwner, sides), args: a(renewed, one(func(w *world) string { return "w2:" + w.owner + ":write" }), one(func(w *world) string { return "w1:" + w.owner + ":write" }))},
	}},
	{path: "rwlock/lua/state.lua", reply: anything, calls: []call{{keys: k(sides, readers), args: a(timeoutPrefix)}, {keys: k(lock, readers), args: a(timeoutPrefix)}}},
}

var (
	pollMark      = any1("0", "4000")
	timeoutPrefix = is("{x}:")
	// sharer says that the owner is private, or what the names of its timeout keys begin with.
	sharer = one(func(w *world) string {
		return map[bool]string{true: "{x}:" + w.owner + ":rwlock_timeout:", false: "1"}[w.named]
	})
	// whose says of the holds that end whether they are a named owner's, a private one's, or all of the side.
	whose = one(func(w *world) string {
		if w.named {
			return "0"
		}
		return w.of("1", "2")
	})
)

// sideEndings are how many holds end and how many stay, what stands between, and the ids of those, and of holds of the
// other side.
func sideEndings(between ...args) args {
	return func(w *world) []string {
		end, stay := w.some(someID, "i2"), w.some(otherID)
		values := append([]string{strconv.Itoa(len(end)), strconv.Itoa(len(stay))}, join(w, between)...)
		return append(append(append(values, end...), stay...), w.some("i3")...)
	}
}
