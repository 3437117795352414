// Package election elects one leader among the processes that stand for it, on Redis. The
// others see who leads, with a value that the leader publishes: an address, say. [Election.Campaign]
// gives a context to work on; [Election.Run] calls back, as client-go's leader election does.
//
// # What is guaranteed
//
// One leader at a time, with the guarantees and limits of package [relock/fairlock], on which an
// election is built. The context of a leadership ends before Redis lets the next candidate lead.
//
// Order: candidates lead in the order of arrival, across all processes. A Resign makes the next
// one the leader by the same command; the leader publishes its value with one more round trip,
// and then its Campaign returns. When a leader dies its lease has to end first (Config.Lease,
// 30 s by default); the next candidate follows within a fifth of Config.QueueLease.
//
// Terms grow from leader to leader. A term is a fencing token, drawn by the script that makes
// the leader.
//
// Observers see the leader that they find, then each new one and each new value, and when nobody leads
// any more. They are woken by message. A lost message, a lost connection, or a lease that has run
// out costs them Config.PollFloor at most. An observer that is slow misses leaders in between, never one
// that goes on leading.
//
// # What is not
//
// Failover: Redis replicates asynchronously. A promoted replica may not know the leader, and
// make another one, with the same term, until the first one's next renewal. It, or a Redis that was
// restarted from an append-only file, may know the leader and not the value that was published last: then
// observers see the value before, or no leader, until the next [Leadership.Publish]. A leader that was
// paused, or whose clock runs slower than Redis's by more than 3.4 % (5 % with leases up to 20 s),
// may act for a moment beside the next. Protect what must never happen twice by a resource that
// checks the term.
//
// News: what [Election.Leader] and [Election.Observe] give is what Redis has said a moment ago.
// A leader that died is named until its lease has ended.
//
// # What stands in Redis
//
// The keys of a fair lock under the election's name, with its fencing token, and beside them
// "relock_leader:{name}": the last leader, its term and value, without a TTL. It counts only
// while the lock has that owner. "relock_election:{name}" is the channel; observers
// listen to that and to the lock's. Operators end a leadership by ForceUnlock of the fair lock.
package election
