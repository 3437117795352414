// Package rlock is a reentrant lock on Redis for services of several processes. Its keys,
// values and messages are those of Redisson's RLock and RFencedLock.
//
// # What is guaranteed
//
// A lock has one owner at a time, as long as Redis keeps its data. The session stops trusting
// a hold 5 % of the lease (at most 1 s) before Redis expires it, counted on the monotonic
// clock from when the last successful command was sent. The section's context then ends with
// [ErrLost], whether or not the network works.
//
// Retries are idempotent: a script that is sent twice never acquires or releases twice. An
// acquisition whose outcome is unknown is released in the background. A release never touches
// the lock of a later owner.
//
// A waiter sleeps until a message announces the release, or until Config.PollFloor is over: a
// lost message costs no more. The goroutines of a session that wait for one lock form a
// queue, and the session sends one attempt at a time.
//
// # What is not
//
// Failover: Redis replicates asynchronously. A promoted replica may not know a lock that was
// just granted, and can grant it again. The first owner's section ends with ErrLost at its
// next renewal. Fencing tokens have the same limit. With Config.Replicas a lock counts only
// when replicas have acknowledged it.
//
// Pauses: code that does not run (garbage collection, a suspended machine) cannot notice that
// its context has ended. Protect what must never happen twice by a resource that checks a
// fencing token: see [Fenced] and [Hold.Token].
//
// Clocks: two owners may overlap if Redis's clock, which ends leases, runs more than 5 %
// faster than this process's monotonic clock. The time of day does not matter.
//
// Order between processes: after a release the fastest process gets the lock. Package
// fairlock keeps the order of arrival.
//
// # Owners and nested calls
//
// Warning: callers with the same owner are let in together. Goroutines with a section's context
// do not exclude each other from its lock; with a named owner they do not exclude each other
// from any lock: use [WithoutOwner]. Ten requests that name one X-Request-Id as their owner, as
// a proxy's retries do, are inside at once: name an id that nobody else can send.
//
// A lock belongs to an owner, which the section's context carries. A Lock on that context
// re-enters, in any function. Any other Lock is an outermost one. Its owner is private
// ("<session id>:<number>") unless [WithOwner] names it.
//
// # Deadlocks
//
// Locks that wait for each other inside of their sections would wait for ever. Such a cycle is
// found, also across sessions, and its youngest Lock ends with [ErrDeadlock]. A section is taken
// to last as long as a Lock on its context waits: a goroutine that the section does not wait for
// must lock on the context of [WithoutOwner].
//
// # Hand-over in memory
//
// When a section ends and a goroutine of the same session waits, Unlock passes the lock on
// without asking Redis. Nothing changes there: the session keeps the lock, under the same
// owner id and with the same lease. At least half of the trust of a full lease must be left,
// and renewal goes on. [Lease], WithOwner and a Config.HandOverLimit of -1 exclude hand-over.
//
// Hand-over goes on for a time slice of 10 ms, or 100 ms if no other session listens. Then
// Unlock releases the lock in Redis, and other sessions go first.
//
// An Unlock that hands over returns nil unless the session knows that the lock is lost. If it
// was lost unnoticed, the section that is open by then ends with ErrLost.
package rlock
