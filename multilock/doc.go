// Package multilock takes several locks together: all of them, or none. They may be of any
// kind and from any sessions, of one Redis or of several.
//
// # What is guaranteed
//
// All or none: when Lock returns without an error, all of the locks are held. When it returns
// an error, none is, and what was taken before has been released.
//
// One section: the context ends, with the cause, as soon as one of the locks is lost. It leads
// to each of the locks, so that a Lock of one of them on it re-enters. Each lock keeps the
// promises of its own package.
//
// No deadlock among callers of this package, in whatever order they name the locks. Locks are
// taken in the order of their keys (the session's prefix and the name, compared by bytes). Of
// one key the order is that of the kinds, with a write side before its read side. The same key
// in several Redises is taken in the order of ids that the Redises keep. The first Lock asks
// each of them once, and makes an id where there is none ("relock_deployment", a key without a
// TTL). Sessions, addresses and the order of the arguments play no part.
//
// Others get their turn. A caller that holds some of the locks waits for the next one for at
// most a second. Then it releases them, pauses for about a tenth of that time, and begins
// anew. The time doubles from round to round, so that locks with long queues are had at last.
// Inside of another section it first waits for that lock alone, where a deadlock shows.
// That ends a deadlock with callers that take the locks in another order: Redisson's
// RedissonMultiLock, which takes them in the order given and gives up after 1.5 s for each lock,
// or a Lock of one lock inside the section of another.
//
// # What is not
//
// Atomicity: the locks are granted one after the other, each by a round trip of its own. While
// a caller waits for one it holds those before it in the order.
//
// Order of arrival: between several fair locks there is none. A caller that gives way leaves
// the queues that it stands in.
//
// Nesting: locks that the context holds already are outside of the order. A caller that holds
// b and takes a and b together waits for a as long as it takes. If another caller holds a and
// waits for b, the later one of the two ends with [rlock.ErrDeadlock]. What one Lock of this
// package has taken itself makes it no part of a deadlock, since it gives way.
//
// Independence of failures: a lock that cannot be reached keeps all of them from being taken.
// For a majority of independent Redises this is the wrong tool.
//
// The order across several Redises changes when one of them loses its id. Callers that know
// different ids may meet in a deadlock, which ends as described above.
package multilock
