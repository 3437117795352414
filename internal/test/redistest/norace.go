//go:build !race

package redistest

const Race = false

// parallel is how many parallel tests of a package run at once. Such tests wait for leases
// and timeouts most of the time, so there may be many more of them than cores; the go tool
// allows one a core.
const parallel = 32

// garbage is what the heap may grow by, in percent, before garbage is collected.
const garbage = 400
