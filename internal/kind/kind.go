// Package kind is the contract between the machine and the kinds of locks: what a kind tells
// package engine, the commands that it is asked for, and the replies that its scripts give. A
// lock of a kind is a [Primitive]; docs/architecture.md says how to add one.
//
// The smallest kind that excludes is Kind{Family, Exclusive, HandsOver}, and its primitive a [Leased] of four scripts.
// Without Lines each release wakes all sessions that wait, by the lock's channel, and they ask in no order. With Lines
// the session that comes next has the lock, or is called; a lock that is no hash of owners has its entries called: see
// [Liner] and the head of admit.lua.
package kind

import "relock/internal/waiting"

// Kind is how one kind of lock differs for the machine. The zero value is a lock that many
// claims may hold together and whose owners may re-enter it, as the read side of an RWMutex.
// Values are package variables of the primitives and never change.
type Kind struct {
	// Family names what excludes each other inside a session: handles of one family and one
	// key have one queue. Both sides of an RWMutex are one family, a plain and a Fenced
	// Mutex too.
	Family string

	// Name is what hooks are told; default Family.
	Name string

	// Side tells the sides of a lock apart that one owner may hold together, as the read
	// side (0) and the write side (1) of an RWMutex. It is 0 or 1: an owner has at most two sides.
	Side int

	// Exclusive: a grant to one claim excludes every other. While a claim of this session
	// holds such a lock, the session's waiters do not even ask, but for named owners, who may
	// be inside elsewhere. A TryLock does not wait, so it asks.
	Exclusive bool

	// Fenced: a section has a fencing token, and a claim reserves several.
	Fenced bool

	// HandsOver: the claim may be handed over in memory to the front of the session's queue. Runs of the fair
	// queue are passed on without it, within the run.
	HandsOver bool

	// Shares: sections of several callers may be open on one claim at a time.
	Shares bool

	// Lines: waiting sessions stand in a line in Redis, each with one entry for the caller in front. The
	// primitive is a [Liner].
	Lines bool

	// Sort is that of the line. The kinds of one Sort share the layout of the lock's key and of its line: for an
	// entry that the session does not know, it runs the Dismiss of the first primitive of that Sort for which it
	// has made a handle. So a lock whose hash differs needs a Sort of its own, and must not leave the zero value, which
	// is that of mutexes. That is:
	//
	//   - a constant in waiting/entry.go, a case of Message.Sort, and letters that its entries begin with. Those come
	//     from Want.Head, or from the Entry of the Liner, as the writers' and readers' of package rwlock do;
	//   - the letters in entry.lua: in its header and in is_entry; in each pattern there and in line.lua that says more of
	//     an entry (fair, called, given, a slow taker, its digits); and in the give of its own scripts;
	//   - the letters in rlock/lua/waiters.lua and cmd/relock/line.go, and below internal/test in locktest/state.go,
	//     explore/hash.go and scriptfuzz/world_test.go.
	//
	// Letters of named owners also belong into the Named of waiting.Parse.
	Sort waiting.Sort

	// Fair: all callers stand in the line: a session has an entry there for each run of them. Implies Lines, and that
	// the primitive is a [FairLiner].
	Fair bool

	// Permits: each acquisition is for a number of permits, cannot be re-entered, and
	// leaves the owner of the context as it is. The replies of the acquire script have two
	// elements more, see [Primitive].
	Permits bool

	// Unleased: a grant leaves nothing to renew or to release, and the caller gets no hold:
	// a counting semaphore. Op.ID is that of a request, which the scripts remember for at
	// least [Memory]: see package idgen. Implies Permits.
	Unleased bool

	// Opens: a grant takes nothing, so it lets in all callers of the session that waited when it was asked for: a latch.
	// Implies Unleased.
	Opens bool

	// Writes: readers wait for the lock too. What a release says on the lock's channel is for them first; and a writer
	// that waits without an entry, as one that polls, leaves a mark in Redis, which its Release takes away. The first
	// hold of a private owner gets an id as soon as a nested one is taken, since it may be ended before a read hold.
	Writes bool
}

// HookName is what hooks are told.
func (k *Kind) HookName() string {
	if k.Name != "" {
		return k.Name
	}
	return k.Family
}
