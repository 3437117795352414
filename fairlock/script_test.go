package fairlock_test

import (
	"fmt"
	"regexp"
	"sort"
	"strings"
	"testing"

	"relock/fairlock"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
)

// Entries of two runs of one waiter of the session A, with the owners A1 and A2; one of a named
// owner; and what is known of them.
const (
	e1 = "00001A1"
	e2 = "00001A2"
	en = "00001A#" + idN + "ann"

	idN = "0123456789abcdef0123456789abcdef"

	run1   = "o--" + "0000000001" // one waiter, others may join
	run3   = "o--" + "0000000003"
	fenced = "of-" + "0000000001"
	named  = "--n" + "0000000001"

	life = "-" + "0000001000000" // a QueueLease of a thousand seconds, and it can be told

	fresh = "2999999999999" // it keeps its entries for longer than it asked for
	stale = "1"

	heldByMe    = "HSET lock me 1"
	heldByOther = "HSET lock other 1"
	mineByID    = "SADD ids a"
)

var keys = locktest.Keys("lock", "queue", "waiters", "ids", "token")

// args are those of grant.lua, for a server of which PUBLISH does not tell who hears, and
// those of the script. The QueueLease is a thousand seconds.
func args(more ...string) []string {
	return append([]string{"ch", "PUBLISH", "s:", "0", "1000000"}, more...)
}

// telling are the same where PUBLISH tells: nobody hears.
func telling(more ...string) []string {
	a := args(more...)
	a[3] = "1"
	return a
}

// Arguments of acquire.lua: for a run with that entry, one waiter and the number 7, that may join
// another; for a caller that does not wait; for a named owner.
func enter(entry, join string) []string {
	joined := ""
	if join != "" {
		joined = run3
	}
	return args("A"+entry[6:], "300000", "0", "", entry, join, "7", run1, joined, "A", life, "0")
}

func enterFenced(entry string, n string) []string {
	return args("A"+entry[6:], "300000", n, "", entry, "", "7", fenced, "", "A", life, "0")
}

func try(owner, tokens, id string) []string {
	if tokens == "0" && id == "" {
		return args(owner, "300000")
	}
	return args(owner, "300000", tokens, id, "", "", "0", "", "", "", "", "0")
}

func enterNamed(tokens string) []string {
	return args("ann", "300000", tokens, idN, en, "", "7", named, "", "A", life, "0")
}

// set is a state.
func set(cmds ...string) [][]string { return locktest.Setup(cmds...) }

// waiting is a state with these entries, in this order, of a session that was heard of until
// then; of each its flags and number of waiters, and 3 as the number of the last.
func waiting(until string, entries ...string) (cmds []string) {
	for i := 0; i < len(entries); i += 2 {
		cmds = append(cmds, fmt.Sprint("ZADD queue ", i+1, " ", entries[i]), "HSET waiters "+entries[i]+" "+entries[i+1]+"3")
	}
	return append(cmds, "HSET waiters sA "+life+until)
}

// known is how a state reads in which the session was heard of, and these entries wait.
func known(until string, entries ...string) string {
	sort.Strings(entries)
	return "waiters{" + strings.Join(append(entries, "sA:"+life+until), " ") + "}"
}

// In replies and states "~" stands for whatever counts in ms or µs: a TTL, Redis's time, a place.
var scriptCases = []locktest.ScriptCase{
	locktest.Case("a free lock is taken", "acquire", nil, keys, enter(e1, ""), "1", "[1 1 0 0]", "lock{A1:1}"),
	locktest.Case("a free lock is taken at once", "acquire", nil, keys, try("A1", "0", ""), "1", "[1 1 0 0]", "lock{A1:1}"),
	locktest.Case("a named owner takes a free lock", "acquire", set("SADD ids old"), keys, enterNamed("0"), "1", "[1 1 0 0]", "ids("+idN+") lock{ann:1}"),
	locktest.Case("the first that waits is told the TTL", "acquire", set(heldByOther, "PEXPIRE lock 900000"), keys, enter(e1, ""), "[0 ~ ~ ~]", "[0 ~ ~ ~]", "lock{other:1} queue<"+e1+"> "+known("~", e1+":"+run1+"7")),
	locktest.Case("who comes back to the front is told the TTL", "acquire", set(heldByOther, "PEXPIRE lock 900000", "ZADD queue 9 "+e2, "HSET waiters "+e2+" "+run1+"3 sA "+life+fresh), keys, append(enter(e1, "")[:16], "5"), "[0 ~ ~ 5]", "[0 ~ ~ 5]", "lock{other:1} queue<"+e1+" "+e2+"> "+known("~", e1+":"+run1+"7", e2+":"+run1+"3")),
	locktest.Case("the second is told nothing", "acquire", set(append(waiting(fresh, e2, run1), heldByOther, "PEXPIRE lock 900000")...), keys, enter(e1, ""), "[0 -1 ~ ~]", "[0 -1 ~ ~]", "lock{other:1} queue<"+e2+" "+e1+"> "+known("~", e1+":"+run1+"7", e2+":"+run1+"3")),
	locktest.Case("a run joins the entry that is last", "acquire", set(append(waiting(fresh, e2, run1), heldByOther)...), keys, enter(e1, e2), "[0 -1 ~ 0]", "[0 -1 ~ 0]", "lock{other:1} queue<"+e2+"> "+known("~", e2+":"+run3+"7")),
	locktest.Case("a run does not join an entry that is not last", "acquire", set(append(waiting(fresh, e2, run1, "00001A9", run1), heldByOther)...), keys, enter(e1, e2), "[0 -1 ~ ~]", "[0 -1 ~ ~]", "lock{other:1} queue<"+e2+" 00001A9 "+e1+"> "+known("~", e1+":"+run1+"7", e2+":"+run1+"3", "00001A9:"+run1+"3")),
	locktest.Case("a run that has joined is not added when others came behind", "acquire", set(append(waiting(fresh, e2, run3, "00001A9", run1), heldByOther, "HSET waiters "+e2+" "+run3+"7")...), keys, enter(e1, e2), "[0 -1 ~ 0]", "[0 -1 ~ 0]", "lock{other:1} queue<"+e2+" 00001A9> "+known("~", e2+":"+run3+"7", "00001A9:"+run1+"3")),
	locktest.Case("a run gets an entry when the one to join is gone", "acquire", set(heldByOther), keys, enter(e1, e2), "[0 -1 ~ ~]", "[0 -1 ~ ~]", "lock{other:1} queue<"+e1+"> "+known("~", e1+":"+run1+"7")),
	locktest.Case("a place is kept", "acquire", set(append(waiting(fresh, e1, run3, e2, run1), heldByOther)...), keys, enter(e1, ""), "[0 -1 ~ 1]", "[0 -1 ~ 1]", "lock{other:1} queue<"+e1+" "+e2+"> "+known("~", e1+":"+run1+"7", e2+":"+run1+"3")),
	locktest.Case("an old place is in front of the others", "acquire", set(append(waiting(fresh, "00001A9", run1, e2, run1), heldByOther)...), keys, args("A1", "300000", "0", "", e1, "", "7", run1, "", "A", life, "2"), "[0 -1 ~ 2]", "[0 -1 ~ 2]", "lock{other:1} queue<00001A9 "+e1+" "+e2+"> "+known("~", e1+":"+run1+"7", e2+":"+run1+"3", "00001A9:"+run1+"3")),
	locktest.Case("who does not wait does not queue", "acquire", set(heldByOther), keys, try("A1", "0", ""), "[0 -1 0 0]", "[0 -1 0 0]", "lock{other:1}"),
	locktest.Case("who does not wait does not overtake", "acquire", set(waiting(fresh, e2, run1)...), keys, try("A1", "0", ""), "[0 -1 0 0]", "[0 -1 0 0]", "lock{A2:1}"),
	locktest.Case("who comes does not overtake", "acquire", set(waiting(fresh, e2, run1)...), keys, enter(e1, ""), "[0 ~ ~ ~]", "[0 ~ ~ ~]", "lock{A2:1} queue<"+e1+"> "+known("~", e1+":"+run1+"7")),
	locktest.Case("the first is let in", "acquire", set(waiting(fresh, e1, run1, e2, run1)...), keys, enter(e1, ""), "[1 1 0 0]", "[1 1 0 0]", "lock{A1:1} queue<"+e2+"> "+known("~", e2+":"+run1+"3")),
	locktest.Case("the dead leave the queue", "acquire", set("ZADD queue 1 00001B2", "HSET waiters 00001B2 "+run1+"3 sB "+life+stale), keys, enter(e1, ""), "[1 1 0 0]", "[1 1 0 0]", "lock{A1:1}"),
	locktest.Case("who cannot be told is passed over", "acquire", set("ZADD queue 1 00001B2", "HSET waiters 00001B2 "+run1+"3 sB "+life+fresh), keys, telling(enter(e1, "")[5:]...), "[1 1 0 0]", "[1 1 0 0]", "lock{A1:1} queue<00001B2> waiters{00001B2:"+run1+"3 sA:"+life+"~ sB:"+life+"~}"),
	locktest.Case("a run enters whose queue was deleted", "acquire", set(append(waiting(fresh), "HSET waiters "+e1+" "+run1+"7")...), keys, enter(e1, ""), "[1 1 0 0]", "[1 1 0 0]", "lock{A1:1}"),
	locktest.Case("an entry of which nothing is known is that of nobody", "acquire", set("ZADD queue 1 "+e2), keys, enter(e1, ""), "[1 1 0 0]", "[1 1 0 0]", "lock{A1:1}"),
	locktest.Case("what is no entry is no waiter", "acquire", set("ZADD queue 1 nonsense"), keys, enter(e1, ""), "[1 1 0 0]", "[1 1 0 0]", "lock{A1:1}"),
	locktest.Case("a grant is taken up", "acquire", set("HSET lock A1 1", "PEXPIRE lock 1000"), keys, enter(e1, ""), "[1 1 0 0]", "[1 1 0 0]", "lock{A1:1}"),
	locktest.Case("a named owner that got in elsewhere leaves the queue", "acquire", set(append(waiting(fresh, en, named), "HSET lock ann 1", "SADD ids i9")...), keys, enterNamed("0"), "[1 2 0 0]", "[1 2 0 0]", "ids("+idN+" i9) lock{ann:2}"),
	locktest.Case("tokens are reserved once", "acquire", set("SET token 41"), keys, enterFenced(e1, "3"), "[1 1 44 0]", "[1 1 44 0]", "lock{A1:1} token=44"),
	locktest.Case("a named owner that is in elsewhere keeps the token", "acquire", set("HSET lock ann 1", "SADD ids i1", "SET token 42"), keys, try("ann", "1", "i9"), "[1 2 42 0]", "[1 2 42 0]", "ids(i1 i9) lock{ann:2} token=42"),
	locktest.Case("a named owner that is in elsewhere is told of an unusable token", "acquire", set("HSET lock ann 1", "SADD ids i1", "SET token x"), keys, try("ann", "1", "i9"), "WRONGTYPE", "WRONGTYPE", "ids(i1) lock{ann:1} token=x"),
	locktest.Case("as many tokens are drawn as wait", "acquire", set(append(waiting(fresh, e2, "of-0000000003"), "SET token 42")...), keys, try("A1", "0", ""), "[0 -1 0 0]", "[0 -1 0 0]", "lock{A2:1} token=45"),
	locktest.Case("an unusable token changes nothing", "acquire", set("SET token x"), keys, enterFenced(e1, "1"), "WRONGTYPE", "WRONGTYPE", "token=x"),
	locktest.Case("who wants no token draws none", "acquire", set("SET token x"), keys, enter(e1, ""), "1", "[1 1 0 0]", "lock{A1:1} token=x"),
	locktest.Case("a token that cannot be counted up changes nothing", "acquire", set("SET token 1.5"), keys, try("A1", "1", ""), "WRONGTYPE", "WRONGTYPE", "token=1.5"),
	locktest.Case("who waits is told of an unusable token", "acquire", set(heldByOther, "SET token 1.5"), keys, enterFenced(e1, "1"), "WRONGTYPE", "WRONGTYPE", "lock{other:1} token=1.5"),
	locktest.Case("who waits is told of a token that is too high", "acquire", set(heldByOther, "SET token 1234567890123456"), keys, enterFenced(e1, "1"), "WRONGTYPE", "WRONGTYPE", "lock{other:1} token=1234567890123456"),
	locktest.Case("no waiter is let in without its token", "acquire", set(append(waiting(fresh, e2, fenced), "SET token x")...), keys, enter(e1, ""), "[0 -1 ~ ~]", "[0 -1 ~ ~]", "queue<"+e2+" "+e1+"> token=x "+known("~", e1+":"+run1+"7", e2+":"+fenced+"3")),
	locktest.Case("another type is not entered", "acquire", set("SET lock x"), keys, enter(e1, ""), "WRONGTYPE", "WRONGTYPE", "lock=x"),
	locktest.Case("a hash that is no lock is not entered", "acquire", set("HSET lock name bob"), keys, enter(e1, ""), "WRONGTYPE", "WRONGTYPE", "lock{name:bob}"),
	locktest.Case("a read-write lock is a lock", "acquire", set("HSET lock mode read B1 1"), keys, try("A1", "0", ""), "[0 -1 0 0]", "[0 -1 0 0]", "lock{B1:1 mode:read}"),

	locktest.Case("a private owner ends", "release", set("HSET lock A9 1"), keys, args("A9", "00001A9"), "-1", "[0 0 -1]", ""),
	locktest.Case("the next is let in", "release", set(append(waiting(fresh, e1, run3, e2, run1), "HSET lock A9 1")...), keys, args("A9", "00001A9"), "[0 1 -1]", "[0 0 -1]", "lock{A1:1} queue<"+e2+"> "+known("~", e2+":"+run1+"3")),
	locktest.Case("a named owner is let in with its id", "release", set(append(waiting(fresh, en, named), "HSET lock A9 1", "SADD ids old")...), keys, args("A9", "00001A9"), "[0 1 -1]", "[0 0 -1]", "ids("+idN+") lock{ann:1}"),
	locktest.Case("the dead are skipped", "release", set(append(waiting(fresh, e1, run1), "HSET lock A9 1", "ZADD queue 0 00001B2", "HSET waiters 00001B2 "+run1+"3 sB "+life+stale)...), keys, args("A9", "00001A9"), "[0 1 -1]", "[0 0 -1]", "lock{A1:1}"),
	locktest.Case("a waiter that cannot be told stays in the queue", "release", set(append(waiting(fresh, e1, run1), "HSET lock A9 1")...), keys, telling("A9", "00001A9"), "[0 1 0]", "[0 0 -1]", "queue<"+e1+"> "+known("~", e1+":"+run1+"3")),
	locktest.Case("who cannot be told anything is let in all the same", "release", set("HSET lock A9 1", "ZADD queue 1 "+e1, "HSET waiters "+e1+" "+run1+"3 sA d"+life[1:]+"2999999999999"), keys, telling("A9", "00001A9"), "[0 1 -1]", "[0 0 -1]", "lock{A1:1}"),
	locktest.Case("tokens are drawn for the next", "release", set(append(waiting(fresh, e1, "of-0000000003"), "HSET lock A9 1", "SET token 7")...), keys, args("A9", "00001A9"), "[0 1 -1]", "[0 0 -1]", "lock{A1:1} token=10"),
	locktest.Case("all of a private owner ends, whatever the ids", "release", set("HSET lock A9 3", mineByID), keys, args("A9", "00001A9"), "[0 1 -1]", "[0 0 -1]", ""),
	locktest.Case("a private owner that is lost ends nothing", "release", set(heldByOther, mineByID), keys, args("A9", "00001A9"), "[0 0 -1]", "[0 0 -1]", "ids(a) lock{other:1}"),
	locktest.Case("the receivers are told where they are counted", "release", set("HSET lock A9 1"), keys, telling("A9", "00001A9"), "0", "[0 0 -1]", ""),
	locktest.Case("a run leaves the queue", "release", set(append(waiting(fresh, e1, run1, e2, run1), heldByOther)...), keys, args("A1", e1), "[0 0 -1]", "[0 0 -1]", "lock{other:1} queue<"+e2+"> "+known("~", e2+":"+run1+"3")),
	locktest.Case("a run leaves whose queue was deleted", "release", set(append(waiting(fresh, e2, run1), heldByOther, "HSET waiters "+e1+" "+run1+"3")...), keys, args("A1", e1), "[0 0 -1]", "[0 0 -1]", "lock{other:1} queue<"+e2+"> "+known("~", e2+":"+run1+"3")),
	locktest.Case("a run that was just let in passes it on", "release", set(append(waiting(fresh, e2, run1), "HSET lock A1 1")...), keys, args("A1", e1), "[0 1 -1]", "[0 0 -1]", "lock{A2:1}"),
	locktest.Case("a run that leaves a free lock lets the next one in", "release", set(waiting(fresh, e1, run1, e2, run1)...), keys, args("A1", e1), "[0 0 -1]", "[0 0 -1]", "lock{A2:1}"),
	locktest.Case("fields of others stay", "release", set("HSET lock A9 1 other 1"), keys, args("A9", "00001A9"), "[0 1 -1]", "[0 0 -1]", "lock{other:1}"),
	locktest.Case("another type is left alone", "release", set("SET lock x"), keys, args("A9", "00001A9"), "[0 0 -1]", "[0 0 -1]", "lock=x"),

	locktest.Case("the last hold frees the lock", "release", set(heldByMe, mineByID), keys, args("me", "00001A#", "0", "0", "1", "a"), "[0 1 -1]", "[0 0 -1]", ""),
	locktest.Case("the next is let in", "release", set(append(waiting(fresh, e1, run1), heldByMe, mineByID)...), keys, args("me", "00001A#", "0", "0", "1", "a"), "[0 1 -1]", "[0 0 -1]", "lock{A1:1}"),
	locktest.Case("several holds end at once", "release", set("HSET lock me 2", "SADD ids a b"), keys, args("me", "00001A#", "0", "0", "2", "b", "a"), "[0 1 -1]", "[0 0 -1]", ""),
	locktest.Case("an inner hold ends", "release", set(append(waiting(fresh, e1, run1), "HSET lock me 2", "SADD ids a b")...), keys, args("me", "00001A#", "0", "0", "1", "b"), "[1 1 -1]", "[1 0 -1]", "ids(a) lock{me:1} queue<"+e1+"> "+known("~", e1+":"+run1+"3")),
	locktest.Case("a hold of an earlier life is not released", "release", set(heldByMe, mineByID), keys, args("me", "00001A#", "0", "0", "1", "z"), "[1 0 -1]", "[1 0 -1]", "ids(a) lock{me:1}"),
	locktest.Case("somebody else's hold is not released", "release", set(heldByOther, mineByID), keys, args("me", "00001A#", "0", "0", "1", "a"), "[0 0 -1]", "[0 0 -1]", "lock{other:1}"),
	locktest.Case("a named owner leaves the queue", "release", set(append(waiting(fresh, en, named, e2, run1), heldByOther)...), keys, args("ann", "00001A#", "0", "0", "1", idN), "[0 0 -1]", "[0 0 -1]", "lock{other:1} queue<"+e2+"> "+known("~", e2+":"+run1+"3")),
	locktest.Case("another type is left alone", "release", set("SET lock x"), keys, args("me", "00001A#", "0", "0", "1", "a"), "[0 0 -1]", "[0 0 -1]", "lock=x"),

	locktest.Case("entries are kept", "heartbeat", set(append(waiting(stale, e1, run1, e2, run1), heldByOther, "PEXPIRE lock 900000")...), keys, args("A", life, e2, e1), "[-1 ~ ~]", "[-1 ~ ~]", "lock{other:1} queue<"+e1+" "+e2+"> "+known("~", e1+":"+run1+"3", e2+":"+run1+"3")),
	locktest.Case("an entry that is gone is not made", "heartbeat", set(heldByOther), keys, args("A", life, e1), "[0 ~]", "[0 ~]", "lock{other:1}"),
	locktest.Case("the first is let in by its heartbeat", "heartbeat", set(waiting(stale, e1, run1)...), keys, telling("A", life, e1), "[0 ~]", "[0 ~]", "lock{A1:1}"),
	locktest.Case("another's heartbeat lets the first in", "heartbeat", set(waiting(fresh, e1, run1, e2, run1)...), keys, args("A", life, e2), "[~ ~]", "[~ ~]", "lock{A1:1} queue<"+e2+"> "+known("~", e2+":"+run1+"3")),
	locktest.Case("a heartbeat does not overtake", "heartbeat", set(append(waiting(fresh, e1, run1, e2, run1), heldByOther)...), keys, args("A", life, e2), "[-1 ~]", "[-1 ~]", "lock{other:1} queue<"+e1+" "+e2+"> "+known("~", e1+":"+run1+"3", e2+":"+run1+"3")),
	locktest.Case("an owner that got in elsewhere is to ask", "heartbeat", set(append(waiting(fresh, en, named), "HSET lock ann 1", "SADD ids i9")...), keys, args("A", life, en), "[0 ~]", "[0 ~]", "ids(i9) lock{ann:1} queue<"+en+"> "+known("~", en+":"+named+"3")),
	locktest.Case("another type is told", "heartbeat", set(append(waiting(fresh, e1, run1), "SET lock x")...), keys, args("A", life, e1), "WRONGTYPE", "WRONGTYPE", "lock=x queue<"+e1+"> "+known("~", e1+":"+run1+"3")),

	locktest.Case("any hold is forced", "force_unlock", set("HSET lock me 2", "SADD ids a b"), keys, args("r1", "me"), "[me]", "[]", ""),
	locktest.Case("who holds it is told, and nothing changed", "force_unlock", set("HSET lock me 2"), keys, args("r1"), "[me]", "[me]", "lock{me:2}"),
	locktest.Case("another owner than the one that is meant is not forced", "force_unlock", set("HSET lock me 2"), keys, args("r1", "you"), "[]", "[]", "lock{me:2}"),
	locktest.Case("a free lock is not forced", "force_unlock", set(waiting(fresh, e1, run1)...), keys, args("r1", "me"), "[]", "[]", "queue<"+e1+"> "+known("~", e1+":"+run1+"3")),
	locktest.Case("the next is let in, and not forced by a resend", "force_unlock", set(append(waiting(fresh, e1, run1), heldByMe, mineByID)...), keys, args("r1", "me"), "[me]", "[]", "ids(forced:r1) lock{A1:1}"),
	locktest.Case("another type is not forced", "force_unlock", set("SET lock x"), keys, args("r1", "me"), "WRONGTYPE", "WRONGTYPE", "lock=x"),
	locktest.Case("a hash that is no lock is not forced", "force_unlock", set("HSET lock name bob"), keys, args("r1", "me"), "WRONGTYPE", "WRONGTYPE", "lock{name:bob}"),

	locktest.Case("nobody waits", "waiters", nil, locktest.Keys("waiters"), nil, "0", "0", ""),
	locktest.Case("the living are summed up", "waiters", set(append(waiting(fresh, e1, run3, e2, run1), "HSET waiters 00001B2 "+run1+"3 sB "+life+stale)...), locktest.Keys("waiters"), nil, "4", "4", "queue<"+e1+" "+e2+"> waiters{"+e1+":"+run3+"3 "+e2+":"+run1+"3 00001B2:"+run1+"3 sA:"+life+"~ sB:"+life+"1}"),
	locktest.Case("another type is not counted", "waiters", set("SET waiters x"), locktest.Keys("waiters"), nil, "WRONGTYPE", "WRONGTYPE", "waiters=x"),
}

// timeless wraps scripts so that what counts in ms reads "~" in their replies.
func timeless() map[string]string {
	all := map[string]string{}
	for name, src := range fairlock.ScriptSources() {
		all[name] = "local function script()\n" + src + `
end
local reply = script()
if type(reply) == 'table' then
  for i, v in ipairs(reply) do
    if type(v) == 'number' and v > 100000 then
      reply[i] = '~'
    end
  end
end
return reply`
	}
	return all
}

// untilWhen is until when a session keeps its entries.
var untilWhen = regexp.MustCompile(`(:[d-]\d{13})\d{13}`)

func TestScriptsAreSafeToRunTwice(t *testing.T) {
	t.Parallel()
	locktest.RunScripts(t, timeless(), scriptCases, plainTimes)
}

func plainTimes(state string) string { return untilWhen.ReplaceAllString(state, "$1~") }

// A server that takes no writes has said nothing about a lock (11.1).
func TestScriptsPassErrorsOn(t *testing.T) {
	t.Parallel()
	locktest.RefuseWrites(t, timeless(), scriptCases)
}

// While the slot of a lock moves a script is refused, or does what it does elsewhere.
func TestScriptsWhileTheirSlotMoves(t *testing.T) {
	t.Parallel()
	locktest.WhileASlotMoves(t, timeless(), scriptCases, plainTimes)
}

// Unlocking one hold shortens the lease to what the others deserve, if they are all of the
// session that says so: those of a private owner are.
func TestReleaseShortensOwnHolds(t *testing.T) {
	each(t, func(t *testing.T, s *redistest.Server) {
		src := fairlock.ScriptSources()["release"]
		for _, c := range []struct {
			what string
			args []string
			most int64
		}{
			{"a named owner that holds elsewhere", args("me", "01:A2:me", "0", "20000", "1", "a", "b"), 60000},
			{"a named owner with all ids", args("me", "01:A2:me", "0", "20000", "1", "a", "b", "c", "v"), 20000},
			{"a private owner", args("me", "01:A2:me", "1", "20000", "1", "a"), 20000},
			{"what deserves more", args("me", "01:A2:me", "1", "90000", "1", "a"), 60000},
			{"an unlock that an extension has voided", args("me", "01:A2:me", "1", "20000", "1", "v"), 60000},
			{"what leaves the TTL", args("me", "01:A2:me", "1", "0", "1", "a"), 60000},
		} {
			s.FlushAll(t)
			for _, cmd := range set("HSET lock me 4", "SADD ids a b c v xv", "PEXPIRE lock 60000", "PEXPIRE ids 60000") {
				must(t, s.Do(t, cmd...).Error())
			}
			must(t, s.Do(t, append(append([]string{"EVAL", src, "5"}, keys...), c.args...)...).Error())
			for _, key := range []string{"lock", "ids"} {
				if ms, err := s.Do(t, "PTTL", key).AsInt64(); err != nil || ms > c.most || ms < c.most-5000 {
					t.Errorf("%s: %s lives %d ms, %v; want %d", c.what, key, ms, err, c.most)
				}
			}
		}
	})
}

func TestScriptHeaders(t *testing.T) { locktest.CheckHeaders(t, fairlock.ScriptSources()) }
