package kind

import (
	"relock/internal/keyname"
	"relock/internal/script"
)

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

	// Acquire returns the call of the acquire script for op. Op.ID is empty for the first hold of a private owner: a
	// script that keeps the ids of holds must count that one too.
	//
	// Command.Fewer, and that of other commands, need not be set. Without it, a command with several keys is not
	// executed before their slot has moved, and is refused where the ACL denies this user one of them.
	//
	// A primitive of a kind with Lines may ignore Line.Session, ComesIn and Window. Then a caller that polls has the
	// lock only if that is free when it asks: releases give the lock to those who stand in the line, and
	// leave no round to the caller.
	Acquire(op *Op) script.Command

	// Release returns the call of the release script for op.
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
	// by the Args of each claim; its KEYS are the Keys of each claim, in the same order. Its reply has a 1, 0 (lost)
	// or -1 (Redis does not allow the question) for each of those Args. So a primitive with more than one key or
	// arg for a claim has an arg say how many belong to it.
	Renew(op *Op) script.Command
}

// Leaver is a Primitive whose lock can be left standing when its last hold is unlocked. Only the option AtLeast needs
// it: without it, a Lock with AtLeast is refused with api.ErrArgument.
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
// A position of 0 says that a fair run has joined the entry Op.Run.Join. Behind these four stand, if Line.Tells
// asks for them, the text and the milliseconds of [Primitive].
//
// The reply of its release script is, where others stand in the line, {0, 1, receivers, position, Redis's time in
// ms}, where the position is that of Op.Line.Enter, 0 if it has not entered. A position of -1 says that
// there may be more entries than one run looks at, which are 16: the session sends the command again until the position is
// another one. {0, 0, -1, -1, 0} says the same where the owner held nothing.
type Liner interface {
	Primitive

	// Entry is how an entry of this lock begins, by how one of any lock does. What it has returned it leaves as it
	// is. Line.Enter has been through it, since an entry that a release enters may be of another Primitive of the
	// name; Line.Head may not have been: a primitive whose Entry changes a head calls it for that too.
	Entry(head string) string

	// Dismiss is the script call that takes an entry of the session out of the line of any lock of this
	// Sort, by what the entry begins with and its owner. given: the owner was given the lock, and the call gives back
	// what it has. Without given, it must leave the owner alone, which may have got the lock meanwhile: it takes the
	// entry out, and ends no hold.
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
