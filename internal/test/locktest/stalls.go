package locktest

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"relock/rlock"
)

// Stalls measures for how long at a time goroutines of this process do not get to run, as on a
// machine that is too busy. What a process does by the clock it then does late, which no lock can
// help, and a test must not take it for a fault.
type Stalls struct{ longest atomic.Int64 }

// WatchStalls measures until the test ends.
func WatchStalls(t testing.TB) *Stalls {
	const tick = 2 * time.Millisecond
	s, stop, done := new(Stalls), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTimer(tick)
		defer ticker.Stop()
		for from := time.Now(); ; {
			select {
			case <-stop:
				return
			case <-ticker.C:
			}
			now := time.Now()
			if late := int64(now.Sub(from) - tick); late > s.longest.Load() {
				s.longest.Store(late)
			}
			from = now
			ticker.Reset(tick)
		}
	}()
	t.Cleanup(func() { close(stop); <-done })
	return s
}

// Longest returns the longest of them so far.
func (s *Stalls) Longest() time.Duration { return time.Duration(s.longest.Load()) }

// Excuse reports whether err may be their doing: it says that a lock was lost, which Redis keeps for d at a time.
func (s *Stalls) Excuse(err error, d time.Duration) bool {
	return errors.Is(err, rlock.ErrLost) && s.Longest() >= d/10
}

// Reset forgets those so far.
func (s *Stalls) Reset() { s.longest.Store(0) }
