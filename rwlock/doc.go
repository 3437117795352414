// Package rwlock is a reentrant read-write lock on Redis for services that run in several
// processes. Its keys, values and messages are those of Redisson's RReadWriteLock.
//
// # What is guaranteed
//
//   - Readers share the lock; a writer is alone, as long as Redis keeps its data. What package
//     rlock guarantees of a hold is true of both sides.
//   - Each read hold in Redis has a lease of its own. A reader that crashed ends no other reader's
//     hold, and blocks a writer until its own lease ends, plus at most Config.PollFloor.
//   - Readers do not starve a writer, nor writers a reader. While a writer waits, new readers queue
//     behind it. The writer enters when the current readers have left. After it, readers that wait
//     enter together, before the next writer. That is a phase-fair lock (Brandenburg and Anderson,
//     2010), but for readers that do not come in time when they are called: they may wait for one
//     writer more. They have 5 ms, or two round trips as their session measured them when it began.
//   - Writers of all sessions enter in the order of arrival: they stand in a line in Redis, and a
//     release gives the lock to the first, however many wait. What package rlock says of granted
//     holds is true of it. One with an owner's name or a fixed lease is called instead; it is
//     passed over if it does not come in that time. Readers are always called.
//   - Goroutines of one session that wait for one lock, readers and writers alike, are served in
//     the order of arrival. Exceptions: a named owner ([rlock.WithOwner]) asks Redis once before
//     it queues, and readers may join others of their session that are inside.
//   - An owner does not wait for itself. Readers nest. A writer may take the read side too, and
//     may keep it when it unlocks the write side: that is a downgrade, which lets waiting readers
//     in. An owner that holds only the read side gets [ErrUpgrade] if it asks for the write side.
//
// # Readers of one session
//
// Readers of one session that come within 10 ms of each other share one read hold in Redis. The
// first reader asks for it, and the last one to leave releases it; the others cost no
// command. A reader joins within 10 ms of when the hold was asked for, and within 1 ms once a
// writer of the session waits. A later reader asks Redis for another hold, and so queues behind
// a waiting writer of any process.
//
// Each reader still has a section of its own, with its own context and its own end. Redis, State
// and Hold.Owner show the one owner that they have together. Named owners, readers with a fixed
// lease, and sessions with a Config.HandOverLimit of -1 do not share.
//
// Nested read holds are counted in memory, those with a fixed lease too, unless the outermost one has
// an owner's name or a lease. Hold.Abandon of such a nested hold leaves the lease that Redis has: one
// session lease, whatever its own is.
//
// The write side is handed over in memory between goroutines of a session, as package rlock
// describes. A downgraded hold is not, and no reader joins it.
//
// # What is not
//
//   - Failover, pauses and clocks: as in package rlock. There is no fencing token.
//   - Overlap without end: nested holds of one named owner pass waiting writers, because they
//     would deadlock otherwise. If such holds always overlap, no writer enters.
//   - Java: Redisson's readers ignore waiting writers, so enough of them can keep a writer out.
//     At each renewal of a reader Redisson sets the TTL of the whole lock to its own lease: set
//     Config.RedissonWatchdog to Java's lockWatchdogTimeout if that is not 30 s. A Java reader
//     that died is noticed when a writer asks or the last reader of this library leaves.
//   - Dead writers: a writer that dies while it waits keeps new readers out for two of its
//     Config.PollFloor and a second at most, and for as long as others are inside. Where a server
//     does not tell who listens it keeps them out of a free lock for a second.
//   - Fixed leases: if a write hold runs out before a read hold of the same owner is unlocked,
//     the lock stays a write lock until then, for this owner alone.
//   - Names: give a read-write lock a name of its own. On the name of another kind of lock it
//     waits until that is free; State and ForceUnlock answer WRONGTYPE there. An owner named
//     "mode", or with a name that ends in ":write", is [rlock.ErrArgument]: these are fields of
//     the lock.
//
// docs/operations.md lists the keys of a lock.
package rwlock
