package scriptfuzz

import "strconv"

var (
	free      = named("x", freeRole)
	taken     = named("{x}:timeout", takenRole)
	ofSem     = named("relock_line1:{x}", permitsLine)
	ofCounter = named("relock_line1:{x}", countersLine)
	requests  = requestsOf("1")
	limitNo   = named("relock_limit:{x}:c", lastRole)
	extendNo  = named("relock_extended:{x}:c", lastRole)
	voids     = keys(func(w *world) []key { return []key{{"relock_extended:{x}:" + w.owner, idsRole}} })
)

// requestsOf is the key of a session's requests, with such outcomes of the one that is made again.
func requestsOf(outcomes ...string) keys {
	return named("relock_requests:{x}:c", requestsRole(outcomes...))
}

var (
	kept0      = any1("0", "90000")             // see keep.lua
	limit      = any1("3", "1", "100")          //
	remembered = is("180000")                   // for how many ms a request is
	numberNo   = any1("5", "6", "4")            // of a SetLimit, a Delete, an extension
	size       = any1("1", "2", "3", "64", "5") // of a request to a counter
	permitIDs  = func(w *world) []string { return w.permits(w.owner, w.permitN) }
)

// inLine is what an attempt says of the line, and of who waits there: it comes behind the head.
func inLine(who ...args) args {
	return func(w *world) []string { return join(w, append(a(flag, flag, counts, ofSession, callers), who...)) }
}

// polls is what an attempt says that polls.
var polls = func(w *world) []string {
	return join(w, a(is("b", "0", "0"), counts, ofSession, is("0"), session, comesIn, window))
}

// lineIf names the line and says what makes channels, or neither.
func lineIf(line keys, before []keys, begin []args) []call {
	return []call{
		{keys: append(before[:len(before):len(before)], line), args: append(begin[:len(begin):len(begin)], ofSession)},
		{keys: before, args: append(begin[:len(begin):len(begin)], is(""))},
	}
}

var semaphoreScripts = []scriptRow{
	{path: "semaphore/lua/acquire.lua", purges: true, reply: numbers(1, 6), calls: []call{
		{as: (*world).private, keys: k(free, taken), args: a(lease, limit, ch, publish, kept0, flag, is(""), permitIDs)},
		{as: (*world).private, keys: k(free, taken, ofSem), args: a(lease, limit, ch, publish, kept0, flag, head("permits"), inLine(owner, is("", "")), permitIDs)},
		{as: (*world).private, keys: k(free, taken, ofSem), args: a(lease, limit, ch, publish, kept0, flag, polls, permitIDs)},
	}},
	{path: "semaphore/lua/release.lua", reply: numbers(1, 5), calls: []call{
		{as: (*world).private, keys: k(free, taken, ofSem), args: a(ch, publish, counts, kept0, ofSession, orNone("permits"), owner, flag, flag, permitIDs)},
		{as: (*world).private, keys: k(free, taken), args: a(ch, publish, counts, kept0, is("", ""), owner, flag, flag, permitIDs)},
		{as: (*world).private, keys: k(free, taken, ofSem), args: a(ch, publish, counts, kept0, ofSession, head("permits"), owner, flag, flag)},
	}},
	{path: "semaphore/lua/extend.lua", reply: numbers(1, 1), calls: []call{
		{as: (*world).private, keys: k(free, taken), args: a(lease, flag, kept0, is(""), one(func(w *world) string { return strconv.Itoa(w.permitN) }), permitIDs)},
		{as: (*world).private, keys: k(free, taken, voids), args: a(lease, flag, kept0, is("e1"), one(func(w *world) string { return strconv.Itoa(w.permitN) }), permitIDs, some("e2"))},
	}},
	{path: "semaphore/lua/renew.lua", reply: numbers(3, 16), calls: []call{
		{as: (*world).private, keys: k(free, taken), args: a(renewed, one(func(w *world) string { return strconv.Itoa(w.permitN) }), kept0, permitIDs)},
		{as: (*world).private, keys: k(free, taken, free, taken), args: a(renewed, one(func(w *world) string { return strconv.Itoa(w.permitN) }), kept0, permitIDs,
			one(func(w *world) string { return strconv.Itoa(w.permitN) }), kept0, permitIDs)},
	}},
	{path: "semaphore/lua/renew_taken.lua", reply: numbers(3, 16), calls: []call{
		{as: (*world).private, keys: k(taken), args: a(renewed, one(func(w *world) string { return strconv.Itoa(w.permitN) }), kept0, permitIDs)},
	}},
	{path: "semaphore/lua/state.lua", reply: numbers(2, 2), calls: lineIf(ofSem, k(free, taken, requests), a(limit, ch, publish, counts))},
	{path: "semaphore/lua/set_limit.lua", reply: numbers(1, 1), calls: lineIf(ofSem, k(free, taken, requests, limitNo), a(any1("3", "0", "100"), ch, publish, numberNo, remembered, kept0, counts))},
	{path: "semaphore/lua/delete.lua", reply: numbers(1, 1), calls: lineIf(ofSem, k(free, taken, requests, limitNo), a(numberNo, remembered, ch, publish))},
	{path: "semaphore/lua/release_by_id.lua", reply: numbers(1, 1), calls: []call{
		{keys: k(free, taken, ofSem), args: a(ch, publish, kept0, counts, ofSession, permitIDs)},
		{keys: k(free, taken), args: a(ch, publish, kept0, counts, is(""), permitIDs)},
	}},
	{path: "semaphore/lua/extend_by_id.lua", reply: numbers(1, 1), calls: []call{
		{keys: k(free, taken, extendNo), args: a(lease, kept0, numberNo, remembered, permitIDs)},
	}},
}

// request is the slot of a request, its number, for how long it is remembered, and for how long the counter is kept.
var request = func(w *world) []string {
	return []string{w.of("0", "1"), w.of("5", "6", "4"), "180000", w.of("0", "90000")}
}

// late is the error of a request whose call has ended.
var late = []string{"LATE"}

var counterScripts = []scriptRow{
	{path: "semaphore/lua/take.lua", reply: numbers(6, 6), errs: late, calls: []call{
		{keys: k(free, taken, requestsOf("2", "undone")), args: a(request, size, is(""))},
		{as: (*world).private, keys: k(free, taken, requestsOf("2", "undone"), ofCounter), args: a(request, size, head("counters"), inLine(owner, is("", "")), ch, publish)},
		{keys: k(free, taken, requestsOf("2", "undone"), ofCounter), args: a(request, size, polls, ch, publish)},
	}},
	{path: "semaphore/lua/untake.lua", reply: numbers(3, 3), calls: []call{
		{as: (*world).private, keys: k(free, requestsOf("2", "undone"), ofCounter), args: a(request, ch, publish, counts, ofSession, orNone("counters"), owner)},
		{keys: k(free, requestsOf("2", "undone")), args: a(request, ch, publish, counts, is("", ""), owner)},
	}},
	{path: "semaphore/lua/add.lua", reply: numbers(1, 1), errs: late, calls: lineIf(ofCounter, k(free, taken, requests), a(request, any1("1", "3", "-2"), ch, publish, counts))},
	{path: "semaphore/lua/drain.lua", reply: digits, errs: late, calls: []call{{keys: k(free, taken, requestsOf("3", "0")), args: a(request)}}},
	{path: "semaphore/lua/try_set.lua", reply: numbers(1, 1), errs: late, calls: lineIf(ofCounter, k(free, taken, requestsOf("1", "0")), a(request, any1("3", "0"), ch, publish, counts))},
	{path: "semaphore/lua/delete_counter.lua", reply: numbers(1, 1), errs: late, calls: []call{{keys: k(free, taken, requests), args: a(request)}}},
	{path: "semaphore/lua/count.lua", reply: digits, calls: []call{{keys: k(free, taken)}}},
}
