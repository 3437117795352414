//go:build race

package redistest

// Race says that the tests run with the race detector, under which the tests that do not wait take
// several times as long, and a sync.Pool drops some of what it is given.
const Race = true

// parallel is lower then: tests that wait must not be late for their leases.
const parallel = 6

// garbage is what the heap may grow by, in percent, before garbage is collected. The race detector
// has several bytes of its own for each.
const garbage = 200
