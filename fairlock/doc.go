// Package fairlock is a reentrant lock on Redis that serves its waiters in the order in
// which they came, across all sessions and processes.
//
// # What is guaranteed
//
// All that [relock/rlock] guarantees of its mutex: the lock is the same hash with the same
// scripts for renewal, so at most one owner holds it, of whatever kind of lock (this one,
// rlock.Mutex, Redisson's RLock or RFairLock on the same name).
//
// Order. Every waiter has a place in a queue in Redis, in the order in which Redis saw
// them come. The release itself lets the first one in: one script, one message, and the
// waiter has the lock, without another round trip and without a race. A hand-over costs the
// same whether ten or ten thousand wait. TryLock does not overtake.
//
// A waiter that is alive keeps its place for as long as it waits. Its session says so, for
// all its waiters of a lock with one script per 200 of them, about five times in
// Config.QueueLease. One that leaves, because its context has ended or its time is over, is
// gone from the queue at once.
//
// A waiter that died does not hold up the others: where Redis can tell that nobody has
// received the message (on a single node), the release passes on to the next one at once.
// Else the lock waits for it for a quarter of a QueueLease, and for all who have been
// silent not at all: whoever is alive has the lock within one QueueLease of the release,
// however many have died in front of it.
//
// A session that was cut off loses the places of its waiters when nothing was heard of
// them for a QueueLease, or when it was their turn and they did not come; they queue again,
// at the end.
//
// # What is not
//
// Order among kinds. Only this package's locks know the queue. Plain mutexes on the same
// name, in Go or Java, are kept out while the lock is held, and are told when nobody waits
// in the queue, but may take it between an expiry and the next heartbeat. Redisson's RFairLock has
// a queue of its own. Use a name with one kind.
//
// Order in a failover, as little as the lock itself; and for a moment a waiter whose
// connection for messages is being made anew may be passed over: it keeps its place. The
// waiters of a session that is not allowed to subscribe learn by their next heartbeat that
// it is their turn.
//
// Speed. A fair lock is never faster than the first waiter's process. Under contention
// inside one process, rlock.Mutex costs Redis far less: there all goroutines of a session
// are one contender.
//
// # Clocks
//
// A lock that was handed over is trusted from when Redis says it was, translated by
// reading Redis's clock against this process's monotonic one at the last heartbeat. A
// clock in Redis that leaps forward in just the moment between, while the message is
// delayed, could stretch that trust by a quarter of a QueueLease at the most; the renewal
// that follows at once ends it. No client's wall clock matters.
package fairlock
