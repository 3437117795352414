package kind

import (
	"time"

	"relock/internal/waiting"
)

// What an attempt says instead of what its entry begins with if it does not wait in the line of a fair lock.
const (
	InTurn  = "o" // it lets those in who wait, and has the lock only if there are none
	Reenter = "r" // callers of its session wait: it has the lock only if its owner has it already
)

// A Line is what a command says of the line of its lock.
type Line struct {
	// Named: release: the kind has Lines, so the command is to name the line, and its script looks at it. A primitive may
	// ignore Named, and name the line in each release: that costs one key where the kind has no Lines, as that of quorum.
	Named bool
	// Others: release: callers of this session may wait; false: none is known to, but callers of other sessions may wait.
	Others  bool
	Head    string // what the own entry begins with, the owner being the rest; "": there is none
	Enter   string // release: the entry by which the session enters the line again; "": none
	Again   bool   // acquire: the own entry may stand in the line
	Listens bool   // the session may listen to the lock's channel
	Yields  bool   // release: what comes free is left to those who do not stand in the line
	Waiting int    // how many callers wait; 0: as was said before
	Tells   bool   // acquire, of an entry: who is inside is to be told; without an entry it always is, if that is known
	// Session: acquire, of a caller that waits outside of the line. Its session polls, and comes again after ComesIn: for
	// Window before that the lock is to be left to it.
	Session         string
	ComesIn, Window time.Duration
	Waited          time.Duration // acquire: for how long the caller waits
}

// Op is one command of a claim.
type Op struct {
	Owner string
	N     int    // permits
	ID    string // acquire: of the hold; "" for the first hold of a private owner. Extend: of the command

	Known

	// Private: the owner was made for this claim, so that whatever Redis counts under it is
	// the claim's.
	Private bool
	// All: release: the owner is private, and all that it has on this side ends.
	All bool
	// ByIDs: the claim may have made the key of the ids. Without it a mutex names the
	// lock's own key only.
	ByIDs bool

	// FewestKeys: renew, extend: no key is named that can be left out, beside what ByIDs says of an
	// extension. While a slot of a Cluster moves, one that is missing has Redis refuse the call.
	FewestKeys bool

	Request
	Ending
	Move
	QueuePlace
	Line Line

	Run   *waiting.RunAttempt // acquire, of a fair lock: for which run; release: that of Line.Enter
	Lease time.Duration       // acquire, extend: the least time to live; Unleased: see Memory. Leave: the time to live
}

// A Request is what an acquisition asks for beside the lock.
type Request struct {
	First string // of a nested hold where the first one Writes: the id that this gets, if it has none
	Limit *Limit // of permits of a semaphore
	// Tokens is how many fencing tokens to reserve (Fenced); 0: the claim has one. More than 1 only
	// where HandsOver, or for a run of the fair queue.
	Tokens int
}

// An Ending is which holds a release ends, and what becomes of the others.
type Ending struct {
	Ends []string      // the ids of the holds that end; needless with All, but for marks
	Keep time.Duration // what the holds that stay deserve; 0: leave the TTL
}

// Known are the holds of an owner by this session's knowledge.
type Known struct {
	// Acquire: those that Redis must know already. Release: those that stay. Extend, renew: those
	// there are. Other: the same of the other side.
	Held, Other int
	// The ids of those holds, of a named owner: all of them. Release: only with Keep, and
	// not with All. Extend: IDs only, and those of named owners only.
	IDs, OtherIDs []string
}

// A QueuePlace says where the caller of an acquisition stands in its session's queue.
type QueuePlace struct {
	Wait bool // the caller is in front, and will wait if it is refused; not set for a fair lock, see Op.Run
	Next bool // Permits: also, another caller waits behind it
}

// Move is how an extension moves the end of a lock.
type Move struct {
	// Away: the end only moves away, since renewed holds need the lock too.
	Away bool
	// Void are the ids of earlier commands of this claim that were given up. If they arrive from
	// now on they change nothing.
	Void []string
}

// Memory is for how long the scripts of an Unleased primitive must remember the id of a
// request, counted from its last run. A request whose outcome is unknown is sent again only
// for so long; with the default client that is many connections later.
const Memory = time.Minute
