// Package semaphore has two counting semaphores on Redis for services that run in several
// processes: [Semaphore], whose permits are leased, and [Counter], which only counts. Their
// keys, values and messages are those of Redisson's PermitExpirableSemaphore and Semaphore.
//
// # Which one
//
// Take a Semaphore to bound how many may do something at a time: downloads, jobs, calls of a
// slow service. The session renews the permits, and those of a process that died come back
// after one lease. The section has a context that ends when the permits are lost. Each permit
// is an entry in a sorted set, and a script that takes n of them is n entries long: fit for
// tens or hundreds, not for counting bytes.
//
// Take a Counter where one process takes and another gives back, as between a producer and a
// consumer, or where the numbers are large. Nothing is renewed, and permits have no owner:
// what a process that died has taken is gone until another one adds it again.
//
// The two keep different things under a name, and so do locks. Give each of them a name of
// its own. Where the mistake shows in Redis (permits are taken, or the session has used the
// name for a Counter) the call is refused with WRONGTYPE. Java that uses the same name must set
// the same limit or none. docs/operations.md lists the keys.
//
// # What is guaranteed
//
//   - Never are more permits of a Semaphore held than the limit allows, as long as Redis keeps its
//     data: free and taken permits add up to the limit after every script. Permits are trusted as
//     package rlock trusts a hold, so the section's context ends with [rlock.ErrLost] before
//     Redis grants the permits to another request. Redis's clock alone decides when they expire.
//   - Retries are idempotent: a script that is sent twice never takes or gives back twice.
//   - A request is granted whole or not at all. Requests of one session for one name are served in
//     the order of arrival, whatever they ask for: a large one is not starved by small ones behind
//     it, and TryAcquire does not overtake.
//   - Sessions that wait stand in a line, each with one request, and are served in the order of arrival. What
//     comes free is given to the first by the script that frees it, whichever process runs that; how many wait
//     does not matter. A first one that wants more than is free keeps what comes free for 1 s; then what fits may
//     pass for 1 s; then for 2 s, 4 s and so on up to 32 s, with 1 s in between.
//   - The clock wakes a waiter when permits expire. A lost message costs no more than Config.PollFloor.
//
// Released permits pass to the next waiter of the session in memory, if that one wants exactly as
// many, for the time slice that package rlock describes. Else they go back to Redis. Permits with
// a fixed lease always do, and a Counter's too.
//
// # What is not
//
//   - Strict order: a session passes permits on among its callers for a slice, TryAcquire takes what is free, and
//     Redisson's clients, which know no line, have rounds of their own.
//   - Failover and pauses: as in package rlock. There is no fencing token.
//   - Late delivery: a request for permits that a proxy delivers after its caller was told of a
//     failure takes them until the lease ends. A Counter remembers requests for three minutes; a
//     command that is delivered later removes that count for good.
//   - Long outages: what a Counter may have granted to a caller that went away is given back as soon
//     as Redis answers. After a minute without an answer, or of refusals by the ACL, it is gone for good.
//   - Limits: a lowered limit takes no held permits away; they still count against it. The same is
//     true if the number of free permits is deleted. The sections of a Semaphore that was deleted
//     end with rlock.ErrLost, unless it was in use again before the next renewal. Deleting
//     "{name}:timeout" alone lowers the limit by what was taken.
package semaphore
