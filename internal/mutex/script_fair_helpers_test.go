package mutex_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"relock/internal/mutex"
	"relock/internal/test/locktest"
)

// What the scripts say and do to fair entries of the line, see line.lua. The cases call an entry by a short
// name, so that they can be read: its letter, and what tells its owner from the others.
const (
	idN = "0123456789abcdef0123456789abcdef" // of the hold of a named owner

	fresh = "2999999999999" // until when a session counts as alive: in each test
	dead  = "1"

	passed = 2400000000000000 // PASSED of line.lua, and so on
	alive  = 5000000000000000
	called = 8000000000000000
)

// silent is until when a session counted as alive that is not taken for dead yet.
var silent = fmt.Sprint(time.Now().Add(-time.Minute).UnixMilli())

// entries are those of the sessions A, B and C.
var entries = map[string]string{
	"f1": entry("f", 0, "A1"), "f2": entry("f", 0, "A2"), "fb": entry("f", 0, "B1"), "fc": entry("f", 0, "C1"),
	"h1": entry("h", 0, "A3"), "ht": entry("h", 2, "A4"), "ft": entry("f", 999, "A5"), // these want tokens
	"d1": entry("d", 0, "A6"), "e1": entry("e", 0, "A7"), "i1": entry("i", 0, "A"+idN+"ann"),
	"g1": entry("g", 0, "A8"), "gb": entry("g", 0, "B8"), // of a plain lock
	"z1": entry("z", 0, "A9"), "z2": entry("z", 0, "A10"), "z3": entry("z", 0, "A11"), "z4": entry("z", 0, "A12"), "ab": entry("a", 0, "B9"),
}

// An entry gives the lock for 9.999 s and keeps its session alive for a thousand.
func entry(letter string, tokens int, rest string) string {
	return fmt.Sprintf("%s%03d99991000000%05d%s", letter, tokens, 1, rest)
}

// of takes an entry apart.
func of(name string) (head, session, owner string) {
	e := entries[name]
	if name == "i1" {
		return e[:len(e)-3], "A", "ann"
	}
	return e[:20], e[20:21], e[20:]
}

// byName puts the names of entries into a state, and of the id.
func byName(state string) string {
	var pairs []string
	for name, e := range entries {
		pairs = append(pairs, e, name)
	}
	return strings.NewReplacer(append(pairs, idN, "id")...).Replace(state)
}

// at is a command that puts members into the line, each behind its score; names become entries.
func at(scores ...any) string {
	cmd := "ZADD line"
	for i := 0; i < len(scores); i += 2 {
		cmd += fmt.Sprint(" ", scores[i], " ")
		member := fmt.Sprint(scores[i+1])
		name := strings.TrimLeft(member, "#w")
		if e := entries[name]; e != "" {
			member = member[:len(member)-len(name)] + e
		}
		cmd += member
	}
	return cmd
}

// heard says until when a session counts as alive.
func heard(session, until string) string {
	var ms int64
	fmt.Sscan(until, &ms)
	return at(alive-ms, "s"+session)
}

// stand is a state in which these entries stand in the line, at the positions 1, 2 and so on; their last callers
// have the numbers 3, 4 and so on, and 2, 3 and so on wait. Their sessions are there, unless what follows says more.
func stand(names string, more ...string) (cmds []string) {
	for i, name := range strings.Fields(names) {
		_, session, _ := of(name)
		if strings.Contains("gza", name[:1]) {
			cmds = append(cmds, at(i+1, name))
		} else {
			cmds = append(cmds, at(i+1, name, 4850000000000003+i, "#"+name, 8600000000000002+i, "w"+name))
		}
		cmds = append(cmds, heard(session, fresh))
	}
	return append(cmds, more...)
}

// state is what a case begins with.
func state(cmds []string, more ...string) [][]string {
	return locktest.Setup(append(slices.Clone(cmds), more...)...)
}

// come are the arguments of acquire.lua for an entry whose last caller has the number 9, and where nine wait.
// Who listens is not known.
func come(name string) []string {
	head, _, owner := of(name)
	tokens, id := "", ""
	switch name {
	case "i1":
		tokens, id = "0", idN
	case "ht", "ft":
		tokens = "2"
	}
	return args(owner, "30000", head, tokens, "0", id, "", "1", "0", "ch", "PUBLISH", "0", "s:", "9", "", "9", "0", "9")
}

// join are the same for one that may join another, of which nine callers wait then.
func join(name, other string) []string { return with(come(name), 14, entries[other]) }

// try are the arguments of acquire.lua for a caller of a fair lock that does not wait, o, or only re-enters, r.
func try(how, owner string) []string {
	tokens, id := "", ""
	if how == "r" {
		tokens, id = "0", "a"
	}
	return args(owner, "30000", how, tokens, "0", id, "", "1", "0", "ch", "PUBLISH", "0", "s:")
}

// free are the arguments of release.lua; leave those for a caller that may stand in the line.
func free(owner string) []string { return args(owner, "ch", "PUBLISH", "0", "s:") }

func freeFenced(owner string) []string { return append(free(owner), "0", "1", "", "", "0", "0") }

func leave(name string) []string {
	head, _, owner := of(name)
	if name == "i1" {
		return append(free(owner), "1", "0", head, "", "0", "0", "", "", "0", "0", "0")
	}
	return append(free(owner), "0", "0", head, "", "0", "0")
}

// again are those of a release that enters a run of two callers at a place, the last of them the third of its session.
func again(name string, place int) []string {
	return append(free("me"), "0", "0", "", entries[name], "0", "2", strconv.Itoa(place), "3")
}

// freeOne are those for one hold by id, a.
func freeOne(owner string) []string {
	return append(free(owner), "1", "0", "", "", "0", "0", "", "", "0", "0", "1", "a")
}

// looks are the arguments of look.lua.
func looks(names ...string) []string {
	a := args("ch", "PUBLISH", "0", "s:", "0")
	for _, name := range names {
		a = append(a, entries[name])
	}
	return a
}

// force are the arguments of force_unlock.lua.
func force(owners ...string) []string {
	return append(args("ch", "PUBLISH", "s:", "0", "0", "0"), owners...)
}

// with returns arguments of which one is another.
func with(a []string, i int, value string) []string {
	a = slices.Clone(a)
	a[i] = value
	return a
}

// timeless wraps scripts so that what counts time reads "~" in their replies: Redis's clock, a position that
// was taken by it, what is left of a TTL. A TTL of forever stays one.
func timeless() map[string]string {
	all := map[string]string{}
	for name, src := range mutex.ScriptSources() {
		all[name] = "local function script()\n" + src + `
end
local reply = script()
if type(reply) == 'table' then
  for i, v in ipairs(reply) do
    if type(v) == 'number' and v > 1000 and (v < 8e9 or v > 1e10) then reply[i] = '~' end
  end
end
return reply`
	}
	return all
}

// allCases are those of all files.
func allCases() []locktest.ScriptCase {
	return slices.Concat(scriptCases, fairAcquires, fairTries, fairReleases, fairLooks)
}
