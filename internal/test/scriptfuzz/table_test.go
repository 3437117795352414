package scriptfuzz

import (
	"slices"
	"strconv"
)

// A call is one way to call a script. Its keys and arguments are given by kind, in the order of the script's header.
type call struct {
	as   func(*world) // of which owners, if not of any
	keys []keys
	args []args
}

type (
	keys func(*world) []key
	args func(*world) []string
)

// A scriptRow is a script of the table.
type scriptRow struct {
	path  string // from the root of the repository
	calls []call
	reply shape
	errs  []string // what its errors may begin with, besides WRONGTYPE
	// grants is the role of the key that lives for the lease, the second argument, when the reply begins with 1.
	grants *role
	// purges: what has expired comes back also if the script refuses then.
	purges bool
	// vain is of the error with which the script takes the entry of the caller out of the line again, and lets the next
	// one in.
	vain string
	// leaves: a hash that is no lock is left as it is.
	leaves bool
}

// table is all scripts.
var table = slices.Concat(mutexScripts, sideScripts, semaphoreScripts, counterScripts, otherScripts)

// Keys.
func named(name string, r *role) keys { return func(*world) []key { return []key{{name, r}} } }

func when(is func(*world) bool, k keys) keys {
	return func(w *world) []key {
		if !is(w) {
			return nil
		}
		return k(w)
	}
}

func hasID(w *world) bool     { return w.id != "" }
func hasTokens(w *world) bool { return w.tokens > 0 || w.ends != "" }
func hasIDs(w *world) bool    { return w.byIDs }

var (
	lock     = named("x", lockRole)
	line     = named("relock_line1:{x}", mutexLine)
	ofFair   = named("relock_line1:{x}", fairLine)
	ids      = named("relock_holds:{x}", idsRole)
	token    = named("redisson_lock_token:{x}", tokenRole)
	mark     = named("relock_forced:{x}:r", markRole)
	ids2     = when(hasID, ids)
	token2   = when(hasTokens, token)
	released = when(hasIDs, ids)
)

// Arguments.
func is(values ...string) args { return func(*world) []string { return values } }

func any1(values ...string) args { return func(w *world) []string { return []string{w.of(values...)} } }

func one(fn func(*world) string) args { return func(w *world) []string { return []string{fn(w)} } }

var (
	owner     = one(func(w *world) string { return w.owner })
	lease     = one((*world).lease)
	tokens    = one(func(w *world) string { return strconv.Itoa(w.tokens) })
	held      = one(func(w *world) string { return strconv.Itoa(w.held) })
	id        = one(func(w *world) string { return w.id })
	ends      = one(func(w *world) string { return w.ends })
	flag      = one(func(w *world) string { return w.flag() })
	publish   = is("PUBLISH")
	counts    = any1("0", "1")
	ch        = any1(heard, "quiet") // the channel of the lock
	ofSession = is(prefix)
	callers   = any1("0", "1", "3")
	session   = one(func(w *world) string { return w.session })
	private   = one(func(w *world) string { return map[bool]string{true: "0", false: "1"}[w.named] })
	keep      = any1("0", "1000", "90000")
)

// head is what stands in front of the owner in its entry.
func head(line string) args { return one(func(w *world) string { return w.own(line) }) }

// orNone is a head, or none.
func orNone(line string) args {
	return one(func(w *world) string {
		if w.once(2) {
			return w.own(line)
		}
		return ""
	})
}

// anew is an entry that the session enters anew, or none.
func anew(line string) args {
	return one(func(w *world) string {
		if w.once(2) {
			return w.head(line, w.session, false, 0) + w.session + ":77"
		}
		return ""
	})
}

// counted are some values behind the number of them.
func counted(values ...string) args {
	return func(w *world) []string {
		some := w.some(values...)
		return append([]string{strconv.Itoa(len(some))}, some...)
	}
}

// some are some values without their number.
func some(values ...string) args { return func(w *world) []string { return w.some(values...) } }

// optional are all of these arguments, or none.
func optional(all ...args) args {
	return func(w *world) []string {
		if w.once(2) {
			return nil
		}
		return join(w, all)
	}
}

func join(w *world, all []args) (values []string) {
	for _, a := range all {
		values = append(values, a(w)...)
	}
	return values
}

func k(all ...keys) []keys { return all }
func a(all ...args) []args { return all }
