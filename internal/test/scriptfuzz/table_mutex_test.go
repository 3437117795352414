package scriptfuzz

import "strconv"

// bookings are the last arguments of a caller that polls: when it comes again, and for how long before that what comes
// free is left to it.
var comesIn, window = any1("100", "2000"), any1("10", "100")

// said is what an attempt says of the line, from whether its entry may be there on.
var said = func(w *world) []string { return join(w, a(flag, flag, ch, publish, counts, ofSession)) }

// place is what the attempt of a fair entry says of it: an entry of its session to join or none, the number of its
// last caller, its place before or 0, how many wait then of the entry that it joins, and whether it is told who has the lock.
var place = func(w *world) []string {
	other := ""
	if w.once(2) {
		other = w.head("fair", w.session, false, 0) + w.session + ":30"
	}
	return []string{other, w.of("1", "2", "9"), w.of("0", itoa(w.near()*1000)), w.of("1", "4"), w.flag()}
}

var mutexScripts = []scriptRow{
	{path: "rlock/lua/acquire.lua", reply: withOwner, grants: lockRole, vain: "the fencing token", calls: []call{
		{as: (*world).bare, keys: k(lock), args: a(owner, lease)},
		{as: (*world).bare, keys: k(lock, line), args: a(owner, lease, head("plain"))},
		{keys: k(lock, ids2, token2), args: a(owner, lease, is(""), tokens, held, id, ends)},
		{keys: k(lock, line, ids2, token2), args: a(owner, lease, head("plain"), tokens, held, id, ends, said, callers, optional(is("1")))},
		{keys: k(lock, line, ids2, token2), args: a(owner, lease, is("b"), tokens, held, id, ends, said, callers, session, comesIn, window)},
		{as: (*world).bare, keys: k(lock, ofFair), args: a(owner, lease, is("o"), is("", "0", "", "", "1", "0"), ch, publish, counts, ofSession)},
		{keys: k(lock, ofFair, ids2, token2), args: a(owner, lease, is("r"), tokens, held, id, ends, is("1", "0"), ch, publish, counts, ofSession)},
		{keys: k(lock, ofFair, ids2, token2), args: a(owner, lease, head("fair"), tokens, held, id, ends, said, callers, place)},
	}},
	{path: "rlock/lua/release.lua", reply: numbers(1, 5), vain: "WRONGTYPE", calls: []call{
		{as: (*world).bare, keys: k(lock), args: a(owner, ch, publish, counts, is(""))},
		{as: (*world).bare, keys: k(lock, line), args: a(owner, ch, publish, counts, ofSession)},
		{keys: k(lock, line, released), args: a(owner, ch, publish, counts, ofSession, ownIDs, is("0"), orNone("plain"), anew("plain"), flag, callers, is("", ""), endings)},
		{keys: k(lock, line, released, token), args: a(owner, ch, publish, counts, ofSession, ownIDs, is("1"), orNone("plain"), anew("plain"), flag, callers, optional(is("", ""), endings))},
		{as: (*world).private, keys: k(lock, ofFair, released), args: a(owner, ch, publish, counts, ofSession, ownIDs, is("0"), orNone("fair"), anewFair, optional(endings))},
		{keys: k(lock, released), args: a(owner, ch, publish, counts, is(""), ownIDs, is("0"), orNone("plain"), anew("plain"), flag, callers, is("", ""), endings)},
	}},
	{path: "rlock/lua/leave.lua", reply: numbers(3, 3), calls: []call{
		{keys: k(lock, line, leavesIDs), args: a(owner, lease, private, leavesID, is("0"), ch, publish, ofSession, some(someID, otherID))},
		{keys: k(lock, line, leavesIDs, token), args: a(owner, lease, private, leavesID, is("60000"), ch, publish, ofSession, some(someID, otherID))},
		{keys: k(lock, leavesIDs), args: a(owner, lease, private, leavesID, is("0"), ch, publish, is(""), some(someID, otherID))},
	}},
	{path: "rlock/lua/extend.lua", reply: numbers(1, 1), calls: []call{
		{keys: k(lock, ids), args: a(owner, lease, private, flag, any1("", "e1"), twice(is("0"), "xv", "e2"))},
		{keys: k(lock, ids, token), args: a(owner, lease, private, flag, any1("", "e1"), twice(is("60000"), "xv", "e2"))},
		{as: (*world).bare, keys: k(lock), args: a(owner, lease, private, flag, is("", "0", "0"))},
		{as: (*world).bare, keys: k(lock, token), args: a(owner, lease, private, flag, is("", "0", "60000"))},
	}},
	{path: "rlock/lua/renew.lua", reply: numbers(2, 3), calls: []call{
		{keys: k(lock, ids, named("y", lockRole)), args: a(renewed, owner, is(""), owner)},
		{keys: k(lock, named("y", lockRole)), args: a(renewed, owner, is("other"))},
	}},
	{path: "rlock/lua/renew_fenced.lua", reply: numbers(2, 4), calls: []call{
		{keys: k(lock, ids, token, named("y", lockRole)), args: a(renewed, field("="), is("", "60000"), field("="))},
		{keys: k(lock, token), args: a(renewed, field("="), is("60000"))},
	}},
	{path: "rlock/lua/look.lua", reply: numbers(1, 4), calls: []call{
		{keys: k(lock, ofFair), args: a(ch, publish, counts, ofSession, is("0"), entries)},
		{keys: k(lock, ofFair, token), args: a(ch, publish, counts, ofSession, is("1"), entries)},
	}},
	{path: "rlock/lua/force_unlock.lua", reply: texts, leaves: true, calls: []call{
		{keys: k(lock), args: a(ch, publish, ofSession, counts, is("0", "0"), owners)},
		{keys: k(lock, line), args: a(ch, publish, ofSession, counts, is("0", "0"), owners)},
		{keys: k(lock, ofFair, mark), args: a(ch, publish, ofSession, counts, is("0", "65000"), owners)},
		{keys: k(sides, readers, writers), args: a(ch, publish, ofSession, counts, is("1", "0"), owners)},
		{keys: k(sides, readers, writers, mark), args: a(ch, publish, ofSession, counts, is("1", "65000"), owners)},
	}},
	{path: "rlock/lua/state.lua", reply: anything, calls: []call{{keys: k(lock)}, {keys: k(sides)}}},
	{path: "rlock/lua/waiters.lua", reply: numbers(2, 2), calls: []call{
		{keys: k(line), args: a(is("0", "3"))}, {keys: k(ofFair), args: a(is("0", "3"))},
		{keys: k(named("relock_line1:{x}", permitsLine)), args: a(is("0"))}, {keys: k(writers), args: a(is("0"))},
	}},
}

// ownIDs is 1 if the release names the key of ids.
var ownIDs = one(func(w *world) string {
	if w.byIDs {
		return "1"
	}
	return "0"
})

// A named owner that leaves names its ids.
var (
	leavesIDs = when(func(w *world) bool { return w.byIDs || w.named }, ids)
	leavesID  = one(func(w *world) string {
		if w.byIDs || w.named {
			return "1"
		}
		return "0"
	})
)

// endings are the ids of holds that end, and of those that stay. Without a key of ids there are none.
var endings = func(w *world) []string {
	if !w.byIDs {
		return join(w, a(is("0"), private, is("0")))
	}
	return join(w, a(keep, private, counted(someID, "i2"), some(otherID)))
}

// anewFair is a run that comes in anew, with whether its session listens and what a release says of it; or none.
var anewFair = func(w *world) []string {
	entry, at := "", ""
	if w.once(2) {
		entry, at = w.head("fair", w.session, false, 0)+w.session+":77", itoa(w.near()*1000)
	}
	return append([]string{entry}, append(join(w, a(flag, callers)), at, w.of("1", "3"))...)
}

// twice are how many ids are void, what stands between that and the ids, these, and ids of holds.
func twice(between args, void ...string) args {
	return func(w *world) []string {
		all := w.some(void...)
		values := append([]string{strconv.Itoa(len(all))}, between(w)...)
		return append(append(values, all...), w.some(someID, otherID)...)
	}
}

// renewed is a lease, or 0, which only asks.
var renewed = any1("30000", "0", "100000")

func field(before string) args { return one(func(w *world) string { return before + w.owner }) }

// entries are some of the session's.
var entries = func(w *world) (all []string) {
	for range w.n(4) {
		all = append(all, w.head("fair", w.session, false, w.n(3))+w.session+":"+w.of("1", "2", "30"))
	}
	if w.named {
		all = append(all[:min(2, len(all))], w.head("fair", w.session, true, 0)+w.owner)
	}
	return all
}

// owners are some that are meant.
var owners = func(w *world) (all []string) {
	for range w.n(3) {
		all = append(all, w.field())
	}
	return all
}
