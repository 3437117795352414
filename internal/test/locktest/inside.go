package locktest

import (
	"testing"
	"time"

	"relock/internal/engine"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// The window of the tests into the machine, by the name of a plain lock where nothing else is said.

// family is what the machine calls a plain lock.
const family = "mutex"

// Books returns how much the session keeps account of; all 0 when nothing is held and no
// caller waits.
func Books(s *rlock.Session) (held, asking, locks, scheduled, active int) {
	n := (*engine.Session)(s).Counts()
	return n.Held, n.Asking, n.Locks + n.Waiters, n.Scheduled, n.Cleaning
}

// Records returns how many locks the session remembers, idle ones included.
func Records(s *rlock.Session) int { return (*engine.Session)(s).Records() }

// Suspects returns how many callers wait inside of sections.
func Suspects(s *rlock.Session) int { return (*engine.Session)(s).Suspects() }

// Keep has the session remember up to n locks while they are idle.
func Keep(s *rlock.Session, n int) { (*engine.Session)(s).Keep(n) }

// WaitersOf returns how many goroutines stand in the session's queue for name.
func WaitersOf(s *rlock.Session, name string) int {
	return (*engine.Session)(s).WaitersOf(family, name)
}

// FairWaitersOf returns how many do so for the fair lock of that name.
func FairWaitersOf(s *rlock.Session, name string) int {
	return (*engine.Session)(s).WaitersOf("fair", name)
}

// SideWaitersOf returns how many do so for the read-write lock of that name.
func SideWaitersOf(s *rlock.Session, name string) int {
	return (*engine.Session)(s).WaitersOf("rw", name)
}

// Unhurried lets the time slice that has begun with the hold of name go on for an hour, so that
// a test may take its time between two hand-overs.
func Unhurried(s *rlock.Session, name string) { RunFor(s, name, time.Hour) }

// RunFor lets that slice last for d from now on; it is over at once if d is negative.
func RunFor(s *rlock.Session, name string, d time.Duration) {
	(*engine.Session)(s).SliceFor(family, name, d)
}

// LeaveToOthers ends that slice, and leaves the lock to other sessions for d from now on.
func LeaveToOthers(s *rlock.Session, name string, d time.Duration) {
	(*engine.Session)(s).Yield(family, name, d)
}

// Stall keeps the watchdog, as soon as it has to visit name, until resume is called.
func Stall(s *rlock.Session, name string) (resume func(), ok bool) {
	return (*engine.Session)(s).Stall(family, name)
}

// Awaited reports whether a caller waits for a command of the claim of h to be answered.
func Awaited(h *rlock.Hold) bool { return (*engine.Hold)(h).Awaited() }

// Settled waits until the session has to do with no lock any more.
func Settled(t *testing.T, ses *rlock.Session) {
	t.Helper()
	redistest.Eventually(t, time.Minute, "nothing to be left of any call", func() bool {
		held, asking, locks, scheduled, active := Books(ses)
		return held+asking+locks+scheduled+active == 0
	})
}

// Quiet waits until the session has nothing under way, not in the background either.
func Quiet(t *testing.T, ses *rlock.Session) {
	t.Helper()
	redistest.Eventually(t, 10*time.Second, "nothing is under way", func() bool {
		_, _, _, _, active := Books(ses)
		return active == 0
	})
}
