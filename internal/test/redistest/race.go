//go:build race

package redistest

// parallel is lower with the race detector, under which the tests that do not wait take
// several times as long: those that do must not be late for their leases.
const parallel = 6
