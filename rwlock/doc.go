// Package rwlock is a reentrant read-write lock on Redis for services that run in several
// processes, on the wire the same as Redisson's RReadWriteLock.
//
// # What is guaranteed
//
// Readers share the lock; a writer is alone, as long as Redis keeps its data. What package
// rlock says of a hold holds for those of either side: how long it may be trusted, that the
// context of its critical section ends before Redis can let anybody in whom it excludes,
// that a command counts once whatever happens to it or its reply.
//
// Every reader has a lease of its own. One that dies ends with that lease: it ends no other
// reader's hold, and keeps a writer out no longer; should nobody else be there to tell him,
// the writer looks for himself within Config.PollFloor.
//
// Nobody starves. While a writer waits for readers to leave, readers from outside wait
// behind it, so it gets in when those are gone that were there. When it leaves, waiting
// readers and writers have an equal chance, and waiting readers come in together. All
// goroutines of one session that wait for one lock, readers and writers alike, are served in
// the order in which they came, with two exceptions: named owners (rlock.WithOwner) look at
// Redis once before they queue, since they may hold the lock elsewhere; and readers may join
// those of their session that are in, see below, who came before them.
//
// Where many goroutines of a session read at a time (several wait, or eight are in), they share
// one hold in Redis, unless Config.HandOverLimit is -1: only the first asks, and only the last
// to leave releases it.
// Each has a context of its own all the same, and lapses by itself. Redis, and so State and
// Hold.Owner, show the owner of that one hold. So an owner that was not named is not known
// there as long as it shares: nobody else can enter with its context or its id, not even
// another session of the process. Owners that are passed on must be named. Once a writer
// waits, readers join for 10 ms more at most, for 1 ms if he is of the same session.
//
// An owner that holds the lock never waits for itself, unless it was passed on by its id to a
// process that holds the lock for it (name such owners with rlock.WithOwner): readers nest, a writer may take the
// read side too, and may keep it when it unlocks the write side (a downgrade, which lets
// waiting readers in). An owner that holds only the read side and asks for the write side
// gets [ErrUpgrade] at once.
//
// What a read unlock costs does not depend on how many readers of this library there are.
// Who leaves as the last of them looks at the timeout keys of Redisson's, if there are any.
//
// The write side passes from goroutine to goroutine of a session in memory, as package rlock
// says of its lock.
//
// # What is not
//
// Failover, pauses, clocks: as in package rlock, and there is no fencing token here.
//
// Overlap without end: holds of one named owner pass waiting writers, or they would
// deadlock; if one always overlaps the next, no writer gets in.
//
// A write hold with a fixed lease that ends under a read hold of the same owner leaves the
// lock a write lock, for this owner alone, until it is unlocked.
//
// Leases that differ, beside Java: Redisson sets the TTL of the lock to its own lease at each
// renewal. Ours put it right when they look, every third of a lease; if the Java process dies
// in between and its lease is shorter than that, ours are lost, and say so.
//
// Fairness towards Java: Redisson's readers know nothing of waiting writers, so enough of
// them can keep a writer out. That one of them died is noticed, by its timeout keys, when a
// writer asks or the last reader of this library leaves.
//
// A writer that dies while it waits keeps new readers out for a moment: for at most two
// of its Config.PollFloor and a second, and for at most a second once the lock is free.
//
// Names: give a read-write lock a name of its own. On the name of another kind of lock it
// waits until that is free; State and ForceUnlock answer WRONGTYPE there. Owner ids
// (rlock.WithOwner) must not be "mode" or end in ":write".
//
// # How it works
//
// The lock is a hash, as Redisson's: mode = read or write, a field for each reader (its
// owner) and for the writer (owner:write) with the number of holds, and a timeout key for
// each hold of a reader, "{name}:<owner>:rwlock_timeout:<i>". Next to it stand, all in one
// slot and all with a TTL: relock_readers:{name}, when each of our readers expires by
// Redis's clock; relock_writers:{name}, the marks of writers that wait; and
// relock_holds:{name}:<owner>, the ids of an owner's holds. A release is published on
// "redisson_rwlock:{name}": "1" when a writer leaves, "0" when the last reader does.
package rwlock
