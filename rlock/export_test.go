package rlock

import (
	"testing"
	"time"

	"relock/internal/connect"
	"relock/internal/engine"
)

// The window of the external tests into the machine.

const family = "mutex"

// AskForTLS has Dial take up to d, until the test ends, to find out whether a server speaks TLS. The
// test may not be parallel.
func AskForTLS(t testing.TB, d time.Duration) {
	before := connect.Patience
	t.Cleanup(func() { connect.Patience = before })
	connect.Patience = d
}

// Books returns how much the session keeps account of; all 0 when nothing is held and no
// caller waits.
func (s *Session) Books() (held, asking, locks, scheduled, active int) {
	n := (*engine.Session)(s).Counts()
	return n.Held, n.Asking, n.Locks + n.Waiters, n.Scheduled, n.Cleaning
}

// Records returns how many locks the session remembers, idle ones included.
func (s *Session) Records() int { return (*engine.Session)(s).Records() }

// Suspects returns how many callers wait inside of sections.
func (s *Session) Suspects() int { return (*engine.Session)(s).Suspects() }

// WaitersOf returns how many goroutines stand in the session's queue for name.
func (s *Session) WaitersOf(name string) int {
	return (*engine.Session)(s).WaitersOf(family, name)
}

// Keep has the session remember up to n locks while they are idle.
func (s *Session) Keep(n int) { (*engine.Session)(s).Keep(n) }

// FairWaitersOf returns how many do so for the fair lock of that name.
func (s *Session) FairWaitersOf(name string) int {
	return (*engine.Session)(s).WaitersOf("fair", name)
}

// SideWaitersOf returns how many do so for the read-write lock of that name.
func (s *Session) SideWaitersOf(name string) int {
	return (*engine.Session)(s).WaitersOf("rw", name)
}

// Unhurried lets the time slice that has begun with the hold of name go on for an hour, so that
// a test may take its time between two hand-overs.
func (s *Session) Unhurried(name string) { s.RunFor(name, time.Hour) }

// RunFor lets that slice last for d from now on; it is over at once if d is negative.
func (s *Session) RunFor(name string, d time.Duration) {
	(*engine.Session)(s).SliceFor(family, name, d)
}

// Stall keeps the watchdog, as soon as it has to visit name, until resume is called.
func (s *Session) Stall(name string) (resume func(), ok bool) {
	return (*engine.Session)(s).Stall(family, name)
}

// LeaveToOthers ends that slice, and leaves the lock to other sessions for d from now on.
func (s *Session) LeaveToOthers(name string, d time.Duration) {
	(*engine.Session)(s).Yield(family, name, d)
}

// Awaited reports whether a caller waits for a command of the claim of h to be answered.
func (h *Hold) Awaited() bool { return (*engine.Hold)(h).Awaited() }
