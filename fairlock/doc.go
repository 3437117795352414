// Package fairlock is a reentrant lock on Redis that is granted to its waiters in the order
// of arrival, across all sessions and processes.
//
// # What is guaranteed
//
// All that [relock/rlock] guarantees of its mutex. The lock is the same hash, so it excludes
// every other kind of lock on that name: rlock.Mutex, Redisson's RLock and RFairLock. And:
//
//   - Order. Every waiter has a position in the lock's line in Redis, in the order in which Redis saw
//     them arrive. The release itself grants the lock to the first entry: one script, one
//     message, and the waiter has the lock without another round trip, whether ten or ten
//     thousand wait. A named owner, and a waiter of [rlock.FencedFor], is called instead, and asks: one
//     round trip more. TryLock does not overtake.
//   - Live waiters keep their positions for as long as they wait. Their session is heard of
//     about five times in Config.QueueLease, by one script for up to 50 entries of a lock. A waiter
//     that gives up leaves the line at once.
//   - Dead waiters do not hold up the others: a live waiter has the lock within one QueueLease of
//     the release, however many died in front of it. Where Redis can tell that no connection
//     listens for the waiter's session (on a single node), the next waiter has it at once. Else the
//     lock waits for the first dead waiter for 1.25 s, or a quarter of a QueueLease if that is less, and skips
//     all that are silent.
//   - A grant that was published is never taken back: a waiter that hears of it late, by way of a
//     replica in a planned failover, is still the only owner.
//
// [relock/rlock] also serves waiting sessions in the order of arrival. This package adds the order of
// callers: a caller that comes later is never served first because its session has the lock, as in a
// time slice there, and TryLock never overtakes.
//
// # Runs
//
// Waiters of one session that stand next to each other in the queue are one entry, a run. The
// lock passes from one to the next in memory, in their order, whatever the time slice and a
// positive Config.HandOverLimit. Then the release grants the next entry. A waiter with
// [rlock.Lease] or [rlock.WithOwner], and every waiter of a session with HandOverLimit -1, is an
// entry of its own. Waiters gather while the session's last call is on its way; and for at most
// 2 ms if the session has waiters in the queue already, or is just being served. A run whose
// claim was lost is queued again at its old position.
//
// # What is not
//
//   - Order among kinds: a plain mutex on the same name waits in the same line, but its TryLock, its callers
//     in a time slice, and Redisson's clients pass waiters of this package.
//     Redisson's RFairLock has a queue of its own. Use a name with one kind.
//   - Order after an outage: a session without a heartbeat for a QueueLease loses the positions
//     of its waiters. So does a run that was granted the lock and whose session did not answer.
//     Both queue again, at the end. While a session reconnects, a grant may pass its
//     waiter over, which keeps its position. In a failover Redis can lose the queue as it can
//     lose the lock.
//   - Speed: an entry of its own costs a round trip for each section, so rlock.Mutex costs Redis
//     less where a lock is contended for by Lease or WithOwner. A session that is not allowed to
//     subscribe learns of a grant when it is heard of next. Where the user of the releasing session may not
//     publish on the channels of sessions, the lock comes free, and the first waiter has it when its session is
//     heard of next.
//   - Clocks that leap: a grant is trusted from the time of Redis at the grant. The session
//     translates that by its last reply with Redis's time to its monotonic clock. A renewal confirms it, at once
//     if its run has more callers, else after 10 ms.
//     If Redis's clock leaps forward while the message is delayed, that trust can be too long by
//     the grant's lease at most, 1.25 s. The time of day of the processes does not matter.
package fairlock
