// Package fairlock is a reentrant lock on Redis that is granted to its waiters in the order
// of arrival, across all sessions and processes.
//
// # What is guaranteed
//
// All that [relock/rlock] guarantees of its mutex. The lock is the same hash, so it excludes
// every other kind of lock on that name: rlock.Mutex, Redisson's RLock and RFairLock.
//
// Order: every waiter has a position in a queue in Redis, in the order in which Redis saw
// them arrive. The release itself grants the lock to the first entry: one script, one
// message, and the waiter has the lock without another round trip. A grant costs the same
// whether ten or ten thousand wait. TryLock does not overtake.
//
// Runs: waiters of one session that stand next to each other in the queue are one entry, and are
// served by one claim. The lock passes from one to the next in memory, in their order, whatever
// the time slice and a positive Config.HandOverLimit. Then the release grants the next entry. A
// waiter with [rlock.Lease] or [rlock.WithOwner], and every waiter of a session with
// HandOverLimit -1, is an entry of its own. Waiters gather while the session's last call is on
// its way; and for at most 2 ms if the session has waiters in the queue already, or is just being
// served. A run whose claim was lost is queued again at its old place.
//
// A live waiter keeps its position for as long as it waits. Its session sends a heartbeat
// about five times in Config.QueueLease, one script for up to 200 entries of a lock. A
// waiter whose context has ended, or whose time is over, leaves the queue at once.
//
// Dead waiters do not hold up the others. Where Redis can tell that no connection received
// the message (on a single node), the release grants the lock to the next waiter at once.
// Else the lock waits a quarter of a QueueLease for the first dead waiter, and skips all
// that have been silent. A live waiter has the lock within one QueueLease of the release,
// however many died in front of it.
//
// A session that was cut off loses the positions of its waiters after a QueueLease without
// a heartbeat. A run that was granted the lock, and whose session did not answer, loses its
// position too. They queue again, at the end.
//
// # What is not
//
// Order among kinds: only locks of this package know the queue. Plain mutexes on the same
// name, in Go or Java, are excluded while the lock is held. They may take it between the end
// of a lease and the next heartbeat. Redisson's RFairLock has a queue of its own. Use a name
// with one kind.
//
// Order in a failover: Redis can lose the queue as it can lose the lock. While a session
// reconnects its channel, the grant may pass a waiter over; the waiter keeps its position.
// A session that is not allowed to subscribe learns of a grant with its next heartbeat.
//
// Speed: a grant takes a message to the waiters' process. A run of one pays a round trip for each
// section, so rlock.Mutex costs Redis less where a lock is contended for by Lease or WithOwner.
//
// # Clocks
//
// A lock that was granted by a release is trusted from the time of Redis at the grant. The
// session translates it by the last heartbeat, which read Redis's clock against this
// process's monotonic one. A renewal confirms the grant at once. If Redis's clock leaps
// forward while the message is delayed, that trust can be too long by a quarter of a
// QueueLease at most. No process's time of day matters.
package fairlock
