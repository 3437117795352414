package redistest

import "time"

// MadeUpClock reports whether the caller is in a synctest bubble, whose clock begins with the year
// 2000.
func MadeUpClock() bool { return time.Now().Year() < 2020 }

// Slack is what a test allows to be added to a time that the library promises. On the made-up
// clock of a bubble nothing is late. On a real one a busy machine is, by seconds at worst: there
// a test has to tell what is right from what is wrong by times that are further apart. The real
// half of a test that has a bubble as well leaves the judgement of times to that, and waits longer.
func (s *Server) Slack() time.Duration {
	switch {
	case s.bubble != nil:
		return 50 * time.Millisecond
	case s.besideBubble:
		return 15 * time.Second
	}
	return 3 * time.Second
}

// Slowed returns d on the made-up clock of a bubble. On a real clock it returns four times as
// much: a lease that a busy machine still renews in time.
func (s *Server) Slowed(d time.Duration) time.Duration {
	if s.bubble != nil {
		return d
	}
	return 4 * d
}
