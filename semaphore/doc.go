// Package semaphore has two counting semaphores on Redis for services that run in several
// processes: [Semaphore], whose permits are leased, and [Counter], which only counts. On
// the wire they are the same as Redisson's PermitExpirableSemaphore and Semaphore.
//
// # Which one
//
// Take a Semaphore to bound how many may do something at a time: downloads, jobs, calls
// of a slow service. Its permits belong to whoever acquired them; the watchdog of the
// session renews them, and those of a process that died come back after one lease. The
// critical section has a context that ends when the permits are lost. Each permit is an
// entry in a sorted set, and a script that takes n of them is n entries long: fit for
// tens or hundreds, not for counting bytes.
//
// Take a Counter where one process takes and another gives back, as between a producer
// and a consumer, or where the numbers are large. Nothing is renewed and nobody owns
// anything: what a process that died has taken is gone until somebody adds it again.
//
// The two keep different things under a name, and so do locks: every one needs names of
// its own.
//
// # What is guaranteed
//
// Never are more permits of a Semaphore held than the limit allows, as long as Redis keeps
// its data: free and taken permits add up to the limit after every script. A set of permits
// is trusted for its lease less a margin (5 %, at most 1 s), by the monotonic clock, from
// when the last confirmed command was sent; when that time is over without a renewal, the
// section's context ends with the cause [rlock.ErrLost], before Redis gives the permits to
// anybody else. When permits expire is decided by Redis's clock alone.
//
// Whatever happens to a command or its reply, it counts once. Permits have ids that are
// made from their owner; requests to a Counter have an id that is remembered in a key of
// its own ("relock_request:{name}:<id>") for as long as it may come, a few minutes at the most,
// since nothing else tells one request from another.
//
// A request is granted whole or not at all. Those of one session that wait for one name
// are served in the order in which they came, whatever they ask for: a large one is not
// starved by small ones behind it, and TryAcquire does not overtake. A waiter is woken by
// a message when permits become free, and by the clock when the next ones expire; a lost
// message costs no more than Config.PollFloor.
//
// # What is not
//
// Order between processes: a large request can be starved by small ones of another
// process. Failover: permits that were taken just before a primary died may be unknown to
// the replica that takes over; their holders learn of it at the next renewal. Pauses: code
// that does not run does not notice that its context has ended, and there is no fencing
// token here. Late delivery: a command that a proxy delivers after its connection broke, and
// after the caller was told that he got nothing, is over with its lease. A Counter
// leaves word of what was given up for three minutes; what comes even later takes for
// ever. A limit that is lowered takes no permits away from those who hold them, nor does the
// deletion of the number of free ones; they still count against the limit. Those of a
// Semaphore that was deleted end their sections with rlock.ErrLost, unless it was in use
// again before they noticed. Who deletes "{name}:timeout" alone lowers the limit by what
// was taken.
//
// # How it works
//
// The key NAME has the number of free permits, the sorted set "{NAME}:timeout" the taken
// ones with the times when they expire; the channel "redisson_sc:{NAME}" carries the
// number of free permits whenever some become free. NAME stays when nobody holds anything,
// and so does the limit with it: delete NAME to start anew. A Java process that uses the
// same name must not have another idea of the limit, or be the only one to set it.
package semaphore
