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

	// Traits are the ways in which kinds of lock differ for the machine.
	Traits() Traits

	// Part tells the sides of a lock apart that one tenure may hold together, as
	// the read and the write side of an RWMutex: 0 or 1.
	Part() int

	// Acquire is the script that gives op.Owner the hold with the id op.ID, or, if
	// that is empty, the first hold of an owner that nobody else knows. Its reply is
	//
	//	{1, holds, token, changed}  granted, for at least op.Lease
	//	{0, milliseconds, 0, 0}     refused; look again then (-1: unknown)
	//	{-1, 0, 0, 0}               what op.Holds and op.Other count is not held
	//	{-2, code, 0, 0}            never, however long one waits: see Refuser
	//
	// and its state the same when it runs twice. After a grant the next in the session's
	// line asks at once, unless the kind is Exclusive; see also Sized.
	Acquire(op *Op) Command

	// Release is the script that ends the holds with the ids op.Ends, or, if there
	// are none, the first hold of op.Owner. What is not there is no error: it may
	// have been refused. Its reply is {holds left, changed}; its state the same when
	// it runs twice.
	Release(op *Op) Command

	// Extend is the script that moves the end of op.Owner's holds to op.Lease from
	// now; closer only if those that Redis counts are the op.Holds that this session
	// has. Its reply is 1, 0 if none of those is held, or 2: see Command.Wider.
	Extend(op *Op) Command

	// Renew is the script that sees to it that many locks of this kind live for
	// at least one lease from now: ARGV[1] is the lease in ms (0 only asks),
	// followed for each lock by what RenewArgs returns; its reply has a 1 or 0
	// (lost) for each of those args. byID says that some of the holds have ids.
	Renew() *Script
	RenewArgs(owner string, holds int, byID bool) (keys, args []string)
}

// Traits are the ways in which kinds of lock differ for the machine. The zero value is a
// lock that many owners may hold together and re-enter, as the read side of an RWMutex.
type Traits struct {
	// Exclusive: a grant to one owner excludes every other. While an owner of this
	// session holds such a lock, the others of the session do not even ask.
	Exclusive bool

	// Anonymous: every acquisition is an owner of its own, whatever owner its
	// context carries, and the section keeps the owner that was there. So a permit
	// of a semaphore does not hide the lock that was taken around it.
	Anonymous bool

	// Fleeting: a grant leaves nothing to renew or to release by an owner, and Lock
	// returns no hold: a counting semaphore. Requests always carry an id. Implies
	// Anonymous.
	Fleeting bool

	// ByID: every hold has an id, also the first one of an owner that nobody else knows.
	ByID bool

	// HandsOver: the primitive is a [Transferer], and its lock may pass from one owner to
	// another of the session in memory. Implies Exclusive.
	HandsOver bool

	// Shares: many owners of a session may share one hold in Redis, which their session
	// takes in the name of an owner of its own. Their own owners Redis does not know; the
	// other side's Never(1) is what they get who want that too.
	Shares bool

	// Orderly: TryLock does not overtake those of the session that wait. Else a large
	// request could be starved by small ones.
	Orderly bool

	// Marks: an attempt with Op.Wait that is refused leaves something in Redis for the
	// one who waits. His Release with the id of the attempt takes that away too, and is
	// sent whenever he leaves without the lock. Needs ids.
	Marks bool
}

// Refuser is a Primitive whose acquire script may refuse for good.
type Refuser interface {
	// Never returns the error for a reply of {-2, code, 0, 0}.
	Never(code int64) error
}

// never returns the error of a grant that was refused for good.
func (g grant) never(p Primitive) error {
	if r, ok := p.(Refuser); ok {
		return r.Never(g.value)
	}
	return errShape
}

// Sized is a Primitive of which one may ask for more or less at a time, as permits. The
// reply of its acquire script has two elements more, and is
//
//	{1, milliseconds, 0, changed, free, limit}  granted
//	{0, milliseconds, 0, 0, free, limit}        refused
//
// where free is what is left for others, and limit the most that one may ask for
// (-1: no limit). After a grant the next in the session's line asks at once only if free
// is enough for him; else he waits for a message, or until the milliseconds are over.
// Those behind whoever asked who want more than the limit need not ask at all: their
// error is Refuser.Never(limit).
type Sized interface {
	Primitive
	Size() int64
}

// Op is one operation of an owner on a lock.
type Op struct {
	Owner string
	ID    string   // acquire: of the hold; "" for the first of an owner that is new
	Ends  []string // release: the ids of the holds that end; none: the first hold

	// Holds of the owner by this session's knowledge: acquire: those it has already;
	// release: those it keeps; extend: those that may end sooner. Other: the same of the
	// other side.
	Holds, Other int
	// The ids that Redis knows those by: all, but for the first hold if that has none.
	// Release: only with Keep. Extend: also if none may end sooner.
	IDs, OtherIDs []string

	// Also: release of the first hold: other owners by which Redis may know it instead,
	// since it was handed over from them in memory. At most one of all stands in the hash.
	Also []string

	Wait  bool          // acquire: whoever asks will wait if he is refused
	Lease time.Duration // acquire, extend: the least time to live; Fleeting: see Memory
	Keep  time.Duration // release: what the holds that stay deserve; 0: leave the TTL
	Draw  bool          // acquire: the tenure has no fencing token yet
	ByID  bool          // extend: some of the holds have ids
}

// grant is the decoded reply of an acquire script.
type grant struct {
	status  int64
	value   int64 // holds, or milliseconds to wait (Sized: always those)
	token   int64
	changed bool
	sized   bool          // free and limit were told
	free    int64         // what is left for others
	limit   int64         // the most that one may ask for; below 0: anything
	sent    time.Duration // when the attempt that was answered was sent
	claim   time.Duration // Queuer: not confirmed yet, Redis keeps it for so long
}

// The statuses of a grant, as the scripts return them.
const (
	granted  = 1
	heldElse = 0
	lost     = -1
	forGood  = -2
)
