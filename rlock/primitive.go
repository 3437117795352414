package rlock

import "time"

// Primitive is one kind of lock under one name: all that the machine of this
// package (the local line, the wait loop, the holds, the watchdog) needs to be told
// in order to run it. [Mutex] is the first; the variants have their own. Values are
// shared by goroutines and must not change.
type Primitive interface {
	// Name is the lock's name as the caller gave it, for errors and hooks.
	Name() string

	// Key is the key of the lock. What one owner holds under one key is one
	// tenure, whatever kinds of lock it took there.
	Key() string

	// Channel is where a release is published, and what a local line stands in
	// front of: all goroutines of a session that wait for this channel queue up.
	Channel() string

	// Exclusive says that a grant to one owner excludes every other. If one of
	// this session's owners is granted such a lock, any other that still
	// believes to hold it has lost it.
	Exclusive() bool

	// Part tells the sides of a lock apart that one tenure may hold together, as
	// the read and the write side of an RWMutex: 0 or 1.
	Part() int

	// Acquire is the script that brings op.Owner from op.Known to op.Want holds,
	// or adds one under op.Request when that is set. Its reply is
	//
	//	{1, holds, token, changed}  granted, for at least op.Lease
	//	{0, milliseconds, 0, 0}     refused; look again then (-1: unknown)
	//	{-1, 0, 0, 0}               op.Known was positive, but nothing is held
	//
	// and its state the same when it runs twice.
	Acquire(op *Op) Command

	// Release is the script that brings op.Owner from op.Known down to op.Want
	// holds, or takes op.Known-op.Want away under op.Request. Its reply is {holds
	// left, changed}; its state the same when it runs twice.
	Release(op *Op) Command

	// Undo is the script that takes back an Acquire with op.Request whose outcome
	// is unknown. Only owners that are shared between sessions need it.
	Undo(op *Op) Command

	// Extend is the script that moves the end of op.Owner's hold to op.Lease from
	// now, closer only if op.Shorten. Its reply is 1, or 0 if nothing is held.
	Extend(op *Op) Command

	// Renew is the script that sees to it that many locks of this kind live for
	// at least one lease from now: ARGV[1] is the lease in ms (0 only asks),
	// followed for each lock by what RenewArgs returns; its reply has a 1 or 0
	// (lost) for each of them.
	Renew() *Script
	RenewArgs(owner string, holds int) (keys, args []string)
}

// Op is one operation of an owner on a lock.
type Op struct {
	Owner string
	Known int // holds that Redis is believed to count for this session's part of the owner
	Want  int // holds that it shall count

	// Request identifies the operation of an owner that several sessions may
	// share, and Remember says how long its outcome must be remembered. Empty for
	// owners of this session alone.
	Request  string
	Remember time.Duration

	Lease time.Duration // acquire: the least time to live
	Keep  time.Duration // release: what the holds that stay deserve; 0: leave the TTL
	Draw  bool          // acquire: the tenure has no fencing token yet

	Shorten bool // extend: the end may also move closer
}

// grant is the decoded reply of an acquire script.
type grant struct {
	status  int64
	value   int64 // holds, or milliseconds to wait
	token   int64
	changed bool
	sent    time.Duration // when the attempt that was answered was sent
}

// The statuses of a grant, as the scripts return them.
const (
	granted  = 1
	heldElse = 0
	lost     = -1
)
