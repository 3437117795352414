package semaphore_test

import (
	"context"
	"fmt"
	"time"

	"relock/internal/test/modeltest"
	"relock/semaphore"
)

// permitSet is what one Acquire got.
type permitSet struct {
	p       *semaphore.Permits
	seat    *modeltest.Seat
	life    int
	n       int
	ctx     context.Context // given to Acquire
	cancel  context.CancelFunc
	section *modeltest.Section
	fixed   bool
	lease   time.Duration // since the last Acquire or Extend
	end     time.Time     // fixed: of its trust

	inRedis

	over  error // how the section ended; nil while it lasts
	spent bool  // released by the caller
	dead  bool  // the process was killed
}

// inRedis is what Redis has of a set, and may.
type inRedis struct {
	there   bool      // it has them
	granted time.Time // by Redis; they may have been handed over since
	asked   time.Time // when they are to expire, not compared yet with Redis
	expires time.Time // as Redis said last
	missing time.Time // since when they are deleted
	mayGo   bool      // a release in the background may or may not find them

	mayBeGranted bool // by another's release: it waited, and has no lease of its own
	byLine       bool // it was, and was not confirmed since
}

func (s *permitSet) String() string { return fmt.Sprintf("%d permits of %s", s.n, s.p.Owner()) }

// alive: Redis counts them as taken; it counts milliseconds.
func (s *permitSet) alive() bool { return s.there && s.expires.UnixMilli() > time.Now().UnixMilli() }

// trusted is how much of a lease a session trusts.
func trusted(lease time.Duration) time.Duration { return lease - min(lease/20, time.Second) }

// trust returns when the session stops to trust them, at the earliest and at the latest.
func (s *permitSet) trust() (from, to time.Time) {
	if s.fixed {
		return s.end, s.end
	}
	sent := s.expires.Add(-s.lease) // scripts count whole milliseconds, and one more
	return sent.Add(trusted(s.lease) - time.Millisecond), sent.Add(trusted(s.lease))
}
