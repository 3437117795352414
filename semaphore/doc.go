// Package semaphore has two counting semaphores on Redis for services that run in several
// processes: [Semaphore], whose permits are leased, and [Counter], which only counts. Their
// keys, values and messages are those of Redisson's PermitExpirableSemaphore and Semaphore.
//
// # Which one
//
// Take a Semaphore to bound how many may do something at a time: downloads, jobs, calls of a
// slow service. The watchdog of the session renews the permits, and those of a process that
// died come back after one lease. The section has a context that ends when the permits are
// lost. Each permit is an entry in a sorted set, and a script that takes n of them is n
// entries long: fit for tens or hundreds, not for counting bytes.
//
// Take a Counter where one process takes and another gives back, as between a producer and a
// consumer, or where the numbers are large. Nothing is renewed, and permits have no owner:
// what a process that died has taken is gone until another one adds it again.
//
// The two keep different things under a name, and so do locks. Give each of them a name of
// its own. Where the mistake shows in Redis (permits are taken, or the session has used the
// name for a Counter) the call is refused with WRONGTYPE.
//
// # What is guaranteed
//
// Never are more permits of a Semaphore held than the limit allows, as long as Redis keeps
// its data: free and taken permits add up to the limit after every script. The session stops
// trusting permits 5 % of the lease (at most 1 s) before they expire, counted on the
// monotonic clock from when the last successful command was sent. The section's context then
// ends with the cause [rlock.ErrLost], before Redis grants the permits to another request.
// When permits expire is decided by Redis's clock alone.
//
// Retries are idempotent: a script that is sent twice never takes or gives back twice.
// Permits have ids that are made from their owner. Of the requests to a Counter Redis remembers,
// for three minutes, the last one of each that were under way at once: in one key for each
// session and Counter ("relock_requests:{name}:<random>").
//
// A request is granted whole or not at all. Requests of one session for one name are served
// in the order of arrival, whatever they ask for: a large one is not starved by small ones
// behind it, and TryAcquire does not overtake. A message wakes a waiter when permits become
// free, and the clock when the next ones expire. A lost message costs no more than
// Config.PollFloor.
//
// Released permits pass to the next waiter of the session in memory, without Redis, if that
// one wants exactly as many. This goes on for the time slice that package rlock describes.
// Else they go back to Redis. Permits with a fixed lease always do, and a Counter's too.
//
// # What is not
//
// Order between processes: a large request can be starved by small ones of another process.
//
// Failover: permits that were granted just before a primary died may be unknown to the
// promoted replica. Their holders notice at the next renewal.
//
// Pauses: code that does not run does not notice that its context has ended, and there is no
// fencing token.
//
// Late delivery: a request for permits that a proxy delivers after its caller was told of a
// failure takes them until the lease ends. A Counter remembers for three minutes what was
// given up; a command that is delivered more than 3 minutes late removes that count for good.
// A SetLimit that returned an error of the client may still arrive, and undo what another
// session has set since; of one session the last one wins.
//
// Limits: a lowered limit takes no held permits away; they still count against it. The same is
// true if the number of free permits is deleted. The sections of a Semaphore that was deleted end
// with rlock.ErrLost, unless it was in use again before the next renewal. Deleting
// "{name}:timeout" alone lowers the limit by what was taken.
//
// # How it works
//
// The key NAME has the number of free permits, the sorted set "{NAME}:timeout" the taken
// ones with the times when they expire. The channel "redisson_sc:{NAME}" carries the number
// of free permits whenever some become free. NAME stays, and so does the limit: delete NAME
// to start anew. A Java process that uses the same name must set the same limit or none.
package semaphore
