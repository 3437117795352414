package rwlock_test

import (
	"slices"

	"relock/internal/test/locktest"
)

// States that the cases begin with. The scores are far in the future, or long over.
const (
	reader   = "HSET lock mode read me 1"
	readers  = "HSET lock mode read me 1 you 1"
	nested   = "HSET lock mode read me 2"
	writer   = "HSET lock mode write me:write 1"
	both     = "HSET lock mode write me:write 1 me 1"
	stranger = "HSET lock mode write you:write 1"
	foreign  = "HSET lock mode read java 2"
	plain    = "HSET lock you 1"
	ttl      = "PEXPIRE lock 60000"
	forever  = "PEXPIRE lock " + locktest.Forever
	meLives  = "ZADD R 9999999999999 me"
	youLive  = "ZADD R 9999999999999 you"
	meOver   = "ZADD R 1 me"
	youOver  = "ZADD R 1 you"
	marked   = "ZADD W 8409999999999999 m" // mark.lua has the scores
)

var (
	acqR    = locktest.Keys("lock", "R", "W", "T1", "H")
	acqP    = locktest.Keys("lock", "R", "W", "T1")
	acqW    = locktest.Keys("lock", "R", "W", "H")
	relR    = locktest.Keys("lock", "R", "W", "T1", "H")
	relW    = locktest.Keys("lock", "R", "W", "T1", "H")
	withM   = locktest.Keys("lock", "R", "W", "mark") // force_unlock
	leaveW  = locktest.Keys("lock", "R", "W", "H")
	args    = locktest.Args
	setup   = locktest.Setup
	kase    = locktest.Case
	first   = args("me", "30001", "a")           // acquire_read, nothing held
	private = args("me", "30001")                // the same of a private owner
	more    = args("me", "30001", "a", "1", "0") // one held on this side
	across  = args("me", "30001", "a", "0", "1") // one held on the other side
	firstW  = args("me", "30000", "a", "0", "")  // acquire_write: no wait
	moreW   = args("me", "30000", "a", "0", "", "1", "0")
	acrossW = args("me", "30000", "a", "0", "", "0", "1")
	waitW   = args("me", "30000", "a", "4000", "")
	end     = ending("0", "0", "0", "1", "0", "a")      // release, of a named owner
	two     = ending("0", "0", "0", "2", "0", "b", "a") // two holds of it
	endAll  = ending("2", "0", "0", "0", "0")           // all of a private owner
	endOnly = args("me", "ch", "PUBLISH", "1", "s:")    // all, and there were no ids
)

// ending are the arguments of a release of readers.
func ending(whose, keep, other, ends, stay string, ids ...string) []string {
	return append(args("me", "ch", "PUBLISH", "1", "s:", whose, keep, other, ends, stay), ids...)
}

// endingW are those of a writer's release: it has an entry that begins with head, and its session enters another one.
func endingW(read []string, head, enter string) []string {
	return slices.Concat(read[:10], args(head, enter, "0", "0"), read[10:])
}

// uncounted are those of a release where nobody knows how many have heard a message.
func uncounted(args []string) []string {
	args = slices.Clone(args)
	args[3] = "0"
	return args
}

// force are the arguments of force_unlock, with a mark.
var force = args("ch", "PUBLISH", "s:", "1", "1", "60000", "you", "me")

const wrong = "WRONGTYPE"

// What entries begin with: of a session named like the owner. A session is alive for 1 s.
const mine, yours = "W00012500001000" + "00002", "W00012500001000" + "00003"

// lineW are the arguments of acquire_write of a caller that waits, and stands in the line.
var lineW = append(args("me", "30000", "a", "4000", "", "0", "0", ""), mine, "1", "0", "0", "ch", "PUBLISH", "1", "s:")

// bookW and bookR are those of callers that poll.
var bookW = append(args("me", "30000", "a", "4000", "", "0", "0", ""), "b", "me", "2000", "100")
var bookR = args("me", "30001", "a", "0", "0", "", "b", "me", "2000", "100")

// lineR are the arguments of acquire_read of a caller that waits, and may stand in the line by an entry of readers.
var lineR = append(args("me", "30001", "a", "0", "0", ""), reads, "0", "s:", "1", "0")

const reads = "R00012500001000" + "00002"

var acquireCases = []locktest.ScriptCase{
	kase("a write lock is left standing", "leave_write", setup(writer, ttl), leaveW[:3], args("me", "5000", "1", "ch", "PUBLISH", "s:"), "[1 1 -1]", "[1 1 -1]", "lock{me:write:1 mode:write}"),
	kase("a named writer leaves its own", "leave_write", setup(writer, ttl, "SADD H wa"), leaveW, args("me", "5000", "0", "ch", "PUBLISH", "s:", "a"), "[1 1 -1]", "[1 1 -1]", "H(wa) lock{me:write:1 mode:write}"),
	kase("holds of an earlier life cannot be left", "leave_write", setup(writer, ttl, "SADD H wb"), leaveW, args("me", "5000", "0", "ch", "PUBLISH", "s:", "a"), "[0 0 -1]", "[0 0 -1]", "H(wb) lock{me:write:1 mode:write}"),
	kase("a reader leaves nothing", "leave_write", setup(reader, ttl, meLives), leaveW[:3], args("me", "5000", "1", "ch", "PUBLISH", "s:"), "[0 0 -1]", "[0 0 -1]", "R<me> lock{me:1 mode:read}"),
	kase("another's lock cannot be left", "leave_write", setup(stranger, ttl), leaveW[:3], args("me", "5000", "1", "ch", "PUBLISH", "s:"), "[0 0 -1]", "[0 0 -1]", "lock{mode:write you:write:1}"),
	kase("ids of another type leave nothing", "leave_write", setup(writer, ttl, "SET H x"), leaveW, args("me", "5000", "0", "ch", "PUBLISH", "s:", "a"), wrong, wrong, "H=x lock{me:write:1 mode:write}"),
	kase("another type cannot be left", "leave_write", setup("SET lock x"), leaveW[:3], args("me", "5000", "1", "ch", "PUBLISH", "s:"), "[0 0 -1]", "[0 0 -1]", "lock=x"),

	kase("a free lock is read", "acquire_read", nil, acqR, first, "1", "[1 1 0 1]", "H(ra) R<me> T1=1 lock{me:1 mode:read}"),
	kase("the first hold of a private owner has no id", "acquire_read", nil, acqP, private, "1", "[1 1 0 1]", "R<me> T1=1 lock{me:1 mode:read}"),
	kase("a private reader comes in beside others", "acquire_read", setup("HSET lock mode read you 1", youLive, forever), acqP, private, "[1 1 0 1]", "[1 1 0 1]", "R<me you> T1=1 lock{me:1 mode:read you:1}"),
	kase("a late first hold of a private owner is not counted again", "acquire_read", setup("HSET lock mode read me 2", meLives, forever, "SADD H rb"), acqP, private, "[1 2 0 1]", "[1 2 0 1]", "H(rb) R<me> T1=1 lock{me:2 mode:read}"),
	kase("readers share", "acquire_read", setup("HSET lock mode read you 1", youLive, forever), acqR, first, "[1 1 0 1]", "[1 1 0 1]", "H(ra) R<me you> T1=1 lock{me:1 mode:read you:1}"),
	kase("readers share with Redisson's", "acquire_read", setup(foreign, forever), acqR, first, "[1 1 0 1]", "[1 1 0 1]", "H(ra) R<me> T1=1 lock{java:2 me:1 mode:read}"),
	kase("a further hold is counted once", "acquire_read", setup(reader, meLives, "SADD H rb"), locktest.Keys("lock", "R", "W", "T2", "H"), more, "[1 2 0 1]", "[1 2 0 1]", "H(ra rb) R<me> T2=1 lock{me:2 mode:read}"),
	kase("a writer keeps readers out", "acquire_read", setup(stranger, forever), acqR, args("me", "30001", "a"), "[0 forever 0 0 you]", "[0 forever 0 0 you]", "lock{mode:write you:write:1}"),
	kase("a waiting writer keeps readers out", "acquire_read", setup("HSET lock mode read you 1", youLive, marked, forever), acqR, first, "[0 -1 0 0]", "[0 -1 0 0]", "R<you> W<m> lock{mode:read you:1}"),
	kase("a reader comes in for which the gate was opened", "acquire_read", setup("HSET lock mode read you 1", youLive, marked+" 8500000001000000 t 8800000001000000 "+reads+"me 8800000000900000 "+reads+"you", forever), acqR, lineR, "[1 1 0 1]", "[1 1 0 1]", "H(ra) R<me you> T1=1 W<m t "+reads+"you> lock{me:1 mode:read you:1}"),
	kase("a reader comes in that was late for the writer before", "acquire_read", setup("HSET lock mode read you 1", youLive, marked+" 8500000001000000 t 8700000000900000 "+reads+"me", forever), acqR, lineR, "[1 1 0 1]", "[1 1 0 1]", "H(ra) R<me you> T1=1 W<m t> lock{me:1 mode:read you:1}"),
	kase("readers that nobody hears for any more are called once", "acquire_read", setup("ZADD W 8800000001000001 "+reads+"me 8800000001000001 "+reads+"you 8500000001000000 t"), acqR, lineR, "[1 1 0 1]", "[1 1 0 1]", "H(ra) R<me> T1=1 lock{me:1 mode:read}"),
	kase("a reader that polls books beside a writer", "acquire_read", setup(stranger, forever), acqR, bookR, "[0 forever 0 0 you]", "[0 forever 0 0 you]", "W<b:me> lock{mode:write you:write:1}"),
	kase("a reader that polls books behind a waiting writer", "acquire_read", setup("HSET lock mode read you 1", youLive, marked, "PEXPIRE W "+locktest.Forever, forever), acqR, bookR, "[0 forever 0 0]", "[0 forever 0 0]", "R<you> W<b:me m> lock{mode:read you:1}"),
	kase("a reader that does not wait stands in no line", "acquire_read", setup(stranger, "ZADD W 5000000000000000 lme 5000000000000001 lyou", forever), acqR, first, "[0 forever 0 0 you]", "[0 forever 0 0 you]", "W<lme lyou> lock{mode:write you:write:1}"),
	kase("a reader that may be refused reads a free lock", "acquire_read", nil, acqR, lineR, "1", "[1 1 0 1]", "H(ra) R<me> T1=1 lock{me:1 mode:read}"),
	kase("a reader that polls, and comes in, gives its booking up", "acquire_read", setup("ZADD W -7000000000000000 b:me -6900000000000000 byou"), acqR, bookR, "[1 1 0 1]", "[1 1 0 1]", "H(ra) R<me> T1=1 W<byou> lock{me:1 mode:read}"),
	kase("a private reader that polls takes what is free", "acquire_read", setup("ZADD W -7000000000000000 b:you"), acqP, args("me", "30001", "", "0", "0", "", "b", "me", "2000", "100"), "[1 1 0 1]", "[1 1 0 1]", "R<me> T1=1 W<b:you> lock{me:1 mode:read}"),
	kase("no reader books on what is no lock", "acquire_read", setup(foreign), acqR, bookR, wrong, wrong, "lock{java:2 mode:read}"),
	kase("a waiting writer comes first on a free lock", "acquire_read", setup(marked), acqR, first, "[0 -1 0 0]", "[0 -1 0 0]", "W<m>"),
	kase("a mark that is over keeps nobody out", "acquire_read", setup("ZADD W 8400000000000001 m"), acqR, first, "[1 1 0 1]", "[1 1 0 1]", "H(ra) R<me> T1=1 W<m> lock{me:1 mode:read}"),
	kase("the first timeout key speaks for all", "acquire_read", setup(reader, meLives, "SADD H rb"), locktest.Keys("lock", "R", "W", "T3", "H", "T1"), args("me", "30001", "a", "2", "0"), "[1 2 0 1]", "[1 2 0 1]", "H(ra rb) R<me> T1=1 T3=1 lock{me:2 mode:read}"),
	kase("a mark does not stop a nested hold", "acquire_read", setup(reader, meLives, "SADD H rb", marked), acqR, more, "[1 2 0 1]", "[1 2 0 1]", "H(ra rb) R<me> T1=1 W<m> lock{me:2 mode:read}"),
	kase("a mark does not stop the writer's own read", "acquire_read", setup(writer, "SADD H wb", marked), acqR, across, "[1 1 0 1]", "[1 1 0 1]", "H(ra wb) R<me> T1=1 W<m> lock{me:1 me:write:1 mode:write}"),
	kase("what is over does not count", "acquire_read", setup(reader, meOver, ttl, "SADD H rb"), acqR, first, "[1 1 0 1]", "[1 1 0 1]", "H(ra) R<me> T1=1 lock{me:1 mode:read}"),
	kase("what is over, with its score, does not either", "acquire_read", setup(reader, ttl, "SADD H rb"), acqR, first, "[1 1 0 1]", "[1 1 0 1]", "H(ra) R<me> T1=1 lock{me:1 mode:read}"),
	kase("a reader whose score is gone is found by its key", "acquire_read", setup(reader, ttl, "SADD H rb", "SET T1 1"), acqR, first, "[1 2 0 1]", "[1 2 0 1]", "H(ra rb) R<me> T1=1 lock{me:2 mode:read}"),
	kase("a further hold on a lost lock is no hold", "acquire_read", nil, acqR, more, "[-1 0 0 0]", "[-1 0 0 0]", ""),
	kase("a read under a lost write is no hold", "acquire_read", setup(reader, meLives), acqR, across, "[-1 0 0 0]", "[-1 0 0 0]", "R<me> lock{me:1 mode:read}"),
	kase("a further hold under another's write is lost", "acquire_read", setup("HSET lock mode write you:write 1 me 1"), acqR, more, "[-1 0 0 0]", "[-1 0 0 0]", "lock{me:1 mode:write you:write:1}"),
	kase("what an earlier life left is gone", "acquire_read", setup(youLive, "SADD H ra rb"), acqR, first, "[1 1 0 1]", "[1 1 0 1]", "H(ra) R<me> T1=1 lock{me:1 mode:read}"),
	kase("a lock without a TTL is no lock", "acquire_read", setup(foreign), acqR, first, wrong, wrong, "lock{java:2 mode:read}"),
	kase("a field that is no count is no lock", "acquire_read", setup("HSET lock name bob", forever), acqR, first, wrong, wrong, "lock{name:bob}"),
	kase("several fields without a mode are no lock", "acquire_read", setup("HSET lock mode dark a 1", forever), acqR, first, wrong, wrong, "lock{a:1 mode:dark}"),
	kase("another kind of lock is respected", "acquire_read", setup(plain, forever), acqR, first, "[0 forever 0 0 you]", "[0 forever 0 0 you]", "lock{you:1}"),
	kase("the owner's own other kind is no read lock", "acquire_read", setup("HSET lock me 1", forever), acqR, first, "[0 forever 0 0 me]", "[0 forever 0 0 me]", "lock{me:1}"),
	kase("a mode without anybody is free", "acquire_read", setup("HSET lock mode write", ttl), acqR, first, "[1 1 0 1]", "[1 1 0 1]", "H(ra) R<me> T1=1 lock{me:1 mode:read}"),
	kase("another type changes nothing", "acquire_read", setup("SET lock x"), acqR, first, wrong, wrong, "lock=x"),
	kase("readers of another type change nothing", "acquire_read", setup("SET R x"), acqR, first, wrong, wrong, "R=x"),
	kase("marks of another type change nothing", "acquire_read", setup("SET W x"), acqR, first, wrong, wrong, "W=x"),
	kase("ids of another type change nothing", "acquire_read", setup("SET H x"), acqR, first, wrong, wrong, "H=x"),

	kase("a free lock is written", "acquire_write", nil, acqW, firstW, "1", "[1 1 0 1]", "H(wa) lock{me:write:1 mode:write}"),
	kase("a further hold is counted once", "acquire_write", setup(writer, "SADD H wb"), acqW, moreW, "[1 2 0 1]", "[1 2 0 1]", "H(wa wb) lock{me:write:2 mode:write}"),
	kase("the first hold of a private writer has no id", "acquire_write", nil, locktest.Keys("lock", "R", "W"), args("me", "30000", "", "0", ""), "1", "[1 1 0 1]", "lock{me:write:1 mode:write}"),
	kase("a private writer that was given the lock meanwhile is not counted again", "acquire_write", setup(writer, "PEXPIRE lock 1250"), locktest.Keys("lock", "R", "W"), append(args("me", "30000", "", "4000", "", "0", "0", ""), lineW[8:]...), "[1 1 0 1]", "[1 1 0 1]", "lock{me:write:1 mode:write}"),
	kase("the first hold gets its id with a write", "acquire_write", setup(writer), acqW, args("me", "30000", "a", "0", "", "1", "0", "f"), "[1 2 0 1]", "[1 2 0 1]", "H(wa wf) lock{me:write:2 mode:write}"),
	kase("the first hold gets its id with a read", "acquire_read", setup(writer), acqR, args("me", "30001", "a", "0", "1", "f"), "[1 1 0 1]", "[1 1 0 1]", "H(ra wf) R<me> T1=1 lock{me:1 me:write:1 mode:write}"),
	kase("a further hold keeps the read side", "acquire_write", setup(both, meLives, "SADD H wb rc"), acqW, moreW, "[1 2 0 1]", "[1 2 0 1]", "H(rc wa wb) R<me> lock{me:1 me:write:2 mode:write}"),
	kase("a writer keeps writers out", "acquire_write", setup(stranger, forever), acqW, waitW, "[0 forever 0 0 you]", "[0 forever 0 0 you]", "lock{mode:write you:write:1}"),
	kase("readers without a lease of ours are found by their keys", "acquire_write", setup(foreign, "SET java:rwlock_timeout:1 1", forever), acqW, firstW, "[0 forever 0 0]", "[0 forever 0 0]", "java:rwlock_timeout:1=1 lock{java:2 mode:read}"),
	kase("dead readers of Redisson's are thrown out", "acquire_write", setup(foreign, ttl), acqW, firstW, "[1 1 0 1]", "[1 1 0 1]", "H(wa) lock{me:write:1 mode:write}"),
	kase("dead readers of ours are thrown out", "acquire_write", setup("HSET lock mode read you 1", ttl, youOver), acqW, firstW, "[1 1 0 1]", "[1 1 0 1]", "H(wa) lock{me:write:1 mode:write}"),
	kase("readers of an earlier life keep nobody out", "acquire_write", setup("HSET lock mode read java 1", ttl, youLive), acqW, firstW, "[1 1 0 1]", "[1 1 0 1]", "H(wa) lock{me:write:1 mode:write}"),
	kase("no upgrade", "acquire_write", setup(reader, meLives, ttl), acqW, acrossW, "[-2 1 0 0]", "[-2 1 0 0]", "R<me> lock{me:1 mode:read}"),
	kase("no upgrade of an owner that reads elsewhere", "acquire_write", setup(readers, meLives, youLive, ttl), acqW, waitW, "[-2 1 0 0]", "[-2 1 0 0]", "R<me you> lock{me:1 mode:read you:1}"),
	kase("an owner whose read hold died may write", "acquire_write", setup(reader, meOver, ttl, "SADD H rb"), acqW, firstW, "[1 1 0 1]", "[1 1 0 1]", "H(wa) lock{me:write:1 mode:write}"),
	kase("an upgrade of a lost hold is lost", "acquire_write", nil, acqW, acrossW, "[-1 0 0 0]", "[-1 0 0 0]", ""),
	kase("a further hold on a lost lock is no hold", "acquire_write", setup(reader, meLives), acqW, moreW, "[-1 0 0 0]", "[-1 0 0 0]", "R<me> lock{me:1 mode:read}"),
	kase("a writer's field in a read lock is no hold", "acquire_write", setup("HSET lock mode read me:write 1 you 1", youLive), acqW, moreW, "[-1 0 0 0]", "[-1 0 0 0]", "R<you> lock{me:write:1 mode:read you:1}"),
	kase("a writer that gets in as the last one leaves no line", "acquire_write", setup("ZADD W 100 "+mine+"me", marked), acqW, lineW, "[1 1 0 1]", "[1 1 0 1]", "H(wa) lock{me:write:1 mode:write}"),
	kase("a writer that gets in leaves the line to others", "acquire_write", setup("ZADD W 100 "+mine+"me 200 "+yours+"you", marked), acqW, lineW, "[1 1 0 1]", "[1 1 0 1]", "H(wa) W<"+yours+"you> lock{me:write:1 mode:write}"),
	kase("a writer that gets in leaves a booking for later", "acquire_write", setup("ZADD W -7000000000000000 byou 100 "+mine+"me", marked), acqW, lineW, "[1 1 0 1]", "[1 1 0 1]", "H(wa) W<byou> lock{me:write:1 mode:write}"),
	kase("a writer that polls books beside a writer", "acquire_write", setup(stranger, forever), acqW, bookW, "[0 forever 0 0 you]", "[0 forever 0 0 you]", "W<bme> lock{mode:write you:write:1}"),
	kase("a writer that polls books beside readers, and keeps others out", "acquire_write", setup("HSET lock mode read java 2", "SET java:rwlock_timeout:1 1", forever), acqW, bookW, "[0 forever 0 0]", "[0 forever 0 0]", "W<bme m> java:rwlock_timeout:1=1 lock{java:2 mode:read}"),
	kase("a writer that polls takes what is free", "acquire_write", setup("ZADD W -7000000000000000 byou 100 "+yours+"you"), acqW, bookW, "[1 1 0 1]", "[1 1 0 1]", "H(wa) W<byou "+yours+"you> lock{me:write:1 mode:write}"),
	kase("a writer behind another's call", "acquire_write", setup("ZADD W 100 "+yours+"you 300 "+mine+"me 4990000000000000 syou 4990000000000000 sme 8009999999999999 c"), acqW, lineW, "[1 1 0 1]", "[1 1 0 1]", "H(wa) W<"+yours+"you sme syou> lock{me:write:1 mode:write}"),
	kase("a lock without a TTL is no lock", "acquire_write", setup(foreign), acqW, waitW, wrong, wrong, "lock{java:2 mode:read}"),
	kase("a field that is no count is no lock", "acquire_write", setup("HSET lock name bob", forever), acqW, waitW, wrong, wrong, "lock{name:bob}"),
	kase("several fields without a mode are no lock", "acquire_write", setup("HSET lock mode dark a 1", forever), acqW, waitW, wrong, wrong, "lock{a:1 mode:dark}"),
	kase("another kind of lock is respected", "acquire_write", setup(plain, forever), acqW, waitW, "[0 forever 0 0 you]", "[0 forever 0 0 you]", "lock{you:1}"),
	kase("the owner's own other kind is no upgrade", "acquire_write", setup("HSET lock me 1", forever), acqW, waitW, "[0 forever 0 0 me]", "[0 forever 0 0 me]", "lock{me:1}"),
	kase("a mode without anybody is free", "acquire_write", setup("HSET lock mode write", ttl), acqW, firstW, "[1 1 0 1]", "[1 1 0 1]", "H(wa) lock{me:write:1 mode:write}"),
	kase("a mode without anybody is free, also without a TTL", "acquire_write", setup("HSET lock mode write"), acqW, firstW, "[1 1 0 1]", "[1 1 0 1]", "H(wa) lock{me:write:1 mode:write}"),
	kase("another type changes nothing", "acquire_write", setup("SET lock x"), acqW, waitW, wrong, wrong, "lock=x"),
	kase("readers of another type change nothing", "acquire_write", setup("SET R x"), acqW, waitW, wrong, wrong, "R=x"),
	kase("marks of another type change nothing", "acquire_write", setup("SET W x"), acqW, waitW, wrong, wrong, "W=x"),
	kase("ids of another type change nothing", "acquire_write", setup("SET H x"), acqW, waitW, wrong, wrong, "H=x"),
}

var releaseCases = []locktest.ScriptCase{
	kase("the last reader frees the lock", "release_read", setup(reader, meLives, ttl, "SADD H ra", "SET T1 1"), relR, end, "[0 1 0]", "[0 0 -1]", ""),
	kase("another reader keeps it", "release_read", setup(readers, meLives, youLive, ttl, "SADD H ra", "SET T1 1"), relR, end, "[0 1 -1]", "[0 0 -1]", "R<you> lock{mode:read you:1}"),
	kase("Redisson's reader keeps it", "release_read", setup("HSET lock mode read me 1 java 1", "SET java:rwlock_timeout:1 1 PX 60000", meLives, ttl, "SADD H ra", "SET T1 1"), relR, end, "[0 1 -1]", "[0 0 -1]", "java:rwlock_timeout:1=1 lock{java:1 mode:read}"),
	kase("a dead reader of Redisson's does not", "release_read", setup("HSET lock mode read me 1 java 1", meLives, ttl, "SADD H ra", "SET T1 1"), relR, end, "[0 1 0]", "[0 0 -1]", ""),
	kase("a dead reader of Redisson's is left to a waiting writer", "release_read", setup("HSET lock mode read me 1 java 1", meLives, ttl, marked, "SADD H ra", "SET T1 1"), relR, end, "[0 1 -1]", "[0 0 -1]", "W<m> lock{java:1 mode:read}"),
	kase("a dead reader of Redisson's stays as long as one of ours", "release_read", setup("HSET lock mode read me 1 java 1 you 1", meLives, youLive, ttl, "SADD H ra", "SET T1 1"), relR, end, "[0 1 -1]", "[0 0 -1]", "R<you> lock{java:1 mode:read you:1}"),
	kase("a dead reader does not", "release_read", setup(readers, meLives, youOver, ttl, "SADD H ra", "SET T1 1"), relR, end, "[0 1 0]", "[0 0 -1]", ""),
	kase("a nested hold keeps it", "release_read", setup(nested, meLives, ttl, "SADD H ra rb", "SET T1 1", "SET T2 1"), locktest.Keys("lock", "R", "W", "T1", "H", "T2"), end, "[1 1 -1]", "[1 0 -1]", "H(rb) R<me> T1=1 lock{me:1 mode:read}"),
	kase("a timeout key that is still needed stays", "release_read", setup(nested, meLives, ttl, "SADD H ra rb", "SET T1 1"), relR, end, "[1 1 -1]", "[1 0 -1]", "H(rb) R<me> T1=1 lock{me:1 mode:read}"),
	kase("several holds end at once", "release_read", setup(nested, meLives, ttl, "SADD H ra rb", "SET T1 1", "SET T2 1"), locktest.Keys("lock", "R", "W", "T1", "H", "T2"), two, "[0 1 0]", "[0 0 -1]", ""),
	kase("the write side stays", "release_read", setup(both, meLives, ttl, "SADD H ra wb", "SET T1 1"), relR, end, "[0 1 -1]", "[0 0 -1]", "H(wb) lock{me:write:1 mode:write}"),
	kase("a hold of an earlier life is not released", "release_read", setup(reader, meLives, "SADD H rb"), relR, end, "[1 0 -1]", "[1 0 -1]", "H(rb) R<me> lock{me:1 mode:read}"),
	kase("a write hold is not a read hold", "release_read", setup(both, meLives, "SADD H wa rb"), relR, end, "[1 0 -1]", "[1 0 -1]", "H(rb wa) R<me> lock{me:1 me:write:1 mode:write}"),
	kase("what a deleted lock left goes", "release_read", setup("HSET lock mode read you 1", meLives, "SADD H ra", "SET T1 1"), relR, end, "[0 0 -1]", "[0 0 -1]", "lock{mode:read you:1}"),
	kase("somebody else's hold is not released", "release_read", setup(stranger), relR, end, "[0 0 -1]", "[0 0 -1]", "lock{mode:write you:write:1}"),
	kase("another type is left alone", "release_read", setup("SET lock x"), relR, end, "[0 0 -1]", "[0 0 -1]", "lock=x"),
	kase("readers of another type change nothing", "release_read", setup(reader, "SET R x", "SADD H ra"), relR, end, wrong, wrong, "H(ra) R=x lock{me:1 mode:read}"),
	kase("a line of another type keeps nobody in", "release_read", setup(reader, "SET W x", "SADD H ra"), relR, end, "[0 1 0]", "[0 0 -1]", "W=x"),
	kase("ids of another type change nothing", "release_read", setup(reader, "SET H x"), relR, end, wrong, wrong, "H=x lock{me:1 mode:read}"),

	kase("all of a private owner ends, and what it left", "release_read", setup("HSET lock mode read me 3", meLives, ttl, "SADD H ra rb rc", "SET T1 1", "SET T2 1", "SET T3 1"), relR, endAll, "[0 1 0]", "[0 0 -1]", ""),
	kase("a private reader without ids ends", "release_read", setup(reader, meLives, ttl, "SET T1 1"), acqP, endOnly, "0", "[0 0 -1]", ""),
	kase("a private reader without ids ends beside another", "release_read", setup(readers, meLives, youLive, ttl, "SET T1 1"), acqP, endOnly, "[0 1 -1]", "[0 0 -1]", "R<you> lock{mode:read you:1}"),
	kase("a private reader without ids ends, whatever its count", "release_read", setup(nested, meLives, ttl, "SET T1 1", "SET T2 1"), acqP, endOnly, "[0 1 0]", "[0 0 -1]", ""),
	kase("a private reader without ids ends, and a writer waits", "release_read", setup(reader, meLives, ttl, marked, "SET T1 1"), acqP, endOnly, "[0 1 0]", "[0 0 -1]", "W<m>"),
	kase("a private reader without ids is lost", "release_read", setup("HSET lock mode read you 1", youLive, ttl), acqP, endOnly, "[0 0 -1]", "[0 0 -1]", "R<you> lock{mode:read you:1}"),
	kase("a private reader without ids whose lock was deleted", "release_read", setup(meLives, "SET T1 1"), acqP, endOnly, "[0 0 -1]", "[0 0 -1]", ""),
	kase("a private reader under another type is lost", "release_read", setup("SET lock x"), acqP, endOnly, "[0 0 -1]", "[0 0 -1]", "lock=x"),
	kase("all of a private owner ends, whatever the ids", "release_read", setup(nested, meLives, ttl, "SET T1 1"), relR, endAll, "[0 1 0]", "[0 0 -1]", ""),
	kase("all of a private reader ends, and another's hold stays", "release_read", setup("HSET lock mode read me 2 you 1", meLives, youLive, ttl, "SADD H ra rb", "SET T1 1"), relR, endAll, "[0 1 -1]", "[0 0 -1]", "R<you> lock{mode:read you:1}"),
	kase("all of a private owner's reads end, and its write stays", "release_read", setup("HSET lock mode write me:write 1 me 2", meLives, ttl, "SADD H ra rb wc", "SET T1 1"), relR, endAll, "[0 1 -1]", "[0 0 -1]", "H(wc) lock{me:write:1 mode:write}"),
	kase("a private owner that is lost has nothing to end", "release_read", setup("HSET lock mode read you 1", youLive, ttl), relR, endAll, "[0 0 -1]", "[0 0 -1]", "R<you> lock{mode:read you:1}"),
	kase("the count may be unknown", "release_read", setup(reader, meLives, ttl), relR, uncounted(endAll), "-1", "[0 0 -1]", ""),

	kase("all of a private writer ends, whatever the ids", "release_write", setup("HSET lock mode write me:write 3", ttl, "SADD H wa", marked), relW, endingW(endAll, "", ""), "[0 1 0]", "[0 0 -1]", ""),
	kase("all of a private writer ends, and no writer waits", "release_write", setup(writer, ttl, "SADD H wa"), relW, endingW(endAll, "", ""), "0", "[0 0 -1]", ""),
	kase("all of a private writer ends, and its reads stay", "release_write", setup("HSET lock mode write me:write 2 me 1", meLives, ttl, "SADD H wa wb rc", "SET T1 1"), relW, endingW(endAll, "", ""), "[0 1 0]", "[0 0 -1]", "H(rc) R<me> T1=1 lock{me:1 mode:read}"),
	kase("the entry of a private writer that leaves is taken out of the line", "release_write", setup("HSET lock mode read you 1", youLive, "ZADD W 100 "+mine+"me 200 "+yours+"you 4990000000000000 syou", marked), relW, uncounted(endingW(ending("2", "0", "0", "1", "0", "a"), mine, "")), "[0 0 -1]", "[0 0 -1]", "R<you> W<"+yours+"you syou m> lock{mode:read you:1}"),
	kase("a writer that nobody listens for keeps no reader out any more", "release_write", setup("HSET lock mode read you 1", youLive, "ZADD W 100 "+mine+"me 200 "+yours+"you 4990000000000000 syou", marked), relW, endingW(ending("2", "0", "0", "1", "0", "a"), mine, ""), "[0 0 -1]", "[0 0 -1]", "R<you> W<"+yours+"you syou> lock{mode:read you:1}"),
	kase("the last writer that leaves the line lets readers in", "release_write", setup("HSET lock mode read you 1", youLive, "ZADD W 100 "+mine+"me", marked), relW, endingW(ending("2", "0", "0", "1", "0", "a"), mine, ""), "[0 0 -1]", "[0 0 -1]", "R<you> lock{mode:read you:1}"),
	kase("the count may be unknown", "release_write", setup(writer, ttl, "SADD H wa"), relW, uncounted(endingW(end, "", "")), "[0 1 -1]", "[0 0 -1]", ""),
	kase("the writer frees the lock, and the marks go", "release_write", setup(writer, ttl, "SADD H wa", marked), relW, endingW(end, "", ""), "[0 1 0]", "[0 0 -1]", ""),
	kase("a nested hold keeps it", "release_write", setup("HSET lock mode write me:write 2", ttl, "SADD H wa wb", marked), relW, endingW(end, "", ""), "[1 1 -1]", "[1 0 -1]", "H(wb) W<m> lock{me:write:1 mode:write}"),
	kase("several holds end at once", "release_write", setup("HSET lock mode write me:write 2", ttl, "SADD H wa wb"), relW, endingW(two, "", ""), "[0 1 0]", "[0 0 -1]", ""),
	kase("a downgrade", "release_write", setup(both, meLives, ttl, "SADD H wa rb", "SET T1 1", marked), relW, endingW(end, "", ""), "[0 1 0]", "[0 0 -1]", "H(rb) R<me> T1=1 lock{me:1 mode:read}"),
	kase("what is over is no downgrade", "release_write", setup(both, meOver, ttl, "SADD H wa rb", marked), relW, endingW(end, "", ""), "[0 1 0]", "[0 0 -1]", ""),
	kase("what is over, with its score, is none either", "release_write", setup(both, ttl, "SADD H wa rb"), relW, endingW(end, "", ""), "[0 1 0]", "[0 0 -1]", ""),
	kase("a reader whose score is gone is found by its key", "release_write", setup(both, ttl, "SADD H wa rb", "SET T1 1"), relW, endingW(end, "", ""), "[0 1 0]", "[0 0 -1]", "H(rb) T1=1 lock{me:1 mode:read}"),
	kase("a hold of an earlier life is not released", "release_write", setup(writer, "SADD H wb"), relW, endingW(end, "", ""), "[1 0 -1]", "[1 0 -1]", "H(wb) lock{me:write:1 mode:write}"),
	kase("a read hold is not a write hold", "release_write", setup(both, "SADD H ra wb"), relW, endingW(end, "", ""), "[1 0 -1]", "[1 0 -1]", "H(ra wb) lock{me:1 me:write:1 mode:write}"),
	kase("somebody else's hold is not released", "release_write", setup(stranger, "SADD H wa"), relW, endingW(end, "", ""), "[0 0 -1]", "[0 0 -1]", "lock{mode:write you:write:1}"),
	kase("another type is left alone", "release_write", setup("SET lock x"), relW, endingW(end, "", ""), "[0 0 -1]", "[0 0 -1]", "lock=x"),
	kase("readers of another type change nothing", "release_write", setup(writer, "SET R x", "SADD H wa"), relW, endingW(end, "", ""), wrong, wrong, "H(wa) R=x lock{me:write:1 mode:write}"),
	kase("a line of another type keeps nobody in", "release_write", setup(writer, "SET W x", "SADD H wa"), relW, endingW(end, "", ""), "[0 1 0]", "[0 0 -1]", "W=x"),
	kase("ids of another type change nothing", "release_write", setup(writer, "SET H x"), relW, endingW(end, "", ""), wrong, wrong, "H=x lock{me:write:1 mode:write}"),
}

var otherCases = []locktest.ScriptCase{
	kase("both sides are renewed, each for itself", "renew", setup("HSET lock mode write me:write 1 me 2", ttl, "HSET read mode read me 1", "HSET req mode read you 1", "SET str x", "ZADD Q 1 me"),
		locktest.Keys("lock", "R", "H", "T1", "T2", "lock", "H", "read", "R2", "req", "Q", "lock", "str", "R", "req"),
		args("30000", "r5:me", "w2:me:write", "r2:me", "r2:me", "w1:you:write", "r2:me", "w1:me:write"),
		"[1 1 1 0 0 0 0]", "[1 1 1 0 0 0 0]", "R<me> R2<me> T1=1 T2=1 lock{me:2 me:write:1 mode:write} read{me:1 mode:read} req{mode:read you:1} str=x"),
	kase("what ended while its renewal was on its way stays ended", "renew", setup(reader, ttl, meLives, "SADD H ra"), locktest.Keys("lock", "R", "H", "T1", "T2"), args("30000", "r5:me"), "[1]", "[1]", "H(ra) R<me> T1=1 lock{me:1 mode:read}"),
	kase("a question changes nothing", "renew", setup(reader, ttl), locktest.Keys("lock", "R", "H", "T1", "lock"), args("0", "r4:me", "w1:me:write"), "[1 0]", "[1 0]", "lock{me:1 mode:read}"),
	kase("readers of another type are not renewed", "renew", setup(reader, ttl, "SET R x"), locktest.Keys("lock", "R", "H", "T1"), args("30000", "r4:me"), "[0]", "[0]", "R=x lock{me:1 mode:read}"),
	kase("a reader under another's write is lost", "renew", setup("HSET lock mode write you:write 1 me 1"), locktest.Keys("lock", "R"), args("30000", "r2:me"), "[0]", "[0]", "lock{me:1 mode:write you:write:1}"),

	kase("a read hold is extended", "extend", setup(reader, ttl, meLives, "SADD H ra"), locktest.Keys("lock", "R", "H", "T1"), args("me", "90000", "r", "0", "0", "e", "0", "a"), "1", "1", "H(ra) R<me> T1=1 lock{me:1 mode:read}"),
	kase("a private reader is extended whatever the ids", "extend", setup(nested, ttl, meLives), locktest.Keys("lock", "R", "H", "T1"), args("me", "90000", "r", "1", "0", "e", "0"), "1", "1", "R<me> T1=1 lock{me:2 mode:read}"),
	kase("a void read extension changes nothing", "extend", setup(reader, ttl, meLives, "SADD H ra xe"), locktest.Keys("lock", "R", "H", "T1"), args("me", "90000", "r", "1", "0", "e", "0"), "1", "1", "H(ra xe) R<me> lock{me:1 mode:read}"),
	kase("a read extension voids those before it", "extend", setup(reader, ttl, meLives, "SADD H ra"), locktest.Keys("lock", "R", "H", "T1"), args("me", "90000", "r", "0", "0", "e", "1", "d", "a"), "1", "1", "H(ra xd) R<me> T1=1 lock{me:1 mode:read}"),
	kase("a write extension voids those before it", "extend", setup(writer, ttl, "SADD H wa"), locktest.Keys("lock", "R", "H"), args("me", "90000", "w", "0", "0", "e", "1", "d", "a"), "1", "1", "H(wa xd) lock{me:write:1 mode:write}"),
	kase("a private writer is extended whatever the ids", "extend", setup(writer, ttl), locktest.Keys("lock", "R", "H"), args("me", "90000", "w", "1", "0", "e", "0"), "1", "1", "lock{me:write:1 mode:write}"),
	kase("a private owner that is lost is not extended", "extend", setup(stranger), locktest.Keys("lock", "R", "H"), args("me", "90000", "w", "1", "0", "e", "0"), "0", "0", "lock{mode:write you:write:1}"),
	kase("a read hold of an earlier life is lost", "extend", setup(reader, ttl, meLives, "SADD H rb wa"), locktest.Keys("lock", "R", "H", "T1"), args("me", "90000", "r", "0", "0", "e", "0", "a"), "0", "0", "H(rb wa) R<me> lock{me:1 mode:read}"),
	kase("ids of another type are not extended", "extend", setup(reader, ttl, "SET H x"), locktest.Keys("lock", "R", "H", "T1"), args("me", "90000", "r", "0", "0", "e", "0", "a"), wrong, wrong, "H=x lock{me:1 mode:read}"),
	kase("nothing is extended", "extend", setup(stranger), locktest.Keys("lock", "R", "H", "T1"), args("me", "90000", "r", "0", "0", "e", "0", "a"), "0", "0", "lock{mode:write you:write:1}"),
	kase("another type is not extended", "extend", setup("SET lock x"), locktest.Keys("lock", "R", "H", "T1"), args("me", "90000", "r", "0", "0", "e", "0", "a"), "0", "0", "lock=x"),
	kase("readers of another type are not extended", "extend", setup(reader, "SET R x"), locktest.Keys("lock", "R", "H", "T1"), args("me", "90000", "r", "0", "0", "e", "0", "a"), wrong, wrong, "R=x lock{me:1 mode:read}"),
	kase("a write hold is extended", "extend", setup(both, ttl, meLives, "SADD H wa"), locktest.Keys("lock", "R", "H"), args("me", "90000", "w", "0", "0", "e", "0", "a"), "1", "1", "H(wa) R<me> lock{me:1 me:write:1 mode:write}"),
	kase("a write hold of an earlier life is lost", "extend", setup(both, ttl, meLives, "SADD H ra wb"), locktest.Keys("lock", "R", "H"), args("me", "90000", "w", "0", "0", "e", "0", "a"), "0", "0", "H(ra wb) R<me> lock{me:1 me:write:1 mode:write}"),
	kase("ids of another type are not extended", "extend", setup(writer, ttl, "SET H x"), locktest.Keys("lock", "R", "H"), args("me", "90000", "w", "0", "0", "e", "0", "a"), wrong, wrong, "H=x lock{me:write:1 mode:write}"),
	kase("nothing is extended", "extend", setup(reader), locktest.Keys("lock", "R", "H"), args("me", "90000", "w", "0", "0", "e", "0", "a"), "0", "0", "lock{me:1 mode:read}"),
	kase("another type is not extended", "extend", setup("SET lock x"), locktest.Keys("lock", "R", "H"), args("me", "90000", "w", "0", "0", "e", "0", "a"), "0", "0", "lock=x"),

	kase("any reader is forced", "force_unlock", setup(reader, meLives, marked, forever), locktest.Keys("lock", "R", "W"), args("ch", "PUBLISH", "s:", "1", "1", "0", "you", "me"), "[me]", "[]", ""),
	kase("a writer is forced, both sides at once", "force_unlock", setup("HSET lock mode write me:write 1 me 2", meLives, forever), locktest.Keys("lock", "R", "W"), args("ch", "PUBLISH", "s:", "1", "1", "0", "you", "me"), "[me]", "[]", ""),
	kase("who holds it is told, and nothing changed", "force_unlock", setup(reader, meLives, marked, forever), locktest.Keys("lock", "R", "W"), args("ch", "PUBLISH", "s:", "1", "1", "0"), "[me]", "[me]", "R<me> W<m> lock{me:1 mode:read}"),
	kase("another owner than the one that is meant is not forced", "force_unlock", setup(reader, meLives, forever), locktest.Keys("lock", "R", "W"), args("ch", "PUBLISH", "s:", "1", "1", "0", "you"), "[]", "[]", "R<me> lock{me:1 mode:read}"),
	kase("what is no lock is not forced", "force_unlock", setup("HSET lock name bob", forever), locktest.Keys("lock", "R", "W"), args("ch", "PUBLISH", "s:", "1", "1", "0", "name"), wrong, wrong, "lock{name:bob}"),
	kase("a lock without a TTL is not forced", "force_unlock", setup(reader, meLives), locktest.Keys("lock", "R", "W"), args("ch", "PUBLISH", "s:", "1", "1", "0", "me"), wrong, wrong, "R<me> lock{me:1 mode:read}"),
	kase("another type is not forced", "force_unlock", setup("SET lock x"), locktest.Keys("lock", "R", "W"), args("ch", "PUBLISH", "s:", "1", "1", "0"), wrong, wrong, "lock=x"),
	kase("another kind of lock is not forced", "force_unlock", setup(plain), locktest.Keys("lock", "R", "W"), args("ch", "PUBLISH", "s:", "1", "1", "0"), wrong, wrong, "lock{you:1}"),
	kase("a second run ends nothing, also where the same owner reads again", "force_unlock", setup(reader, meLives, forever, "SADD mark me"), withM, force, "[me]", "[me]", "R<me> lock{me:1 mode:read} mark(me)"),
	kase("a forced unlock leaves a mark of all owners", "force_unlock", setup("HSET lock mode write me:write 1 me 2", meLives, marked, forever), withM, force, "[me]", "[me]", "mark(me)"),
	kase("who was not meant leaves no mark", "force_unlock", setup(foreign, forever), withM, force, "[]", "[]", "lock{java:2 mode:read}"),
	kase("a free lock leaves no mark", "force_unlock", nil, withM, force, "[]", "[]", ""),
	kase("what stands at the mark and is none is told", "force_unlock", setup(reader, meLives, forever, "SET mark x"), withM, force, wrong, wrong, "R<me> lock{me:1 mode:read} mark=x"),

	kase("a read lock is described, without the dead", "state", setup("HSET lock mode read me 2 you 1", meLives, youOver, forever), locktest.Keys("lock", "R"), args(""), "[read forever me 2]", "[read forever me 2]", "R<you me> lock{me:2 mode:read you:1}"),
	kase("a write lock is described, side by side", "state", setup("HSET lock mode write me:write 2 me 2", meLives, forever), locktest.Keys("lock", "R"), args(""), "[write forever me 2 me 2]", "[write forever me 2 me 2]", "R<me> lock{me:2 me:write:2 mode:write}"),
	kase("a free lock is described", "state", nil, locktest.Keys("lock", "R"), args(""), "[ -2]", "[ -2]", ""),
	kase("a lock of the dead is free", "state", setup("HSET lock mode read you 1", youOver, ttl), locktest.Keys("lock", "R"), args(""), "[ -2]", "[ -2]", "R<you> lock{mode:read you:1}"),
	kase("another type is not described", "state", setup("SET lock x"), locktest.Keys("lock", "R"), args(""), wrong, wrong, "lock=x"),
	kase("what is no lock is not described", "state", setup("HSET lock name bob", forever), locktest.Keys("lock", "R"), args(""), wrong, wrong, "lock{name:bob}"),
	kase("a lock without a TTL is not described", "state", setup(reader, meLives), locktest.Keys("lock", "R"), args(""), wrong, wrong, "R<me> lock{me:1 mode:read}"),
	kase("another kind of lock is not described", "state", setup(plain), locktest.Keys("lock", "R"), args(""), wrong, wrong, "lock{you:1}"),
}

var allCases = slices.Concat(acquireCases, releaseCases, otherCases)
