// Package rlock is a reentrant lock on Redis for services that run in several
// processes, on the wire the same as Redisson's RLock and RFencedLock.
//
// # What is guaranteed
//
// At most one owner holds a lock, as long as Redis keeps its data. A hold is trusted
// for its lease less a margin (5 %, at most 1 s), by the monotonic clock, from when the
// last confirmed command was sent. When that time is over without a renewal, the
// context of the critical section is cancelled with the cause [ErrLost], whether or not
// the network works, and before Redis can let the next owner in.
//
// Whatever happens to a command or its reply, it counts once. An acquisition that
// failed holds nothing: where its outcome is unknown it is taken back in the
// background. A release never touches a successor's hold.
//
// A waiter is woken by a message when the lock is released, and looks by itself after
// Config.PollFloor, so that a lost message costs that much and no more. All goroutines
// of a session that wait for one lock are one contender in Redis, and are served in
// the order in which they came.
//
// # What is not
//
// Failover. Redis replicates asynchronously: a lock taken just before the primary died
// may be unknown to the replica that takes over, and be given to a second owner before
// the first learns, at its next renewal, that it is lost. The same goes for fencing
// tokens.
//
// Pauses. Code that does not run (garbage collection, a suspended machine) cannot
// notice that its context has ended. What must never happen twice needs a resource that
// checks a fencing token: see [Fenced] and [Hold.Token].
//
// Clocks. Redis's clock decides when a lease ends there. A clock that runs faster than
// this process's by more than the margin breaks the promise above; one that is merely
// wrong does not matter, and neither does this process's wall clock.
//
// Order between processes: among them whoever asks first after a release gets the lock. A
// session whose own goroutines wait keeps it for a while (Config.HandOverLimit) and then
// holds back, so that others get their turn.
//
// # How it works
//
// A lock is a hash: field = owner, value = how many holds, TTL = the lease. One Lua
// script takes it, one releases it and publishes on the lock's channel. What an owner
// holds of one lock is a tenure: it begins with the outermost Lock, whose context the
// critical section's derives from, and ends with the last Unlock. One goroutine of the
// session, the watchdog, has all tenures renewed every third of the lease, up to 200
// with one script.
//
// Between goroutines of one session the lock passes in memory: Unlock lets the next one in,
// who trusts it for no longer than the one before could, and a third script makes the hash
// follow. If that finds the lock gone, whoever has it by then ends with [ErrLost]; an Unlock
// that handed it over has returned nil by then, since it did not ask Redis.
//
// The primitives of other packages run on the same machine: they implement [Primitive].
package rlock
