//go:build race

package redistest

// Race says that the tests run with the race detector, under which the tests that do not wait take
// several times as long, and a sync.Pool drops some of what it is given.
const Race = true

// parallel is lower then: tests that wait must not be late for their leases.
const parallel = 6
