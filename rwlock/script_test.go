package rwlock_test

import (
	"testing"

	"relock/internal/test/locktest"
	"relock/rwlock"
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
	meLives  = "ZADD R 9999999999999 me"
	youLive  = "ZADD R 9999999999999 you"
	meOver   = "ZADD R 1 me"
	youOver  = "ZADD R 1 you"
	marked   = "ZADD W 9999999999999 w9"
)

var (
	acqR    = locktest.Keys("lock", "R", "W", "H", "T1")
	acqW    = locktest.Keys("lock", "R", "W", "H")
	relR    = locktest.Keys("lock", "R", "W", "H", "T1")
	relW    = locktest.Keys("lock", "R", "W", "H", "T1")
	args    = locktest.Args
	setup   = locktest.Setup
	kase    = locktest.Case
	first   = args("me", "30000", "0", "0", "a")          // acquire, nothing held
	more    = args("me", "30000", "1", "0", "a")          // one held on this side
	across  = args("me", "30000", "0", "1", "a")          // one held on the other side
	firstW  = args("me", "30000", "0", "0", "a", "0", "") // acquire_write: no wait
	moreW   = args("me", "30000", "1", "0", "a", "0", "")
	acrossW = args("me", "30000", "0", "1", "a", "0", "")
	waitW   = args("me", "30000", "0", "0", "a", "4000", "")
	end     = args("me", "ch", "PUBLISH", "0", "0", "0", "1", "a")
)

const wrong = "WRONGTYPE"

var passes = args("me", "a", "you", "b", "30000", "ch", "NUMSUB") // transfer_write

var transferCases = []locktest.ScriptCase{
	kase("the write side passes on", "transfer_write", setup(writer, ttl, "SADD H wa", "ZADD W 9999999999999 b 9999999999999 w9"), locktest.Keys("lock", "W", "H", "H2"), passes, "[1 0]", "[1 0]", "H2(wb) W<w9> lock{mode:write you:write:1}"),
	kase("who listens may be unknown", "transfer_write", setup(writer, ttl, "SADD H wa"), locktest.Keys("lock", "W", "H", "H2"), args("me", "a", "you", "b", "30000", "ch", ""), "[1 -1]", "[1 -1]", "H2(wb) lock{mode:write you:write:1}"),
	kase("what is lost does not pass on", "transfer_write", setup("SADD H wa"), locktest.Keys("lock", "W", "H", "H2"), passes, "[0 0]", "[0 0]", "H(wa)"),
	kase("readers' lock does not pass on", "transfer_write", setup(reader, meLives, "SADD H ra"), locktest.Keys("lock", "W", "H", "H2"), passes, "[0 0]", "[0 0]", "H(ra) R<me> lock{me:1 mode:read}"),
	kase("a stranger's lock does not pass on", "transfer_write", setup("HSET lock mode write third:write 1", "SADD H wa"), locktest.Keys("lock", "W", "H", "H2"), passes, "[0 0]", "[0 0]", "H(wa) lock{mode:write third:write:1}"),
	kase("a new life of the next owner's is not taken for this one", "transfer_write", setup(stranger, "SADD H2 wc"), locktest.Keys("lock", "W", "H", "H2"), passes, "[0 0]", "[0 0]", "H2(wc) lock{mode:write you:write:1}"),
	kase("two holds do not pass on", "transfer_write", setup("HSET lock mode write me:write 2", ttl, "SADD H wa wc"), locktest.Keys("lock", "W", "H", "H2"), passes, "[-1 0]", "[-1 0]", "H(wa wc) lock{me:write:2 mode:write}"),
	kase("a writer that reads does not pass on", "transfer_write", setup(both, ttl, "SADD H wa ra"), locktest.Keys("lock", "W", "H", "H2"), passes, "[-1 0]", "[-1 0]", "H(ra wa) lock{me:1 me:write:1 mode:write}"),
	kase("another life's hold does not pass on", "transfer_write", setup(writer, ttl, "SADD H wc"), locktest.Keys("lock", "W", "H", "H2"), passes, "[-1 0]", "[-1 0]", "H(wc) lock{me:write:1 mode:write}"),
	kase("another type does not pass on", "transfer_write", setup("SET lock x"), locktest.Keys("lock", "W", "H", "H2"), passes, "[0 0]", "[0 0]", "lock=x"),
	kase("another type beside it changes nothing", "transfer_write", setup(writer, "SET H x"), locktest.Keys("lock", "W", "H", "H2"), passes, wrong, wrong, "H=x lock{me:write:1 mode:write}"),
}

var acquireCases = []locktest.ScriptCase{
	kase("a free lock is read", "acquire_read", nil, acqR, first, "[1 1 0 1]", "[1 1 0 1]", "H(ra) R<me> T1=1 lock{me:1 mode:read}"),
	kase("readers share", "acquire_read", setup("HSET lock mode read you 1", youLive), acqR, first, "[1 1 0 1]", "[1 1 0 1]", "H(ra) R<me you> T1=1 lock{me:1 mode:read you:1}"),
	kase("readers share with Redisson's", "acquire_read", setup(foreign), acqR, first, "[1 1 0 1]", "[1 1 0 1]", "H(ra) R<me> T1=1 lock{java:2 me:1 mode:read}"),
	kase("a further hold is counted once", "acquire_read", setup(reader, meLives, "SADD H rb"), locktest.Keys("lock", "R", "W", "H", "T2"), more, "[1 2 0 1]", "[1 2 0 1]", "H(ra rb) R<me> T2=1 lock{me:2 mode:read}"),
	kase("a writer keeps readers out", "acquire_read", setup(stranger), acqR, args("me", "30000", "0", "0", "a"), "[0 -1 0 0]", "[0 -1 0 0]", "lock{mode:write you:write:1}"),
	kase("a waiting writer keeps readers out", "acquire_read", setup("HSET lock mode read you 1", youLive, marked), acqR, first, "[0 -1 0 0]", "[0 -1 0 0]", "R<you> W<w9> lock{mode:read you:1}"),
	kase("a waiting writer comes first on a free lock", "acquire_read", setup(marked), acqR, first, "[0 -1 0 0]", "[0 -1 0 0]", "W<w9>"),
	kase("a mark that is over keeps nobody out", "acquire_read", setup("ZADD W 1 w9"), acqR, first, "[1 1 0 1]", "[1 1 0 1]", "H(ra) R<me> T1=1 W<w9> lock{me:1 mode:read}"),
	kase("the first timeout key speaks for all", "acquire_read", setup(reader, meLives, "SADD H rb"), locktest.Keys("lock", "R", "W", "H", "T3", "T1"), args("me", "30000", "2", "0", "a"), "[1 2 0 1]", "[1 2 0 1]", "H(ra rb) R<me> T1=1 T3=1 lock{me:2 mode:read}"),
	kase("a mark does not stop a nested hold", "acquire_read", setup(reader, meLives, "SADD H rb", marked), acqR, more, "[1 2 0 1]", "[1 2 0 1]", "H(ra rb) R<me> T1=1 W<w9> lock{me:2 mode:read}"),
	kase("a mark does not stop the writer's own read", "acquire_read", setup(writer, "SADD H wb", marked), acqR, across, "[1 1 0 1]", "[1 1 0 1]", "H(ra wb) R<me> T1=1 W<w9> lock{me:1 me:write:1 mode:write}"),
	kase("what is over does not count", "acquire_read", setup(reader, meOver, ttl, "SADD H rb"), acqR, first, "[1 1 0 1]", "[1 1 0 1]", "H(ra) R<me> T1=1 lock{me:1 mode:read}"),
	kase("what is over, with its score, does not either", "acquire_read", setup(reader, ttl, "SADD H rb"), acqR, first, "[1 1 0 1]", "[1 1 0 1]", "H(ra) R<me> T1=1 lock{me:1 mode:read}"),
	kase("a reader whose score is gone is found by its key", "acquire_read", setup(reader, ttl, "SADD H rb", "SET T1 1"), acqR, first, "[1 2 0 1]", "[1 2 0 1]", "H(ra rb) R<me> T1=1 lock{me:2 mode:read}"),
	kase("a further hold on a lost lock is no hold", "acquire_read", nil, acqR, more, "[-1 0 0 0]", "[-1 0 0 0]", ""),
	kase("a read under a lost write is no hold", "acquire_read", setup(reader, meLives), acqR, across, "[-1 0 0 0]", "[-1 0 0 0]", "R<me> lock{me:1 mode:read}"),
	kase("a further hold under another's write is lost", "acquire_read", setup("HSET lock mode write you:write 1 me 1"), acqR, more, "[-1 0 0 0]", "[-1 0 0 0]", "lock{me:1 mode:write you:write:1}"),
	kase("what an earlier life left is gone", "acquire_read", setup(youLive, "SADD H ra rb"), acqR, first, "[1 1 0 1]", "[1 1 0 1]", "H(ra) R<me> T1=1 lock{me:1 mode:read}"),
	kase("another kind of lock is respected", "acquire_read", setup(plain), acqR, first, "[0 -1 0 0]", "[0 -1 0 0]", "lock{you:1}"),
	kase("the owner's own other kind is no read lock", "acquire_read", setup("HSET lock me 1"), acqR, first, "[0 -1 0 0]", "[0 -1 0 0]", "lock{me:1}"),
	kase("a mode without anybody is free", "acquire_read", setup("HSET lock mode write", ttl), acqR, first, "[1 1 0 1]", "[1 1 0 1]", "H(ra) R<me> T1=1 lock{me:1 mode:read}"),
	kase("another type changes nothing", "acquire_read", setup("SET lock x"), acqR, first, wrong, wrong, "lock=x"),
	kase("readers of another type change nothing", "acquire_read", setup("SET R x"), acqR, first, wrong, wrong, "R=x"),
	kase("marks of another type change nothing", "acquire_read", setup("SET W x"), acqR, first, wrong, wrong, "W=x"),
	kase("ids of another type change nothing", "acquire_read", setup("SET H x"), acqR, first, wrong, wrong, "H=x"),

	kase("a free lock is written", "acquire_write", nil, acqW, firstW, "[1 1 0 1]", "[1 1 0 1]", "H(wa) lock{me:write:1 mode:write}"),
	kase("a further hold is counted once", "acquire_write", setup(writer, "SADD H wb"), acqW, moreW, "[1 2 0 1]", "[1 2 0 1]", "H(wa wb) lock{me:write:2 mode:write}"),
	kase("a further hold keeps the read side", "acquire_write", setup(both, meLives, "SADD H wb rc"), acqW, moreW, "[1 2 0 1]", "[1 2 0 1]", "H(rc wa wb) R<me> lock{me:1 me:write:2 mode:write}"),
	kase("a writer keeps writers out", "acquire_write", setup(stranger), acqW, waitW, "[0 -1 0 0]", "[0 -1 0 0]", "lock{mode:write you:write:1}"),
	kase("readers without a lease of ours are found by their keys", "acquire_write", setup(foreign, "SET java:rwlock_timeout:1 1"), acqW, firstW, "[0 -1 0 0]", "[0 -1 0 0]", "java:rwlock_timeout:1=1 lock{java:2 mode:read}"),
	kase("dead readers of Redisson's are thrown out", "acquire_write", setup(foreign, ttl), acqW, firstW, "[1 1 0 1]", "[1 1 0 1]", "H(wa) lock{me:write:1 mode:write}"),
	kase("dead readers of ours are thrown out", "acquire_write", setup("HSET lock mode read you 1", ttl, youOver), acqW, firstW, "[1 1 0 1]", "[1 1 0 1]", "H(wa) lock{me:write:1 mode:write}"),
	kase("readers of an earlier life keep nobody out", "acquire_write", setup("HSET lock mode read java 1", ttl, youLive), acqW, firstW, "[1 1 0 1]", "[1 1 0 1]", "H(wa) lock{me:write:1 mode:write}"),
	kase("no upgrade", "acquire_write", setup(reader, meLives, ttl), acqW, acrossW, "[-2 1 0 0]", "[-2 1 0 0]", "R<me> lock{me:1 mode:read}"),
	kase("no upgrade of an owner that reads elsewhere", "acquire_write", setup(readers, meLives, youLive, ttl), acqW, waitW, "[-2 1 0 0]", "[-2 1 0 0]", "R<me you> lock{me:1 mode:read you:1}"),
	kase("an owner whose read hold died may write", "acquire_write", setup(reader, meOver, ttl, "SADD H rb"), acqW, firstW, "[1 1 0 1]", "[1 1 0 1]", "H(wa) lock{me:write:1 mode:write}"),
	kase("an upgrade of a lost hold is lost", "acquire_write", nil, acqW, acrossW, "[-1 0 0 0]", "[-1 0 0 0]", ""),
	kase("a further hold on a lost lock is no hold", "acquire_write", setup(reader, meLives), acqW, moreW, "[-1 0 0 0]", "[-1 0 0 0]", "R<me> lock{me:1 mode:read}"),
	kase("who gets in takes his mark away", "acquire_write", setup("ZADD W 9999999999999 a", marked), acqW, waitW, "[1 1 0 1]", "[1 1 0 1]", "H(wa) W<w9> lock{me:write:1 mode:write}"),
	kase("another kind of lock is respected", "acquire_write", setup(plain), acqW, waitW, "[0 -1 0 0]", "[0 -1 0 0]", "lock{you:1}"),
	kase("the owner's own other kind is no upgrade", "acquire_write", setup("HSET lock me 1"), acqW, waitW, "[0 -1 0 0]", "[0 -1 0 0]", "lock{me:1}"),
	kase("a mode without anybody is free", "acquire_write", setup("HSET lock mode write", ttl), acqW, firstW, "[1 1 0 1]", "[1 1 0 1]", "H(wa) lock{me:write:1 mode:write}"),
	kase("another type changes nothing", "acquire_write", setup("SET lock x"), acqW, waitW, wrong, wrong, "lock=x"),
	kase("readers of another type change nothing", "acquire_write", setup("SET R x"), acqW, waitW, wrong, wrong, "R=x"),
	kase("marks of another type change nothing", "acquire_write", setup("SET W x"), acqW, waitW, wrong, wrong, "W=x"),
	kase("ids of another type change nothing", "acquire_write", setup("SET H x"), acqW, waitW, wrong, wrong, "H=x"),
}

var releaseCases = []locktest.ScriptCase{
	kase("the last reader frees the lock", "release_read", setup(reader, meLives, ttl, "SADD H ra", "SET T1 1"), relR, end, "[0 1]", "[0 0]", ""),
	kase("another reader keeps it", "release_read", setup(readers, meLives, youLive, ttl, "SADD H ra", "SET T1 1"), relR, end, "[0 1]", "[0 0]", "R<you> lock{mode:read you:1}"),
	kase("Redisson's reader keeps it", "release_read", setup("HSET lock mode read me 1 java 1", "SET java:rwlock_timeout:1 1 PX 60000", meLives, ttl, "SADD H ra", "SET T1 1"), relR, end, "[0 1]", "[0 0]", "java:rwlock_timeout:1=1 lock{java:1 mode:read}"),
	kase("a dead reader of Redisson's does not", "release_read", setup("HSET lock mode read me 1 java 1", meLives, ttl, "SADD H ra", "SET T1 1"), relR, end, "[0 1]", "[0 0]", ""),
	kase("a dead reader of Redisson's is left to a waiting writer", "release_read", setup("HSET lock mode read me 1 java 1", meLives, ttl, marked, "SADD H ra", "SET T1 1"), relR, end, "[0 1]", "[0 0]", "W<w9> lock{java:1 mode:read}"),
	kase("a dead reader of Redisson's stays as long as one of ours", "release_read", setup("HSET lock mode read me 1 java 1 you 1", meLives, youLive, ttl, "SADD H ra", "SET T1 1"), relR, end, "[0 1]", "[0 0]", "R<you> lock{java:1 mode:read you:1}"),
	kase("a dead reader does not", "release_read", setup(readers, meLives, youOver, ttl, "SADD H ra", "SET T1 1"), relR, end, "[0 1]", "[0 0]", ""),
	kase("a nested hold keeps it", "release_read", setup(nested, meLives, ttl, "SADD H ra rb", "SET T1 1", "SET T2 1"), locktest.Keys("lock", "R", "W", "H", "T1", "T2"), args("me", "ch", "PUBLISH", "1", "0", "0", "1", "a"), "[1 1]", "[1 0]", "H(rb) R<me> T1=1 lock{me:1 mode:read}"),
	kase("a timeout key that is still needed stays", "release_read", setup(nested, meLives, ttl, "SADD H ra rb", "SET T1 1"), relR, end, "[1 1]", "[1 0]", "H(rb) R<me> T1=1 lock{me:1 mode:read}"),
	kase("several holds end at once", "release_read", setup(nested, meLives, ttl, "SADD H ra rb", "SET T1 1", "SET T2 1"), locktest.Keys("lock", "R", "W", "H", "T1", "T2"), args("me", "ch", "PUBLISH", "0", "0", "0", "2", "b", "a"), "[0 1]", "[0 0]", ""),
	kase("the write side stays", "release_read", setup(both, meLives, ttl, "SADD H ra wb", "SET T1 1"), relR, end, "[0 1]", "[0 0]", "H(wb) lock{me:write:1 mode:write}"),
	kase("a hold of an earlier life is not released", "release_read", setup(reader, meLives, "SADD H rb"), relR, end, "[1 0]", "[1 0]", "H(rb) R<me> lock{me:1 mode:read}"),
	kase("a write hold is not a read hold", "release_read", setup(both, meLives, "SADD H wa rb"), relR, end, "[1 0]", "[1 0]", "H(rb wa) R<me> lock{me:1 me:write:1 mode:write}"),
	kase("what a deleted lock left goes", "release_read", setup("HSET lock mode read you 1", meLives, "SADD H ra", "SET T1 1"), relR, end, "[0 0]", "[0 0]", "lock{mode:read you:1}"),
	kase("somebody else's hold is not released", "release_read", setup(stranger), relR, end, "[0 0]", "[0 0]", "lock{mode:write you:write:1}"),
	kase("another type is left alone", "release_read", setup("SET lock x"), relR, end, "[0 0]", "[0 0]", "lock=x"),
	kase("readers of another type change nothing", "release_read", setup(reader, "SET R x", "SADD H ra"), relR, end, wrong, wrong, "H(ra) R=x lock{me:1 mode:read}"),
	kase("marks of another type change nothing", "release_read", setup(reader, "SET W x", "SADD H ra"), relR, end, wrong, wrong, "H(ra) W=x lock{me:1 mode:read}"),
	kase("ids of another type change nothing", "release_read", setup(reader, "SET H x"), relR, end, wrong, wrong, "H=x lock{me:1 mode:read}"),

	kase("the writer frees the lock, and the marks go", "release_write", setup(writer, ttl, "SADD H wa", marked), relW, end, "[0 1]", "[0 0]", ""),
	kase("a nested hold keeps it", "release_write", setup("HSET lock mode write me:write 2", ttl, "SADD H wa wb", marked), relW, args("me", "ch", "PUBLISH", "1", "0", "0", "1", "a"), "[1 1]", "[1 0]", "H(wb) W<w9> lock{me:write:1 mode:write}"),
	kase("several holds end at once", "release_write", setup("HSET lock mode write me:write 2", ttl, "SADD H wa wb"), relW, args("me", "ch", "PUBLISH", "0", "0", "0", "2", "b", "a"), "[0 1]", "[0 0]", ""),
	kase("a downgrade", "release_write", setup(both, meLives, ttl, "SADD H wa rb", "SET T1 1", marked), relW, end, "[0 1]", "[0 0]", "H(rb) R<me> T1=1 lock{me:1 mode:read}"),
	kase("what is over is no downgrade", "release_write", setup(both, meOver, ttl, "SADD H wa rb", "SET T1 1", marked), relW, end, "[0 1]", "[0 0]", ""),
	kase("what is over, with its score, is none either", "release_write", setup(both, ttl, "SADD H wa rb"), relW, end, "[0 1]", "[0 0]", ""),
	kase("a reader whose score is gone is found by its key", "release_write", setup(both, ttl, "SADD H wa rb", "SET T1 1"), relW, end, "[0 1]", "[0 0]", "H(rb) T1=1 lock{me:1 mode:read}"),
	kase("a mark is taken back", "release_write", setup("HSET lock mode read you 1", youLive, "ZADD W 9999999999999 a", marked), relW, end, "[0 0]", "[0 0]", "R<you> W<w9> lock{mode:read you:1}"),
	kase("a hold of an earlier life is not released", "release_write", setup(writer, "SADD H wb"), relW, end, "[1 0]", "[1 0]", "H(wb) lock{me:write:1 mode:write}"),
	kase("a read hold is not a write hold", "release_write", setup(both, "SADD H ra wb"), relW, end, "[1 0]", "[1 0]", "H(ra wb) lock{me:1 me:write:1 mode:write}"),
	kase("somebody else's hold is not released", "release_write", setup(stranger, "SADD H wa"), relW, end, "[0 0]", "[0 0]", "lock{mode:write you:write:1}"),
	kase("another type is left alone", "release_write", setup("SET lock x"), relW, end, "[0 0]", "[0 0]", "lock=x"),
	kase("readers of another type change nothing", "release_write", setup(writer, "SET R x", "SADD H wa"), relW, end, wrong, wrong, "H(wa) R=x lock{me:write:1 mode:write}"),
	kase("marks of another type change nothing", "release_write", setup(writer, "SET W x", "SADD H wa"), relW, end, wrong, wrong, "H(wa) W=x lock{me:write:1 mode:write}"),
	kase("ids of another type change nothing", "release_write", setup(writer, "SET H x"), relW, end, wrong, wrong, "H=x lock{me:write:1 mode:write}"),
}

var otherCases = []locktest.ScriptCase{
	kase("both sides are renewed, each for itself", "renew", setup(both, ttl, "HSET read mode read me 1", "HSET req mode read you 1", "SET str x", "ZADD Q 1 me"),
		locktest.Keys("lock", "R", "H", "T1", "T2", "lock", "H", "read", "R2", "req", "Q", "lock", "str", "R", "req"),
		args("30000", "r5:me", "w2:me:write", "r2:me", "r2:me", "w1:you:write", "r2:me", "w1:me:write"),
		"[1 1 1 0 0 0 0]", "[1 1 1 0 0 0 0]", "R<me> R2<me> T1=1 T2=1 lock{me:1 me:write:1 mode:write} read{me:1 mode:read} req{mode:read you:1} str=x"),
	kase("a question changes nothing", "renew", setup(reader, ttl), locktest.Keys("lock", "R", "H", "T1", "lock"), args("0", "r4:me", "w1:me:write"), "[1 0]", "[1 0]", "lock{me:1 mode:read}"),
	kase("a reader under another's write is lost", "renew", setup("HSET lock mode write you:write 1 me 1"), locktest.Keys("lock", "R"), args("30000", "r2:me"), "[0]", "[0]", "lock{me:1 mode:write you:write:1}"),

	kase("a read hold is extended", "extend_read", setup(reader, ttl, meLives, "SADD H ra"), locktest.Keys("lock", "R", "H", "T1"), args("me", "90000", "0", "a"), "1", "1", "H(ra) R<me> T1=1 lock{me:1 mode:read}"),
	kase("a read hold of an earlier life is lost", "extend_read", setup(reader, ttl, meLives, "SADD H rb wa"), locktest.Keys("lock", "R", "H", "T1"), args("me", "90000", "1", "a"), "0", "0", "H(rb wa) R<me> lock{me:1 mode:read}"),
	kase("ids of another type are not extended", "extend_read", setup(reader, ttl, "SET H x"), locktest.Keys("lock", "R", "H", "T1"), args("me", "90000", "1", "a"), wrong, wrong, "H=x lock{me:1 mode:read}"),
	kase("nothing is extended", "extend_read", setup(stranger), locktest.Keys("lock", "R", "H", "T1"), args("me", "90000", "1", "a"), "0", "0", "lock{mode:write you:write:1}"),
	kase("another type is not extended", "extend_read", setup("SET lock x"), locktest.Keys("lock", "R", "H", "T1"), args("me", "90000", "1", "a"), "0", "0", "lock=x"),
	kase("readers of another type are not extended", "extend_read", setup(reader, "SET R x"), locktest.Keys("lock", "R", "H", "T1"), args("me", "90000", "1", "a"), wrong, wrong, "R=x lock{me:1 mode:read}"),
	kase("a write hold is extended", "extend_write", setup(both, ttl, meLives, "SADD H wa"), locktest.Keys("lock", "R", "H"), args("me", "90000", "0", "a"), "1", "1", "H(wa) R<me> lock{me:1 me:write:1 mode:write}"),
	kase("a write hold of an earlier life is lost", "extend_write", setup(both, ttl, meLives, "SADD H ra wb"), locktest.Keys("lock", "R", "H"), args("me", "90000", "1", "a"), "0", "0", "H(ra wb) R<me> lock{me:1 me:write:1 mode:write}"),
	kase("ids of another type are not extended", "extend_write", setup(writer, ttl, "SET H x"), locktest.Keys("lock", "R", "H"), args("me", "90000", "1", "a"), wrong, wrong, "H=x lock{me:write:1 mode:write}"),
	kase("nothing is extended", "extend_write", setup(reader), locktest.Keys("lock", "R", "H"), args("me", "90000", "1", "a"), "0", "0", "lock{me:1 mode:read}"),
	kase("another type is not extended", "extend_write", setup("SET lock x"), locktest.Keys("lock", "R", "H"), args("me", "90000", "1", "a"), "0", "0", "lock=x"),

	kase("any reader is forced", "force_unlock", setup(reader, meLives, marked), locktest.Keys("lock", "R", "W"), args("ch", "PUBLISH", "s:"), "[me]", "[]", ""),
	kase("a writer is forced, both sides at once", "force_unlock", setup("HSET lock mode write me:write 1 me 2", meLives), locktest.Keys("lock", "R", "W"), args("ch", "PUBLISH", "s:"), "[me]", "[]", ""),
	kase("another type is not forced", "force_unlock", setup("SET lock x"), locktest.Keys("lock", "R", "W"), args("ch", "PUBLISH", "s:"), wrong, wrong, "lock=x"),
	kase("another kind of lock is not forced", "force_unlock", setup(plain), locktest.Keys("lock", "R", "W"), args("ch", "PUBLISH", "s:"), wrong, wrong, "lock{you:1}"),

	kase("a read lock is described, without the dead", "state", setup("HSET lock mode read me 2 you 1", meLives, youOver), locktest.Keys("lock", "R"), nil, "[read -1 me 2]", "[read -1 me 2]", "R<you me> lock{me:2 mode:read you:1}"),
	kase("a write lock is described, both sides added", "state", setup("HSET lock mode write me:write 1 me 2", meLives), locktest.Keys("lock", "R"), nil, "[write -1 me 3]", "[write -1 me 3]", "R<me> lock{me:2 me:write:1 mode:write}"),
	kase("a free lock is described", "state", nil, locktest.Keys("lock", "R"), nil, "[ -2]", "[ -2]", ""),
	kase("a lock of the dead is free", "state", setup("HSET lock mode read you 1", youOver, ttl), locktest.Keys("lock", "R"), nil, "[ -2]", "[ -2]", "R<you> lock{mode:read you:1}"),
	kase("another type is not described", "state", setup("SET lock x"), locktest.Keys("lock", "R"), nil, wrong, wrong, "lock=x"),
	kase("another kind of lock is not described", "state", setup(plain), locktest.Keys("lock", "R"), nil, wrong, wrong, "lock{you:1}"),
}

func TestScriptsAreSafeToRunTwice(t *testing.T) {
	var all []locktest.ScriptCase
	for _, cases := range [][]locktest.ScriptCase{acquireCases, releaseCases, otherCases} {
		all = append(all, cases...)
	}
	all = append(all, transferCases...)
	locktest.RunScripts(t, rwlock.ScriptSources(), all)
}

func TestScriptHeaders(t *testing.T) { locktest.CheckHeaders(t, rwlock.ScriptSources()) }
