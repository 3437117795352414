package semaphore_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"relock/internal/waiting"
)

// stored is what Redis has.
type stored struct {
	free    string // "": nothing
	card    int
	expires map[string]time.Time // of each permit
}

func (m *permitModel) read() stored {
	st := stored{expires: map[string]time.Time{}}
	st.free, _ = m.w.Redis.Get(modelName)
	ids, _ := m.w.Redis.ZMembers(zset(modelName))
	for _, id := range ids {
		ms, _ := m.w.Redis.ZScore(zset(modelName), id)
		st.expires[id] = time.UnixMilli(int64(ms))
		st.card++
	}
	return st
}

// checkRedis compares the model with what Redis has.
func (m *permitModel) checkRedis(redis stored) {
	if free, err := strconv.Atoi(redis.free); m.exists != (redis.free != "") || m.exists && (err != nil || free+redis.card != m.total) {
		m.w.Failf("Redis has %q free permits and %d taken ones, want %d together", redis.free, redis.card, m.limit(0))
	}
	for _, s := range m.sets {
		var ids []time.Time
		for _, id := range raw(s.p) {
			if at, ok := redis.expires[id]; ok {
				ids = append(ids, at)
				delete(redis.expires, id)
			}
		}
		switch {
		case len(ids) == 0 && s.there && s.alive() && !s.mayGo:
			m.w.Failf("Redis does not have the %v", s)
		case len(ids) == 0:
			if s.there && !s.alive() { // another request has found them expired
				m.reaped += s.n
			}
			s.there = false
		case !s.there || len(ids) != s.n || slices.ContainsFunc(ids, func(at time.Time) bool { return !at.Equal(ids[0]) }):
			m.w.Failf("of the %v (there: %v) Redis has %v", s, s.there, ids)
		default:
			m.checkExpiry(s, ids[0])
		}
	}
	if len(redis.expires) > 0 {
		m.w.Failf("Redis has permits that nobody took: %v", redis.expires)
	}
}

// checkExpiry compares the model with the time when Redis takes a set away.
func (m *permitModel) checkExpiry(s *permitSet, at time.Time) {
	latest := time.Now().Add(m.w.Config.Lease + 2*time.Millisecond)
	if s.byLine && !at.Equal(s.expires) && s.asked.IsZero() { // it was confirmed
		s.byLine, s.lease = false, m.w.Config.Lease
	}
	renewed := !s.fixed && !s.dead && !s.spent && s.over == nil && s.ctx.Err() == nil && m.exists
	switch {
	case !s.asked.IsZero() && s.mayBeGranted && !at.Before(s.granted.Add(waiting.GrantLease)) && !at.After(s.granted.Add(waiting.GrantLease+2*time.Millisecond)):
		s.byLine, s.lease = true, waiting.GrantLease // another's release has given them
	case !s.asked.IsZero():
		if at.Before(s.asked) || at.After(s.asked.Add(2*time.Millisecond)) {
			m.w.Failf("the %v expire at %v, want %v", s, at, s.asked)
		}
	case s.byLine && !s.dead && !s.spent && s.over == nil && m.exists && m.w.Calm(m.w.Config.Lease):
		// They are confirmed after a moment, whatever has become of the section's context; at once if another caller of
		// the process waits.
		if age := time.Since(s.granted); age > waiting.ConfirmAfter || age > 0 && len(m.waiting(s.seat)) > 0 {
			m.w.Failf("the %v were granted %v ago, and are not confirmed", s, age)
		}
	case s.byLine:
	case renewed && (at.Before(s.expires) || at.After(latest) || time.Until(at) < m.w.Config.Lease/2):
		m.w.Failf("the %v are renewed, and have %v to live, after %v", s, time.Until(at), time.Until(s.expires))
	case !renewed && !at.Equal(s.expires) && (s.fixed || s.dead || s.spent):
		m.w.Failf("the %v expire at %v, and nobody has changed that from %v", s, at, s.expires)
	}
	s.asked, s.expires = time.Time{}, at
}

// checkSection compares the model with what the caller was told.
func (m *permitModel) checkSection(s *permitSet) {
	open, cause := s.section.Err() == nil, context.Cause(s.section)
	over := s.spent || s.over != nil
	switch {
	case open && (over || s.ctx.Err() != nil):
		m.w.Failf("the section of the %v is open, and should have ended: %v, %v", s, s.over, s.ctx.Err())
	case !open && !over && s.ctx.Err() == nil:
		m.w.Failf("the section of the %v has ended: %v", s, cause)
	case !open && !s.spent && s.ctx.Err() == nil && !errors.Is(cause, s.over):
		m.w.Failf("the section of the %v ended with the cause %v, want %v", s, cause, s.over)
	}
}

// checkWaiting checks that no request waits for longer than it must.
func (m *permitModel) checkWaiting() {
	floor := m.w.Config.PollFloor + 2*time.Millisecond
	m.readLine()
	told := m.calm() && (m.untold.IsZero() || time.Since(m.untold) > floor)
	if time.Since(m.line.since) > waiting.FirstPatience+2*time.Millisecond {
		m.reaped = 0
	}
	free := m.limit(0) - m.reaped
	for _, s := range m.sets {
		// The caller in front knows when the next permit expires from the last answer that it got.
		if s.there && !m.knows(s.lease, time.Since(s.expires)) {
			free -= s.n
		}
	}
	for _, c := range m.overdue() {
		m.w.Failf("%v: %s still waits", c.Actor, c.Text)
	}
	for _, c := range m.waiting(nil) {
		d := c.Data.(*acquireCall)
		switch front := m.waiting(c.Actor.Seat)[0] == c; {
		case d.n < 1 || d.n > m.highest && m.calm():
			m.w.Failf("%v: %s waits, and the limit was never more than %d", c.Actor, c.Text, m.highest)
		case !front || !told:
		case !m.exists:
			m.w.Failf("%v: %s waits for a semaphore that does not exist", c.Actor, c.Text)
		case d.n > m.total:
			m.w.Failf("%v: %s waits, and the limit is %d", c.Actor, c.Text, m.total)
		default:
			if wrong := m.mustGetIn(c, free); wrong != "" {
				m.w.Failf("%v: %s waits, and %s", c.Actor, c.Text, wrong)
			}
		}
	}
}
