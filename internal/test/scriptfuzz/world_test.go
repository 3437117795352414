package scriptfuzz

import (
	"fmt"
	"strconv"
	"strings"

	"relock/internal/idgen"
)

// A world is what the arguments of a call and the states of its keys are made of: they speak of the same owners,
// sessions and ids, or a script would have nothing to do.
type world struct {
	draw
	ms      int64 // Redis's time
	session string
	owner   string // private: "<session>:<number>"; or named
	named   bool
	id      string // of its hold; "" for the first of a private owner
	tokens  int    // fencing tokens that it wants
	ends    string // for how many ms their key outlives the lock; "": it has no end
	held    int    // how many holds its session has of it
	byIDs   bool   // a release names the ids
	lined   bool   // a command names the line
	permitN int    // how many permits it wants
	life    string // for how many ms a session counts as alive, of its entries
	tidy    bool   // what stands at the keys fits together as a rule: without that few scripts come to their ends
}

const (
	someID   = "0123456789abcdef0123456789abcdef"
	otherID  = "fedcba9876543210fedcba9876543210"
	prefix   = "relock_session:"  // of the channels of sessions
	given    = "1250"             // for how many ms an entry is given a lock
	readersN = ":rwlock_timeout:" // in the names of readers' timeout keys
)

var (
	sessions = []string{"S1", "S2", "a:b"}
	names    = []string{"ann", "bob:7"}
)

// newWorld draws what the command is about.
func newWorld(data []byte, ms int64) *world {
	w := &world{draw: draw{data}, ms: ms}
	w.tidy = !w.once(3)
	w.session, w.life = w.of(sessions...), w.of("0001000", "0012500", "0005000")
	w.owner = w.session + ":" + w.of("1", "2", "30", "07")
	if w.once(3) {
		w.named, w.owner = true, w.of(names...)
	}
	if w.named || w.once(3) {
		w.id = w.of(someID, otherID)
	}
	if w.once(3) {
		w.tokens = 1 + w.n(3)
	}
	if w.once(4) {
		w.ends = "60000"
	}
	if w.once(3) {
		w.held = 1 + w.n(2)
	}
	w.byIDs = w.id != "" || w.once(3)
	w.lined = !w.once(3)
	w.permitN = 1 + w.n(3)
	return w
}

// bare makes it the first hold of a private owner without tokens, of which a command says least.
func (w *world) bare() {
	if w.named {
		w.owner = w.session + ":1"
	}
	w.named, w.id, w.tokens, w.ends, w.held, w.byIDs = false, "", 0, "", 0, false
}

// private takes a name away.
func (w *world) private() {
	if w.named {
		w.named, w.owner = false, w.session+":1"
	}
}

// anOwner returns this owner or another one.
func (w *world) anOwner() string {
	switch w.n(4) {
	case 1:
		return w.of(names...)
	case 2:
		return w.of(sessions...) + ":" + w.of("1", "2", "30")
	default:
		return w.owner
	}
}

// The letters of entries, by the kind of the line: those of private owners, then of named ones.
var letters = map[string][2]string{"plain": {"gza", "n"}, "fair": {"fhde", "i"}, "permits": {"PQC", ""}, "counters": {"C", ""}, "writers": {"VUW", "N"}, "readers": {"R", "S"}}

// head is what stands in front of an owner in an entry of a line.
func (w *world) head(line, session string, named bool, n int) string {
	all := letters[line]
	letter, rest := w.of(strings.Split(all[0], "")...), ""
	if named && all[1] != "" {
		letter, rest = all[1], session+w.of(someID, otherID)
	}
	if letter == "f" && n > 0 {
		n = 999
	}
	if letter == "C" {
		return fmt.Sprintf("C%05d00%s%05d", n, w.life, len(session))
	}
	return fmt.Sprintf("%s%03d%04s%s%05d%s", letter, n, given, w.life, len(session), rest)
}

// entry is one of any owner.
func (w *world) entry(line string) string {
	named, session := w.once(4) && letters[line][1] != "", w.of(sessions...)
	owner := session + ":" + w.of("1", "2", "30")
	if named {
		owner = w.of(names...)
	}
	return w.head(line, session, named, w.n(4)) + owner
}

// own is the head of this owner's entry.
func (w *world) own(line string) string {
	n := w.tokens
	if line == "permits" || line == "counters" {
		n = w.permitN
	}
	if line == "writers" || line == "readers" {
		n = 0
	}
	return w.head(line, w.session, w.named, n)
}

// permits are the ids of a request's permits.
func (w *world) permits(owner string, n int) []string { return idgen.AppendPermits(nil, owner, n) }

// field is the owner in a field of a lock: this one, if all fits together mostly.
func (w *world) field() string {
	if w.tidy && !w.once(3) {
		return w.owner
	}
	return w.anOwner()
}

// later is a time in ms that mostly has not come yet.
func (w *world) later() int64 {
	if w.tidy && !w.once(5) {
		return w.ms + 60_000
	}
	return w.near()
}

// near is a time in ms about now.
func (w *world) near() int64 {
	return w.ms + []int64{60_000, 0, 1, 4, -1, -4, -1200, -60_000, 1200, 600_000}[w.n(10)]
}

// ttl is what is left of a key, in ms: never so little that it ends during a test.
func (w *world) ttl() string { return w.of("60000", "20000", "600000") }

// lease is any that a caller may want.
func (w *world) lease() string { return w.of("30000", "1250", "1", "100000") }

func itoa[T int | int64](n T) string { return strconv.FormatInt(int64(n), 10) }
