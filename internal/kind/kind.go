// Package kind is the contract between the machine and the kinds of locks: what a kind tells
// package engine, the commands that it is asked for, and the replies that its scripts give. A
// lock of a kind is a [Primitive]; docs/architecture.md says how to add one.
package kind

import (
	"time"

	"relock/internal/keyname"
	"relock/internal/script"
	"relock/internal/waiting"
)

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
	// side (0) and the write side (1) of an RWMutex.
	Side int

	// Exclusive: a grant to one claim excludes every other. While a claim of this session
	// holds such a lock, the session's waiters do not even ask, but for named owners, who may
	// be inside elsewhere. A TryLock does not wait, so it asks.
	Exclusive bool

	// Fenced: a section has a fencing token, and a claim reserves several.
	Fenced bool

	// ByID: the first hold of a private owner gets an id too, when its owner takes another hold: it may be ended before
	// one of the other side.
	ByID bool

	// HandsOver: the claim may be handed over in memory to the front of the session's queue. Runs of the fair
	// queue are passed on without it, within the run.
	HandsOver bool

	// Shares: sections of several callers may be open on one claim at a time.
	Shares bool

	// Lines: waiting sessions stand in a line in Redis, each with one entry for the caller in front. The
	// primitive is a [Liner]. Sort is that of the line.
	Lines bool
	Sort  waiting.Sort

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

	// Passes: a grant takes nothing from others, as to pass an open latch, so that a TryLock asks
	// although others wait.
	Passes bool

	// Writes: readers wait for the lock too. What a release says on the lock's channel is for them first; and a writer
	// that waits without an entry, as one that polls, leaves a mark in Redis, which its Release takes away.
	Writes bool
}

// HookName is what hooks are told.
func (k *Kind) HookName() string {
	if k.Name != "" {
		return k.Name
	}
	return k.Family
}

// Primitive is one side of a lock under one name: all that the machine needs to be told in
// order to run it. Values are shared by goroutines and must not change.
//
// The reply of the acquire script is
//
//	{1, holds, token, changed}  granted, for at least Op.Lease; the highest token reserved
//	{0, milliseconds, 0, 0}     refused; ask again then (-1: unknown). A fifth element, a text, is who is inside;
//	                            a sixth, for how many ms, if that is not the second
//	{-1, 0, 0, 0}               what Op.Held and Op.Other count is not held
//	{-2, code, 0, 0}            never, however long one waits: see [Refuser]
//
// Run twice, it gives the same reply but for `changed`, and leaves the same state. The first may be
// just 1 for {1, 1, 0, 1}. Where Kind.Permits is set it is
//
//	{1, milliseconds, 0, changed, free, limit}  granted
//	free                                        granted: with Op.Next no others are taken, else no time is told
//	-milliseconds                               granted, and none is free
//	{0, milliseconds, 0, 0, free, limit}        refused
//
// where free is what is left for others, and limit the most that one request may be for
// (-1: no limit): the next of the session's queue asks at once only if free is enough for
// it or Op.Next was not set, else it waits for a message, or until the milliseconds are over.
//
// The reply of the release script is {holds left, changed, receivers}, or receivers alone for
// {0, 1, receivers}: receivers is how many connections heard the message that the lock is free, -1 if
// that is not known or nothing was published. What is not there is no error: it may have been refused.
type Primitive interface {
	Kind() *Kind
	Names() *keyname.Names

	// Channel is where a release is published.
	Channel() string

	Acquire(op *Op) script.Command
	Release(op *Op) script.Command
}

// Leased is a Primitive whose holds have a lease: every kind that is not Unleased.
type Leased interface {
	Primitive

	// Extend is the script that moves the end of Op.Owner's holds to Op.Lease from now. Without
	// Op.Away it moves closer too: for a private owner always, for a named one if Op.IDs are
	// all the holds that Redis counts. Its reply is 1, or 0 if none of those is held.
	//
	// An extension that arrives late must not bring the end of a lock closer that is trusted
	// for longer by then. So Op.ID names it, and the script remembers those of Op.Void for as
	// long as the lock lives: they change nothing any more. A release with Op.Keep is named
	// by the first of Op.Ends. Without an ID the script asks for no helper key that the claim
	// has not made; then Op.Away is set.
	Extend(op *Op) script.Command

	// Renew is one claim's part of a call of the script that sees to it that many claims of this
	// kind live for at least one lease from now: ARGV[1] is the lease in ms (0 only asks), followed
	// by the Args of each claim. Its reply has a 1, 0 (lost) or -1 (Redis does not allow the
	// question) for each of those.
	Renew(op *Op) script.Command
}

// Leaver is a Primitive whose lock can be left standing when its last hold is unlocked.
type Leaver interface {
	Leased

	// Leave is the script that has the lock stand for Op.Lease from now, as if Op.Owner were still inside, though nobody
	// renews it, and tells those who wait. Of a named owner Op.Ends are the ids of its holds. Its reply is that of the
	// release script. It need not be run for a hold that was lost.
	Leave(op *Op) script.Command
}

// Blocker is a Primitive whose lock is a hash of owners, all of whom must leave before a caller
// whom it keeps out can enter. Waits for others are no part of a deadlock that is found.
type Blocker interface {
	// Blockers returns the owners that keep out a caller who waits, by the fields of the lock.
	Blockers(fields map[string]string) []string
}

// Refuser is a Primitive whose acquire script may refuse for good.
type Refuser interface {
	// Never returns the error for a reply of {-2, code, 0, 0}.
	Never(code int64) error
}

// Liner is a Primitive whose waiting sessions stand in a line in Redis. Its scripts let the first of them in:
// they give it the lock, or call it, and tell its session on the session's own channel; package waiting has
// the messages, and line.lua of package script the line.
//
// The reply of its acquire script to a caller that has entered the line is {0, milliseconds, Redis's time in
// ms, position}; the milliseconds are what is left of the lease if the entry is the first of the line, else -1.
// A position of 0 says that a fair run has joined the entry Op.Position.Join. The reply of its release
// script is, where others stand in the line, {0, 1, receivers, position, Redis's time in ms}, where the
// position is that of Op.Line.Enter, 0 if it has not entered.
type Liner interface {
	Primitive

	// Entry is how an entry of this lock begins, by how one of any lock does. What is sent has it as it is: an
	// entry that a release enters may be of another Primitive of the name.
	Entry(head string) string

	// Dismiss is the script call that takes an entry of the session out of the line of any lock of this
	// sort, by what the entry begins with and its owner; given: and gives back what it was given.
	Dismiss(n keyname.Names, head, owner string, given bool) script.Command
}

// FairLiner is a Liner whose callers all stand in the line.
type FairLiner interface {
	Liner

	// Look is the script call by which a session is heard of, which keeps its fair entries in the line, and
	// lets the first one in if the lock is free. Its reply has a number for each entry: 0, ask now (it is not
	// in the line, or may have the lock), or the milliseconds after which to ask at the latest, -1 if unknown;
	// and at the end Redis's time in ms.
	Look(entries []string) script.Command
}

// What an attempt says instead of what its entry begins with if it does not wait in the line of a fair lock.
const (
	InTurn  = "o" // it lets those in who wait, and has the lock only if there are none
	Reenter = "r" // callers of its session wait: it has the lock only if its owner has it already
)

// A Line is what a command says of the line of its lock.
type Line struct {
	Named   bool   // release: the line is looked at
	Head    string // what the own entry begins with, the owner being the rest; "": there is none
	Enter   string // release: the entry by which the session enters the line again; "": none
	Again   bool   // acquire: the own entry may stand in the line
	Listens bool   // the session may listen to the lock's channel
	Others  bool   // release: others are known to wait, or did a moment ago
	Yields  bool   // release: what comes free is left to those who do not stand in the line
	Waiting int    // how many callers wait; 0: as was said before
	Tells   bool   // acquire, of an entry: who is inside is to be told; without an entry it always is, if that is known
	// Session: acquire, of a caller that waits outside of the line. Its session polls, and comes again after ComesIn: for
	// Window before that the lock is to be left to it.
	Session         string
	ComesIn, Window time.Duration
	Waited          time.Duration // acquire: for how long the caller waits
}

// A Position is what an attempt for a fair lock says of a run.
type Position = waiting.Position

// Op is one command of a claim.
type Op struct {
	Owner string
	N     int    // permits
	ID    string // acquire: of the hold; "" for the first hold of a private owner. Extend: of the command

	Known

	// Private: the owner was made for this claim, so that whatever Redis counts under it is
	// the claim's.
	Private bool
	// All: the owner is private, and the command is for whatever it has on this side.
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

	Position *Position     // acquire, of a fair lock: where the run stands if it is refused; release: that of Line.Enter
	Lease    time.Duration // acquire, extend: the least time to live; Unleased: see Memory. Leave: the time to live
}

// A Request is what an acquisition asks for beside the lock.
type Request struct {
	First string // of a nested hold where the kind of the first is ByID: the id that the first one gets, if it has none
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
	Wait bool // the caller is in front, and will wait if it is refused; not set for a fair lock, see Position
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
