// Package benchkit measures locks of any make in the same way: goroutines of one or of
// several processes that take turns, for a fixed time, with mutual exclusion checked from
// outside the lock all the while.
//
// What it guarantees: a round is counted only if it entered within the window; waits are
// those of every round that was begun, also of those that were still waiting when the
// window ended, since leaving them out would hide who starves; and two that were inside
// together are seen, in whatever process they were. What it does not: times drift with the
// machine and with what else it does, so they are to be read as ratios to a [Base] that was
// measured in the same run.
package benchkit
