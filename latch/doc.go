// Package latch is a count-down latch on Redis: callers wait until others have counted a number
// down to 0. Its key, values and messages are those of Redisson's RCountDownLatch.
//
// # What is guaranteed
//
// A count down counts once. A call that has to be sent again, because its answer was lost, is
// remembered by Redis under an id of its own, for a minute more than Config.ReleaseTimeout.
//
// Await returns only after Redis has said that the count is 0, or that there is none. A latch
// that was never set is open. A waiter sleeps until a message announces that the latch opens, or
// until Config.PollFloor is over: a lost message costs no more. The goroutines of a session that
// wait for one latch form a queue with one subscription, and only the first of them asks Redis.
// When the latch opens its answer lets in all that waited when it was asked.
//
// # What is not
//
// A latch has no owners and no lease. If a process dies that should have counted down, the
// others wait for as long as their contexts live: bound them. The key has no TTL and stays until
// the count is 0. To give a latch up delete its key; waiters see it within Config.PollFloor.
//
// An opening is not remembered. If a latch that has opened is set again at once, a waiter that
// has not looked in between waits for the next opening. Redisson has the same limit. Use a new
// name for each round.
//
// Failover: Redis replicates asynchronously. A promoted replica may have missed a count down,
// and the latch then stays closed. Redisson sends a count down again when its answer is late,
// and may count it twice.
//
// Lost data: a latch that Redis has forgotten is open, and Await returns although others have still
// to count down. That is so after a restart without persistence, an eviction, or a failover to a
// replica that has missed TrySet. Where that matters, check what the others should have done.
//
// Names: in a Redis Cluster Redisson cannot use names with braces for latches. This package can.
package latch
