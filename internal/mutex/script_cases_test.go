package mutex_test

import (
	"relock/internal/test/locktest"
)

const (
	held1 = "HSET lock me 1"
	held2 = "HSET lock me 2"
	held3 = "HSET lock me 3"
	other = "HSET lock other 1"
	ttl   = "PEXPIRE lock 60000"

	forever = "PEXPIRE lock " + locktest.Forever
	wrong   = "WRONGTYPE"
)

var (
	kase   = locktest.Case
	setup  = locktest.Setup
	args   = locktest.Args
	lock   = locktest.Keys("lock")
	ids    = locktest.Keys("lock", "ids")
	token  = locktest.Keys("lock", "token")
	all    = locktest.Keys("lock", "ids", "token")
	enter  = args("me", "30000")                      // acquire: the first hold of a private owner
	draw   = args("me", "30000", "", "3", "0")        // the same, with three tokens
	byID   = args("me", "30000", "", "0", "0", "a")   // a named owner
	more   = args("me", "30000", "", "0", "1", "a")   // one more hold
	end    = args("me", "ch", "PUBLISH", "1", "")     // release
	endAll = append(end[:5:5], "1", "0", "", "", "0") // the same, and the ids
	line   = locktest.Keys("lock", "line")
	one    = ends("0", "1", "a") // release by id

	lineMark = locktest.Keys("lock", "line", "mark")
	marked   = args("ch", "PUBLISH", "s:", "1", "0", "60000", "you", "me") // force_unlock, with a mark
)

// ends are the arguments of release.lua for a named owner.
func ends(keep string, more ...string) []string {
	return append(args("me", "ch", "PUBLISH", "1", "", "1", "0", "", "", "0", "0", "", "", keep, "0"), more...)
}

var scriptCases = []locktest.ScriptCase{
	kase("a free lock is taken", "acquire", nil, lock, enter, "1", "[1 1 0 0]", "lock{me:1}"),
	kase("another owner's lock is refused", "acquire", setup(other, forever), lock, enter, "[0 forever 0 0 other]", "[0 forever 0 0 other]", "lock{other:1}"),
	kase("a late nested hold is no other first one", "acquire", setup(held2, ttl), lock, enter, "[1 2 0 0]", "[1 2 0 0]", "lock{me:2}"),
	kase("tokens are reserved once", "acquire", setup("SET token 41"), token, draw, "[1 1 44 1]", "[1 1 44 0]", "lock{me:1} token=44"),
	kase("the first tokens", "acquire", nil, token, draw, "[1 1 3 1]", "[1 1 3 0]", "lock{me:1} token=3"),
	kase("a refused caller reserves none", "acquire", setup(other, "SET token 41", forever), token, draw, "[0 forever 0 0 other]", "[0 forever 0 0 other]", "lock{other:1} token=41"),
	kase("an unusable token changes nothing", "acquire", setup("SET token x"), token, draw, wrong, wrong, "token=x"),
	kase("a token of another type changes nothing", "acquire", setup("HSET token a 1"), token, draw, wrong, wrong, "token{a:1}"),
	kase("a token that cannot be counted up changes nothing", "acquire", setup("SET token 9223372036854775805"), token, draw, wrong, wrong, "token=9223372036854775805"),
	kase("a lock without a TTL is no lock", "acquire", setup(other), lock, enter, wrong, wrong, "lock{other:1}"),
	kase("a field that is no count is no lock", "acquire", setup("HSET lock name bob", forever), lock, enter, wrong, wrong, "lock{name:bob}"),
	kase("a field of ours that is no count is no lock", "acquire", setup("HSET lock me bob", forever), lock, enter, wrong, wrong, "lock{me:bob}"),
	kase("what is no lock is not left to one that polls", "acquire", setup("HSET lock a 1 b 1", forever), line, args("me", "30000", "b", "0", "0", "", "", "0", "0", "ch", "PUBLISH", "1", "s:", "1", "A", "100", "50"), wrong, wrong, "lock{a:1 b:1}"),
	kase("two owners are no lock", "acquire", setup("HSET lock a 1 b 1", forever), ids, byID, wrong, wrong, "lock{a:1 b:1}"),
	kase("a read-write lock is waited for", "acquire", setup("HSET lock mode read b 1", forever), lock, enter, "[0 forever 0 0]", "[0 forever 0 0]", "lock{b:1 mode:read}"),
	kase("another type changes nothing", "acquire", setup("SET lock x"), lock, enter, wrong, wrong, "lock=x"),

	kase("an owner enters by id", "acquire", nil, ids, byID, "[1 1 0 1]", "[1 1 0 0]", "ids(a) lock{me:1}"),
	kase("a hold by id is counted once", "acquire", setup(held2, ttl, "SADD ids b"), ids, more, "[1 3 0 1]", "[1 3 0 0]", "ids(a b) lock{me:3}"),
	kase("a named owner is in elsewhere", "acquire", setup(held1, ttl, "SADD ids b"), ids, byID, "[1 2 0 1]", "[1 2 0 0]", "ids(a b) lock{me:2}"),
	kase("a named owner that is in elsewhere keeps the token", "acquire", setup(held1, ttl, "SADD ids b", "SET token 7"), all, args("me", "30000", "", "1", "0", "a"), "[1 2 7 1]", "[1 2 7 0]", "ids(a b) lock{me:2} token=7"),
	kase("tokens are reserved where a named owner enters", "acquire", setup("SET token 7"), all, args("me", "30000", "", "2", "0", "a"), "[1 1 9 1]", "[1 1 9 0]", "ids(a) lock{me:1} token=9"),
	kase("tokens are reserved by a further hold, once", "acquire", setup(held1, ttl, "SET token 7"), all, args("me", "30000", "", "2", "1", "a"), "[1 2 9 1]", "[1 2 9 0]", "ids(a) lock{me:2} token=9"),
	kase("the first tokens of those that end", "acquire", nil, token, args("me", "30000", "", "3", "0", "", "5000"), "[1 1 3 1]", "[1 1 3 0]", "lock{me:1} token=3"),
	kase("tokens that end are drawn by id", "acquire", setup("SET token 7"), all, args("me", "30000", "", "2", "0", "a", "5000"), "[1 1 9 1]", "[1 1 9 0]", "ids(a) lock{me:1} token=9"),
	kase("a further hold keeps a token that ends", "acquire", setup(held1, ttl, "SET token 7"), all, args("me", "30000", "", "0", "1", "a", "5000"), "[1 2 0 1]", "[1 2 0 0]", "ids(a) lock{me:2} token=7"),
	kase("an unusable token changes nothing by id", "acquire", setup("SET token x"), all, args("me", "30000", "", "1", "0", "a"), wrong, wrong, "token=x"),
	kase("another owner is refused", "acquire", setup(other, forever), ids, byID, "[0 forever 0 0 other]", "[0 forever 0 0 other]", "lock{other:1}"),
	kase("a further hold on a lost lock is no hold", "acquire", nil, ids, more, "[-1 0 0 0]", "[-1 0 0 0]", ""),
	kase("a further hold on another's lock is lost", "acquire", setup(other), ids, more, "[-1 0 0 0]", "[-1 0 0 0]", "lock{other:1}"),
	kase("ids of an earlier life do not count", "acquire", setup("SADD ids a b"), ids, byID, "[1 1 0 1]", "[1 1 0 0]", "ids(a) lock{me:1}"),
	kase("another type is not entered", "acquire", setup("SET lock x"), ids, byID, wrong, wrong, "lock=x"),

	kase("the lock is free", "release", setup(held1, ttl), lock, end, "0", "[0 0 -1]", ""),
	kase("whatever the count", "release", setup(held3, ttl, "SADD ids a b"), ids, endAll, "0", "[0 0 -1]", ""),
	kase("a late nested hold does not keep it", "release", setup(held2, ttl), lock, end, "0", "[0 0 -1]", ""),
	kase("the count may be unknown", "release", setup(held1, ttl), lock, args("me", "ch", "PUBLISH", "0", ""), "-1", "[0 0 -1]", ""),
	kase("another owner's hold is not released", "release", setup(other, "SADD ids a"), ids, endAll, "[0 0 -1]", "[0 0 -1]", "ids(a) lock{other:1}"),
	kase("a foreign field stays", "release", setup("HSET lock me 1 other 1", ttl), lock, end, "0", "[0 0 -1]", "lock{other:1}"),
	kase("nothing is there", "release", nil, lock, end, "[0 0 -1]", "[0 0 -1]", ""),
	kase("another type is left alone", "release", setup("SET lock x"), ids, endAll, "[0 0 -1]", "[0 0 -1]", "lock=x"),

	kase("a hold by id ends", "release", setup(held3, ttl, "SADD ids a b"), ids, one, "[2 1 -1]", "[2 0 -1]", "ids(b) lock{me:2}"),
	kase("the last hold by id frees", "release", setup(held1, ttl, "SADD ids a"), ids, one, "[0 1 0]", "[0 0 -1]", ""),
	kase("the count may be unknown", "release", setup(held1, ttl, "SADD ids a"), ids, args("me", "ch", "PUBLISH", "0", "", "1", "0", "", "", "0", "0", "", "", "0", "0", "1", "a"), "[0 1 -1]", "[0 0 -1]", ""),
	kase("several holds by id end at once", "release", setup(held2, ttl, "SADD ids a b"), ids, ends("0", "2", "b", "a"), "[0 1 0]", "[0 0 -1]", ""),
	kase("a hold of an earlier life is not released", "release", setup(held1, ttl, "SADD ids b"), ids, one, "[1 0 -1]", "[1 0 -1]", "ids(b) lock{me:1}"),
	kase("a hold that was never taken is not released", "release", setup(held1, ttl), ids, one, "[1 0 -1]", "[1 0 -1]", "lock{me:1}"),
	kase("nothing is held by id", "release", setup(other, "SADD ids a"), ids, one, "[0 0 -1]", "[0 0 -1]", "lock{other:1}"),
	kase("another type is left alone", "release", setup("SET lock x"), ids, one, "[0 0 -1]", "[0 0 -1]", "lock=x"),

	kase("many are renewed, each for itself", "renew", setup(held1, ttl, "SET token x", "HSET req other 1"), locktest.Keys("lock", "token", "req", "gone", "token"), args("30000", "me", "me", "me", "me", ""), "[1 0 0 0 0]", "[1 0 0 0 0]", "lock{me:1} req{other:1} token=x"),
	kase("what goes along is renewed with its lock", "renew", setup(held1, ttl, "SADD ids a"), ids, args("30000", "me", ""), "[1 1]", "[1 1]", "ids(a) lock{me:1}"),

	kase("many with a token are renewed, each for itself", "renew_fenced", setup(held1, ttl, "SADD ids a", "SET token 7", "HSET req other 1"), locktest.Keys("lock", "ids", "token", "req", "token", "gone"), args("30000", "=me", "", "5000", "=me", "5000", "=me"), "[1 1 1 0 0 0]", "[1 1 1 0 0 0]", "ids(a) lock{me:1} req{other:1} token=7"),
	kase("what is no lock is not renewed", "renew_fenced", setup("SET lock x", "SET token 7"), token, args("30000", "=me", "5000"), "[0 0]", "[0 0]", "lock=x token=7"),

	kase("a private owner's lock is extended", "extend", setup(held1, ttl), lock, args("me", "90000", "1", "0", "e", "0", "0"), "1", "1", "lock{me:1}"),
	kase("a private owner's holds by id are extended", "extend", setup(held3, ttl, "SADD ids a"), ids, args("me", "90000", "1", "0", "e", "0", "0"), "1", "1", "ids(a) lock{me:3}"),
	kase("a named owner's holds are extended", "extend", setup(held2, ttl, "SADD ids a b"), ids, args("me", "30000", "0", "0", "e", "0", "0", "a", "b"), "1", "1", "ids(a b) lock{me:2}"),
	kase("holds of an earlier life are lost", "extend", setup(held1, ttl, "SADD ids b"), ids, args("me", "90000", "0", "0", "e", "0", "0", "a"), "0", "0", "ids(b) lock{me:1}"),
	kase("a void extension changes nothing", "extend", setup(held1, ttl, "SADD ids xe"), ids, args("me", "90000", "1", "0", "e", "0", "0"), "1", "1", "ids(xe) lock{me:1}"),
	kase("an extension voids those before it", "extend", setup(held1, ttl), ids, args("me", "90000", "1", "0", "e", "2", "0", "c", "d"), "1", "1", "ids(xc xd) lock{me:1}"),
	kase("void ids are no holds", "extend", setup(held2, ttl, "SADD ids a b"), ids, args("me", "30000", "0", "0", "e", "1", "0", "d", "a", "b"), "1", "1", "ids(a b xd) lock{me:2}"),
	kase("a lock that is lost voids nothing", "extend", setup(other), ids, args("me", "90000", "1", "0", "e", "1", "0", "d"), "0", "0", "lock{other:1}"),
	kase("no id, no ids key", "extend", setup(held1, ttl), lock, args("me", "90000", "1", "1", "", "0", "0"), "1", "1", "lock{me:1}"),
	kase("a token is no set of ids", "extend", setup(held1, ttl, "SET token 7"), token, args("me", "90000", "1", "1", "", "0", "5000"), "1", "1", "lock{me:1} token=7"),
	kase("a lock with a token voids", "extend", setup(held1, ttl, "SET token 7"), all, args("me", "90000", "1", "0", "e", "1", "5000", "d"), "1", "1", "ids(xd) lock{me:1} token=7"),
	kase("ids of another type change nothing", "extend", setup(held1, ttl, "SET ids x"), ids, args("me", "30000", "0", "0", "e", "0", "0", "a"), wrong, wrong, "ids=x lock{me:1}"),
	kase("nothing is extended", "extend", setup(other), lock, args("me", "90000", "1", "0", "e", "0", "0"), "0", "0", "lock{other:1}"),
	kase("another type is not extended", "extend", setup("SET lock x"), lock, args("me", "90000", "1", "0", "e", "0", "0"), "0", "0", "lock=x"),

	kase("a lock is left standing", "leave", setup(held1, ttl), line, args("me", "5000", "1", "0", "0", "ch", "PUBLISH", "s:"), "[1 1 -1]", "[1 1 -1]", "lock{me:1}"),
	kase("a lock without a line is left standing", "leave", setup(held1, ttl), lock, args("me", "5000", "1", "0", "0", "ch", "PUBLISH", ""), "[1 1 -1]", "[1 1 -1]", "lock{me:1}"),
	kase("all that is there is left", "leave", setup(held3, ttl, "SADD ids a b", "SET token 7"), locktest.Keys("lock", "line", "ids", "token"), args("me", "5000", "1", "1", "5000", "ch", "PUBLISH", "s:"), "[3 1 -1]", "[3 1 -1]", "ids(a b) lock{me:3} token=7"),
	kase("a named owner leaves its own", "leave", setup(held2, ttl, "SADD ids a b"), ids, args("me", "5000", "0", "1", "0", "ch", "PUBLISH", "", "a", "b"), "[2 1 -1]", "[2 1 -1]", "ids(a b) lock{me:2}"),
	kase("holds of an earlier life cannot be left", "leave", setup(held1, ttl, "SADD ids b"), ids, args("me", "5000", "0", "1", "0", "ch", "PUBLISH", "", "a"), "[0 0 -1]", "[0 0 -1]", "ids(b) lock{me:1}"),
	kase("another's lock cannot be left", "leave", setup(other, ttl), line, args("me", "5000", "1", "0", "0", "ch", "PUBLISH", "s:"), "[0 0 -1]", "[0 0 -1]", "lock{other:1}"),
	kase("another type cannot be left", "leave", setup("SET lock x"), line, args("me", "5000", "1", "0", "0", "ch", "PUBLISH", "s:"), "[0 0 -1]", "[0 0 -1]", "lock=x"),
	kase("ids of another type leave nothing", "leave", setup(held1, ttl, "SET ids x"), ids, args("me", "5000", "0", "1", "0", "ch", "PUBLISH", "", "a"), wrong, wrong, "ids=x lock{me:1}"),

	kase("any hold is forced", "force_unlock", setup(held2, ttl), line, args("ch", "PUBLISH", "s:", "1", "0", "0", "you", "me"), "[me]", "[]", ""),
	kase("who holds it is told, and nothing changed", "force_unlock", setup(held2, ttl), line, args("ch", "PUBLISH", "s:", "1", "0", "0"), "[me]", "[me]", "lock{me:2}"),
	kase("another owner than the one that is meant is not forced", "force_unlock", setup(held2, ttl), line, args("ch", "PUBLISH", "s:", "1", "0", "0", "you"), "[]", "[]", "lock{me:2}"),
	kase("what is no lock is not forced", "force_unlock", setup("HSET lock name bob", forever), line, args("ch", "PUBLISH", "s:", "1", "0", "0", "name"), wrong, wrong, "lock{name:bob}"),
	kase("a lock without a TTL is not forced", "force_unlock", setup(held2), line, args("ch", "PUBLISH", "s:", "1", "0", "0", "me"), wrong, wrong, "lock{me:2}"),
	kase("another kind of lock is not forced", "force_unlock", setup("HSET lock mode read me 1", forever), line, args("ch", "PUBLISH", "s:", "1", "0", "0", "me"), wrong, wrong, "lock{me:1 mode:read}"),
	kase("another type is not forced", "force_unlock", setup("SET lock x"), line, args("ch", "PUBLISH", "s:", "1", "0", "0"), wrong, wrong, "lock=x"),
	kase("a second run ends nothing, also where the same owner has the lock again", "force_unlock", setup(held2, ttl, "SADD mark me"), lineMark, marked, "[me]", "[me]", "lock{me:2} mark(me)"),
	kase("a second run ends nothing of another kind of lock", "force_unlock", setup("HSET lock mode read me 1", forever, "SADD mark me"), lineMark, marked, "[me]", "[me]", "lock{me:1 mode:read} mark(me)"),
	kase("a forced unlock leaves a mark", "force_unlock", setup(held2, ttl), lineMark, marked, "[me]", "[me]", "mark(me)"),
	kase("who was not meant leaves no mark", "force_unlock", setup(other, ttl), lineMark, marked, "[]", "[]", "lock{other:1}"),
	kase("a free lock leaves no mark", "force_unlock", nil, lineMark, marked, "[]", "[]", ""),
	kase("what stands at the mark and is none is told", "force_unlock", setup(held2, ttl, "SET mark x"), lineMark, marked, wrong, wrong, "lock{me:2} mark=x"),
	kase("a lock is described", "state", setup(held2, forever), lock, nil, "[forever me 2]", "[forever me 2]", "lock{me:2}"),
	kase("a free lock is described", "state", nil, lock, nil, "[-2]", "[-2]", ""),
	kase("what is no lock is not described", "state", setup("HSET lock name bob", forever), lock, nil, wrong, wrong, "lock{name:bob}"),
	kase("a lock without a TTL is not described", "state", setup(held2), lock, nil, wrong, wrong, "lock{me:2}"),
	kase("another type is not described", "state", setup("SET lock x"), lock, nil, wrong, wrong, "lock=x"),
}
