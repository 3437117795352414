// Package quorum is one lock on several independent Redises, held while a majority of them has
// granted it: the Redlock algorithm, with sections, renewal and release of this module. With
// five Redises it goes on working while any two of them are down.
//
// # What is guaranteed
//
// A majority: two owners cannot both have one. All Redises are asked at the same time, each with
// a bound of a twentieth of Config.Lease (500 ms at most), so that one which is silent holds up
// nothing. Without a majority the votes are given back.
//
// Trust: each vote is trusted for its lease less 5 % (at most 1 s), counted on the monotonic
// clock from before its request was sent, and each is renewed by its own session. As soon as
// less than a majority can be trusted the section's context ends with [rlock.ErrLost].
//
// Delayed restart: a Redis that may have forgotten votes gives none for one lease. Each vote is
// one script, which also looks at the key "relock_quorum_life" (without a TTL): the run id of the
// server and when it was first asked. If the key is gone, or names another run, a new life
// begins. That covers a restart, with or without its data, a failover to a replica, a FLUSHALL.
// A new deployment is not told from one that has lost everything: it grants its first lock one
// lease after it was first asked.
//
// # What is not
//
// Data that is lost while the life stays is not seen: a lock that is evicted or deleted by hand,
// or a server that comes back from a snapshot of its whole machine. Where INFO is not allowed, or
// a proxy answers it, the run id is not known, and neither is a restart with old data.
//
// Clocks: two owners may overlap if the clocks of Redises run faster than this process's by
// more than what is not trusted (3.4 % with the default lease), or jump forward. The time of day of
// the processes does not matter.
//
// Pauses: code that does not run cannot notice that its context has ended. Martin Kleppmann
// ("How to do distributed locking", 2016) holds that Redlock is therefore unfit where an overlap
// does harm. It rests on bounded delays, pauses and clock errors, and has no number that grows
// from owner to owner with which a resource could fence off the late one. Salvatore Sanfilippo
// (antirez, "Is Redlock safe?", 2016) answers that the time is checked after the majority was
// had. A pause after that check befalls every lock with a timeout, and clocks of about the same
// rate are to be had.
//
// Fencing is what ends the argument, and this package has no tokens: the highest of a majority's
// counters need not grow. A resource that can refuse old tokens keeps itself safe with the tokens
// of [rlock.Fenced] or package election, on one Redis. What a quorum adds is availability without
// a failover that forgets locks; it is for work that is costly to do twice, not wrong.
//
// Order and re-entry: there are none. Callers of one handle wait in a queue; between processes
// the fastest gets the lock. A Lock inside a section of the same lock is an error.
package quorum
