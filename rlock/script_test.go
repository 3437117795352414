package rlock_test

import (
	"testing"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

const (
	held1 = "HSET lock me 1"
	held2 = "HSET lock me 2"
	other = "HSET lock other 1"
	ttl   = "PEXPIRE lock 60000"
)

var scriptCases = []locktest.ScriptCase{
	locktest.Case("a free lock is taken", "acquire", nil, locktest.Keys("lock"), locktest.Args("me", "30000"), "[1 1 0 1]", "[1 1 0 0]", "lock{me:1}"),
	locktest.Case("somebody else's lock is refused", "acquire", locktest.Setup(other), locktest.Keys("lock"), locktest.Args("me", "30000"), "[0 -1 0 0]", "[0 -1 0 0]", "lock{other:1}"),
	locktest.Case("a token is drawn once", "acquire", locktest.Setup("SET token 41"), locktest.Keys("lock", "token"), locktest.Args("me", "30000"), "[1 1 42 1]", "[1 1 42 0]", "lock{me:1} token=42"),
	locktest.Case("an unusable token changes nothing", "acquire", locktest.Setup("SET token x"), locktest.Keys("lock", "token"), locktest.Args("me", "30000"), "WRONGTYPE", "WRONGTYPE", "token=x"),
	locktest.Case("another type changes nothing", "acquire", locktest.Setup("SET lock x"), locktest.Keys("lock"), locktest.Args("me", "30000"), "WRONGTYPE", "WRONGTYPE", "lock=x"),

	locktest.Case("the last hold frees the lock", "release", locktest.Setup(held1, ttl), locktest.Keys("lock", "ids"), locktest.Args("me", "ch", "PUBLISH", "0", "0"), "[0 1]", "[0 0]", ""),
	locktest.Case("a hold alone needs no ids", "release", locktest.Setup(held1, ttl), locktest.Keys("lock"), locktest.Args("me", "ch", "PUBLISH", "0", "0"), "[0 1]", "[0 0]", ""),
	locktest.Case("holds by id ask for the ids", "release", locktest.Setup(held2, ttl), locktest.Keys("lock"), locktest.Args("me", "ch", "PUBLISH", "0", "0"), "[2 0]", "[2 0]", "lock{me:2}"),
	locktest.Case("what is held by id stays", "release", locktest.Setup("HSET lock me 3", ttl, "SADD ids a b"), locktest.Keys("lock", "ids"), locktest.Args("me", "ch", "PUBLISH", "2", "0"), "[2 1]", "[2 0]", "ids(a b released:me) lock{me:2}"),
	locktest.Case("a hold of an earlier life is not released", "release", locktest.Setup(held1, ttl, "SADD ids b entered:me"), locktest.Keys("lock", "ids"), locktest.Args("me", "ch", "PUBLISH", "0", "0"), "[1 0]", "[1 0]", "ids(b entered:me) lock{me:1}"),
	locktest.Case("somebody else's hold is not released", "release", locktest.Setup(other), locktest.Keys("lock", "ids"), locktest.Args("me", "ch", "PUBLISH", "0", "0"), "[0 0]", "[0 0]", "lock{other:1}"),
	locktest.Case("another type is left alone", "release", locktest.Setup("SET lock x"), locktest.Keys("lock", "ids"), locktest.Args("me", "ch", "PUBLISH", "0", "0"), "[0 0]", "[0 0]", "lock=x"),

	locktest.Case("a hold that was handed over is released under the name it has", "release", locktest.Setup(other, ttl), locktest.Keys("lock"), locktest.Args("me", "ch", "PUBLISH", "0", "0", "third", "other"), "[0 1]", "[0 0]", ""),
	locktest.Case("nobody has the hold that was handed over", "release", locktest.Setup(other, ttl), locktest.Keys("lock"), locktest.Args("me", "ch", "PUBLISH", "0", "0", "third"), "[0 0]", "[0 0]", "lock{other:1}"),

	locktest.Case("the hold passes on", "transfer", locktest.Setup(held1, ttl), locktest.Keys("lock", "ids"), locktest.Args("me", "next", "30000", "ch", "NUMSUB"), "[1 0]", "[1 0]", "lock{next:1}"),
	locktest.Case("who listens may be unknown", "transfer", locktest.Setup(held1, ttl), locktest.Keys("lock", "ids"), locktest.Args("me", "next", "30000", "ch", ""), "[1 -1]", "[1 -1]", "lock{next:1}"),
	locktest.Case("what is lost does not pass on", "transfer", nil, locktest.Keys("lock", "ids"), locktest.Args("me", "next", "30000", "ch", "NUMSUB"), "[0 0]", "[0 0]", ""),
	locktest.Case("somebody else's lock does not pass on", "transfer", locktest.Setup(other), locktest.Keys("lock", "ids"), locktest.Args("me", "next", "30000", "ch", "NUMSUB"), "[0 0]", "[0 0]", "lock{other:1}"),
	locktest.Case("a shared owner's lock does not pass on", "transfer", locktest.Setup(held2, ttl), locktest.Keys("lock", "ids"), locktest.Args("me", "next", "30000", "ch", "NUMSUB"), "[-1 0]", "[-1 0]", "lock{me:2}"),
	locktest.Case("a later hold of the old owner does not pass on", "transfer", locktest.Setup(held1, ttl, "SADD ids a entered:me"), locktest.Keys("lock", "ids"), locktest.Args("me", "next", "30000", "ch", "NUMSUB"), "[0 0]", "[0 0]", "ids(a entered:me) lock{me:1}"),
	locktest.Case("a later hold of the new owner is not prolonged", "transfer", locktest.Setup("HSET lock next 1", ttl, "SADD ids a entered:next"), locktest.Keys("lock", "ids"), locktest.Args("me", "next", "30000", "ch", "NUMSUB"), "[0 0]", "[0 0]", "ids(a entered:next) lock{next:1}"),
	locktest.Case("another type does not pass on", "transfer", locktest.Setup("SET lock x"), locktest.Keys("lock", "ids"), locktest.Args("me", "next", "30000", "ch", "NUMSUB"), "[0 0]", "[0 0]", "lock=x"),

	locktest.Case("an owner enters by id", "acquire_by_id", nil, locktest.Keys("lock", "ids"), locktest.Args("me", "30000", "0", "a", "0"), "[1 1 0 1]", "[1 1 0 1]", "ids(a entered:me) lock{me:1}"),
	locktest.Case("a hold by id is counted once", "acquire_by_id", locktest.Setup(held2, ttl, "SADD ids b"), locktest.Keys("lock", "ids"), locktest.Args("me", "30000", "1", "a", "0"), "[1 3 0 1]", "[1 3 0 1]", "ids(a b) lock{me:3}"),
	locktest.Case("a further hold keeps the token", "acquire_by_id", locktest.Setup(held1, ttl, "SET token 7"), locktest.Keys("lock", "ids", "token"), locktest.Args("me", "30000", "1", "a", "0"), "[1 2 7 1]", "[1 2 7 1]", "ids(a) lock{me:2} token=7"),
	locktest.Case("a token is drawn where the owner enters", "acquire_by_id", locktest.Setup("SET token 7"), locktest.Keys("lock", "ids", "token"), locktest.Args("me", "30000", "0", "a", "0"), "[1 1 8 1]", "[1 1 8 1]", "ids(a entered:me) lock{me:1} token=8"),
	locktest.Case("a token is drawn on demand, once", "acquire_by_id", locktest.Setup(held1, ttl, "SET token 7"), locktest.Keys("lock", "ids", "token"), locktest.Args("me", "30000", "1", "a", "1"), "[1 2 8 1]", "[1 2 8 1]", "ids(a) lock{me:2} token=8"),
	locktest.Case("an unusable token changes nothing", "acquire_by_id", locktest.Setup("SET token x"), locktest.Keys("lock", "ids", "token"), locktest.Args("me", "30000", "0", "a", "1"), "WRONGTYPE", "WRONGTYPE", "token=x"),
	locktest.Case("another owner is refused", "acquire_by_id", locktest.Setup(other), locktest.Keys("lock", "ids"), locktest.Args("me", "30000", "0", "a", "0"), "[0 -1 0 0]", "[0 -1 0 0]", "lock{other:1}"),
	locktest.Case("a further hold on a lost lock is no hold", "acquire_by_id", nil, locktest.Keys("lock", "ids"), locktest.Args("me", "30000", "1", "a", "0"), "[-1 0 0 0]", "[-1 0 0 0]", ""),
	locktest.Case("ids of an earlier life do not count", "acquire_by_id", locktest.Setup("SADD ids a b"), locktest.Keys("lock", "ids"), locktest.Args("me", "30000", "0", "a", "0"), "[1 1 0 1]", "[1 1 0 1]", "ids(a entered:me) lock{me:1}"),
	locktest.Case("another type is not entered", "acquire_by_id", locktest.Setup("SET lock x"), locktest.Keys("lock", "ids"), locktest.Args("me", "30000", "0", "a", "0"), "WRONGTYPE", "WRONGTYPE", "lock=x"),

	locktest.Case("a hold by id ends", "release_by_id", locktest.Setup("HSET lock me 3", ttl, "SADD ids a b"), locktest.Keys("lock", "ids"), locktest.Args("me", "ch", "PUBLISH", "2", "0", "1", "a"), "[2 1]", "[2 0]", "ids(b) lock{me:2}"),
	locktest.Case("the last hold by id frees", "release_by_id", locktest.Setup(held1, ttl, "SADD ids a released:me"), locktest.Keys("lock", "ids"), locktest.Args("me", "ch", "PUBLISH", "0", "0", "1", "a"), "[0 1]", "[0 0]", ""),
	locktest.Case("several holds by id end at once", "release_by_id", locktest.Setup(held2, ttl, "SADD ids a b"), locktest.Keys("lock", "ids"), locktest.Args("me", "ch", "PUBLISH", "0", "0", "2", "b", "a"), "[0 1]", "[0 0]", ""),
	locktest.Case("a hold of an earlier life is not released", "release_by_id", locktest.Setup(held1, ttl, "SADD ids b"), locktest.Keys("lock", "ids"), locktest.Args("me", "ch", "PUBLISH", "0", "0", "1", "a"), "[1 0]", "[1 0]", "ids(b) lock{me:1}"),
	locktest.Case("nothing is held by id", "release_by_id", locktest.Setup(other, "SADD ids a"), locktest.Keys("lock", "ids"), locktest.Args("me", "ch", "PUBLISH", "0", "0", "1", "a"), "[0 0]", "[0 0]", "ids(a) lock{other:1}"),

	locktest.Case("many are renewed, each for itself", "renew", locktest.Setup(held1, ttl, "SET token x", "HSET req other 1"), locktest.Keys("lock", "token", "req", "gone", "token"), locktest.Args("30000", "me", "me", "me", "me", ""), "[1 0 0 0 0]", "[1 0 0 0 0]", "lock{me:1} req{other:1} token=x"),
	locktest.Case("what goes along is renewed with its lock", "renew", locktest.Setup(held1, ttl, "SADD ids a"), locktest.Keys("lock", "ids"), locktest.Args("30000", "me", ""), "[1 1]", "[1 1]", "ids(a) lock{me:1}"),
	locktest.Case("a hold is extended", "extend", locktest.Setup(held1, ttl), locktest.Keys("lock"), locktest.Args("me", "90000", "0"), "1", "1", "lock{me:1}"),
	locktest.Case("holds by id are extended", "extend", locktest.Setup(held2, ttl, "SADD ids a b entered:me"), locktest.Keys("lock", "ids"), locktest.Args("me", "30000", "2", "a", "b"), "1", "1", "ids(a b entered:me) lock{me:2}"),
	locktest.Case("whether a hold alone may end sooner shows with the ids", "extend", locktest.Setup(held1, ttl), locktest.Keys("lock"), locktest.Args("me", "30000", "1"), "2", "2", "lock{me:1}"),
	locktest.Case("a hold alone ends sooner", "extend", locktest.Setup(held1, ttl, "SADD ids old entered:you"), locktest.Keys("lock", "ids"), locktest.Args("me", "30000", "1"), "1", "1", "ids(entered:you old) lock{me:1}"),
	locktest.Case("a hold alone of an earlier life is lost", "extend", locktest.Setup(held1, ttl, "SADD ids b entered:me"), locktest.Keys("lock", "ids"), locktest.Args("me", "30000", "1"), "0", "0", "ids(b entered:me) lock{me:1}"),
	locktest.Case("holds by id of an earlier life are lost", "extend", locktest.Setup(held1, ttl, "SADD ids b"), locktest.Keys("lock", "ids"), locktest.Args("me", "90000", "0", "a"), "0", "0", "ids(b) lock{me:1}"),
	locktest.Case("ids of another type change nothing", "extend", locktest.Setup(held1, ttl, "SET ids x"), locktest.Keys("lock", "ids"), locktest.Args("me", "30000", "1", "a"), "WRONGTYPE", "WRONGTYPE", "ids=x lock{me:1}"),
	locktest.Case("nothing is extended", "extend", locktest.Setup(other), locktest.Keys("lock"), locktest.Args("me", "90000", "1"), "0", "0", "lock{other:1}"),
	locktest.Case("any hold is forced", "force_unlock", locktest.Setup(held2, ttl), locktest.Keys("lock"), locktest.Args("ch", "PUBLISH", "s:"), "[me]", "[]", ""),
	locktest.Case("another type is not forced", "force_unlock", locktest.Setup("SET lock x"), locktest.Keys("lock"), locktest.Args("ch", "PUBLISH", "s:"), "WRONGTYPE", "WRONGTYPE", "lock=x"),
	locktest.Case("a lock is described", "state", locktest.Setup(held2), locktest.Keys("lock"), nil, "[-1 me 2]", "[-1 me 2]", "lock{me:2}"),
	locktest.Case("a free lock is described", "state", nil, locktest.Keys("lock"), nil, "[-2]", "[-2]", ""),
	locktest.Case("another type is not described", "state", locktest.Setup("SET lock x"), locktest.Keys("lock"), nil, "WRONGTYPE", "WRONGTYPE", "lock=x"),
}

func TestScriptsAreSafeToRunTwice(t *testing.T) {
	locktest.RunScripts(t, rlock.ScriptSources(), scriptCases)
}

// A lease belongs to the acquisition: a nested shorter one does not cut the outer, and
// releasing an inner hold never lengthens what is left (R24). No lock is ever without
// a TTL.
func TestScriptsKeepTheLongerLease(t *testing.T) {
	src := rlock.ScriptSources()
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		pttl := func() int64 {
			n, err := s.Do(t, "PTTL", "lock").AsInt64()
			must(t, err)
			return n
		}
		for _, step := range []struct {
			what     string
			cmd      []string
			from, to int64
		}{
			{"outer", []string{"EVAL", src["acquire"], "1", "lock", "me", "60000"}, 59000, 60000},
			{"a shorter inner one", []string{"EVAL", src["acquire_by_id"], "2", "lock", "ids", "me", "5000", "1", "a", "0"}, 58000, 60000},
			{"a longer inner one", []string{"EVAL", src["acquire_by_id"], "2", "lock", "ids", "me", "90000", "2", "b", "0"}, 89000, 90000},
			{"a renewal", []string{"EVAL", src["renew"], "1", "lock", "30000", "me"}, 88000, 90000},
			{"a question", []string{"EVAL", src["renew"], "1", "lock", "0", "me"}, 88000, 90000},
			{"an extension that would cut another's", []string{"EVAL", src["extend"], "1", "lock", "me", "1000", "2"}, 88000, 90000},
			{"unlock while others keep it", []string{"EVAL", src["release_by_id"], "2", "lock", "ids", "me", "ch", "PUBLISH", "1", "50000", "1", "x", "a"}, 88000, 90000},
			{"unlock of the longer one", []string{"EVAL", src["release_by_id"], "2", "lock", "ids", "me", "ch", "PUBLISH", "2", "60000", "1", "b", "a"}, 58000, 60000},
			{"unlock that deserves more", []string{"EVAL", src["release"], "2", "lock", "ids", "me", "ch", "PUBLISH", "1", "99000", "a"}, 57000, 60000},
			{"extension", []string{"EVAL", src["extend"], "2", "lock", "ids", "me", "2000", "1", "a"}, 1000, 2000},
			{"a key that lost its TTL", []string{"PERSIST", "lock"}, -1, -1},
			{"a question about that", []string{"EVAL", src["renew"], "1", "lock", "0", "me"}, -1, -1},
		} {
			must(t, s.Do(t, step.cmd...).Error())
			if got := pttl(); got < step.from || got > step.to {
				t.Errorf("after %s the TTL is %d ms, want %d to %d", step.what, got, step.from, step.to)
			}
		}
	})
}

func TestScriptHeaders(t *testing.T) { locktest.CheckHeaders(t, rlock.ScriptSources()) }
