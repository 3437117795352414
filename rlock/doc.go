// Package rlock is a reentrant lock on Redis for services of several processes. Its keys,
// values and messages are those of Redisson's RLock and RFencedLock. A section is what runs between
// Lock and Unlock. docs/guarantees.md explains it.
//
// # What is guaranteed
//
//   - A lock has one owner at a time while Redis keeps its data. The session stops trusting a hold
//     5 % of the lease (at most 1 s) before Redis expires it, counted on the monotonic clock from
//     when the last successful command was sent. The section's context then ends with [ErrLost],
//     also without a network.
//   - Retries are idempotent: a script that is sent twice never acquires or releases twice. An
//     acquisition whose outcome is unknown is released in the background. A release never touches
//     the lock of a later owner.
//   - A waiter sleeps until a message says that it has the lock, or that it may ask. It sleeps at most
//     for Config.PollFloor, so a lost message costs no more. However many callers wait, a session sends
//     one attempt at a time; named owners, TryLock and Retry ask besides.
//   - Sessions that wait stand in a line in Redis, in the order of arrival. Unlock grants the lock to the
//     first of them, and costs the same however many wait.
//
// # What is not
//
//   - Failover: replication is asynchronous. A promoted replica may miss a lock or a fencing token
//     that was just granted, and grant it again. The first owner's section ends with ErrLost at
//     its next renewal. See Config.Replicas.
//   - Pauses: code that does not run (garbage collection, a suspended machine) cannot notice that
//     its context has ended. Use a fencing token: [Hold.Token].
//   - Clocks: owners may overlap if Redis's runs 3.4 % faster than the process's monotonic one
//     (5 % with leases up to 20 s). The time of day does not matter.
//   - Order of callers: a session passes the lock on among its own callers for a time slice before the
//     next session has it. TryLock, sessions that poll and Redisson's clients stand in no line.
//     docs/guarantees.md says when they come in. Package fairlock keeps the order of callers.
//   - The first milliseconds of a granted hold: Redis keeps what an Unlock has granted to another session
//     for 1.25 s, until that session renews it. It does so after 10 ms, or at once if another of its
//     callers waits. A stall of more than a second before that ends the section with ErrLost.
//
// # Owners and nested calls
//
// Warning: callers with the same owner are let in together. Goroutines with a section's context
// do not exclude each other from its lock; with a named owner they do not exclude each other
// from any lock: use [WithoutOwner].
//
// A lock belongs to an owner, which the section's context carries. A Lock on that context
// re-enters, in any function. Any other Lock is an outermost one. Its owner is private
// ("<session id>:<number>") unless [WithOwner] names it.
//
// Where sections wait for each other's locks, one Lock ends with [ErrDeadlock]. A section is
// taken to last as long as a Lock on its context waits: a goroutine that it does not wait for
// must lock on the context of WithoutOwner.
//
// # Hand-over in memory
//
// Unlock passes the lock to the session's next waiter without asking Redis, for a time slice of
// 10 ms, or 100 ms while no other session waits, as far as is known. Then Unlock enters the session at the
// end of the line. [Lease], [WithOwner] and a Config.HandOverLimit of -1 exclude hand-over. An Unlock that
// hands the lock over returns nil unless the session knows that the lock is lost. If it was lost
// unnoticed, the section that is open by then ends with ErrLost.
package rlock
