package semaphore_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"relock/internal/test/modeltest"
	"relock/rlock"
	"relock/semaphore"
)

// The judge.

func (m *permitModel) Check(ended []*modeltest.Call) {
	redis, wasGone := m.read(), m.gone
	m.gone = !m.exists
	for _, c := range ended {
		switch d := c.Data.(type) {
		case limitCall:
			if c.Err != nil {
				m.w.Failf("%s returned %v", c.Text, c.Err)
			}
			m.exists, m.total, m.highest = true, d.limit, max(m.highest, d.limit)
			if d.reaps {
				// TOLERATED: set_limit.lua tells nobody when as many permits had expired
				// as the limit was lowered by. A caller that waits for more than the limit then
				// learns of it by the clock only.
				m.untold = time.Now()
			}
		case *availableCall:
			if least := d.want - gotBy(ended); c.Err != nil || d.got > d.want || d.got < least {
				m.w.Failf("%s returned %d, %v, want %d, or down to %d", c.Text, d.got, c.Err, d.want, least)
			}
		}
	}
	m.made(ended, redis)
	for _, c := range ended {
		if d, ok := c.Data.(*setCall); ok {
			m.setEnded(c, d, ended)
		}
	}
	granted := false           // by Redis
	var began []*rlock.Session // whose time slice has
	for _, failed := range []bool{true, false} {
		for _, c := range ended {
			if d, ok := c.Data.(*acquireCall); ok && failed == (c.Err != nil) {
				if failed {
					m.refused(c, d, wasGone)
				} else if !m.granted(c, d) {
					granted, began = true, append(began, c.Actor.Seat.Session)
				}
			}
		}
	}
	for _, s := range began {
		m.passes[s] = 0
	}
	m.checkRedis(redis)
	if free := m.free(0); granted && free < 0 {
		m.w.Failf("%d more permits are taken than the limit of %d allows", -free, m.limit(0))
	}
	for _, s := range m.sets {
		if !s.dead {
			m.notice(s, wasGone)
			m.checkSection(s)
		}
	}
	m.checkWaiting()
	m.gone = !m.exists
	m.sets = slices.DeleteFunc(m.sets, func(s *permitSet) bool { return !s.there && (s.spent || s.dead) })
}

// gotBy is how many permits callers have got in this moment: where some had expired before, Available lets in who waits.
func gotBy(ended []*modeltest.Call) (n int) {
	for _, c := range ended {
		if d, ok := c.Data.(*acquireCall); ok && c.Err == nil {
			n += d.n
		}
	}
	return n
}

// made notes that an Acquire has made the semaphore, with the limit of its handle.
func (m *permitModel) made(ended []*modeltest.Call, redis stored) {
	if m.exists || redis.free == "" {
		return
	}
	free, _ := strconv.Atoi(redis.free)
	m.exists, m.total = true, free+redis.card
	for _, c := range append(m.waiting(nil), ended...) {
		if d, ok := c.Data.(*acquireCall); ok && d.own == m.total && d.n <= d.own {
			return
		}
	}
	m.w.Failf("the semaphore came to be with the limit %d, and nobody asked for that", m.total)
}

func (m *permitModel) setEnded(c *modeltest.Call, d *setCall, ended []*modeltest.Call) {
	s, now := d.s, time.Now()
	successor := false
	for _, o := range ended {
		a, ok := o.Data.(*acquireCall)
		if !ok || d.d != 0 || d.again || s.over != nil || o.Actor.Seat != s.seat || a.n != s.n || a.try || s.fixed || a.lease > 0 {
			continue
		}
		successor = successor || o.Err == nil && a.p.Owner() == s.p.Owner()
		// The session does not know of the loss when it hands permits over, also to a caller
		// that is cancelled in that moment.
		if (successor || a.raced) && errors.Is(d.want, rlock.ErrLost) && s.p.N() == a.n {
			d.or = nil
		}
	}
	if d.empty && m.exists && errors.Is(d.want, rlock.ErrLost) && s.over == nil && s.missing.IsZero() {
		d.or = nil // somebody may have made it anew in this very moment, before or after
	}
	if !errors.Is(c.Err, d.want) && !errors.Is(c.Err, d.or) || c.Err != nil && d.want == nil && d.or == nil {
		m.w.Failf("%s returned %v, want %v", c.Text, c.Err, d.want)
	}
	lost := errors.Is(c.Err, rlock.ErrLost)
	switch {
	case d.again:
	case d.d == 0:
		s.spent, m.left, m.gave = true, now, now
		m.spent = append(m.spent[max(0, len(m.spent)-9):], s)
		switch {
		case successor: // granted sees to it
		case c.Err == nil, lost && s.over == nil && d.empty: // those of a deleted one are taken away
			s.there = false
		case lost:
			s.mayGo = true
		}
		if s.over == nil && s.ctx.Err() == nil && !errors.Is(context.Cause(s.section), rlock.ErrReleased) {
			m.w.Failf("after %s the cause is %v", c.Text, context.Cause(s.section))
		}
	case c.Err == nil:
		s.lease, s.end = d.d, now.Add(trusted(d.d))
		s.asked, s.expires = now.Add(d.d), now.Add(d.d)
	case lost && s.over == nil:
		s.over = rlock.ErrLost
	}
}

// refused is an Acquire or TryAcquire that failed.
func (m *permitModel) refused(c *modeltest.Call, d *acquireCall, wasGone bool) {
	never := d.n < 1 || d.n > m.limit(d.own) || d.n > d.own && wasGone
	switch {
	case errors.Is(c.Err, semaphore.ErrLimit):
		if !never {
			m.w.Failf("%s returned %v, and the limit is %d", c.Text, c.Err, m.limit(d.own))
		}
	case d.n < 1:
		m.w.Failf("%s returned %v", c.Text, c.Err)
	case d.excused(c):
	case d.try && errors.Is(c.Err, rlock.ErrNotAcquired) && (d.behind || d.n > d.free && d.n <= d.limit):
	default:
		m.w.Failf("%s returned %v; %d of %d were free", c.Text, c.Err, d.free, d.limit)
	}
}

// granted is an Acquire or TryAcquire that has got permits: from Redis, or, it reports, in
// memory from a caller that has just released them.
func (m *permitModel) granted(c *modeltest.Call, d *acquireCall) (handedOver bool) {
	now := time.Now()
	if wrong := m.outOfTurn(c, &d.request); wrong != "" {
		m.w.Failf("%s got permits: %s", c.Text, wrong)
	}
	if d.try && d.n > d.free || d.n != d.p.N() {
		m.w.Failf("%s got %d permits; %d were free", c.Text, d.p.N(), d.free)
	}
	s := &permitSet{p: d.p, inRedis: inRedis{mayBeGranted: !d.try && d.lease == 0, there: true, granted: now}, seat: c.Actor.Seat, life: c.Life, n: d.n, ctx: c.Ctx, cancel: c.Cancel, section: d.in,
		lease: m.w.Config.Lease}
	if d.lease > 0 {
		s.fixed, s.lease, s.end = true, d.lease, now.Add(trusted(d.lease))
	}
	s.asked, s.expires = now.Add(s.lease), now.Add(s.lease)
	if owner := d.p.Owner(); m.owners[owner] {
		m.handedOver(c, d, s)
		handedOver = true
	} else {
		m.owners[owner] = true
	}
	m.sets = append(m.sets, s)
	return handedOver
}

// handedOver: permits pass to the caller in front if it wants exactly as many, for the time
// slice. Redis hears nothing of it, so s is what it was before.
func (m *permitModel) handedOver(c *modeltest.Call, d *acquireCall, s *permitSet) {
	limit, now := m.w.Config.HandOverLimit, time.Now()
	i := slices.IndexFunc(m.sets, func(old *permitSet) bool { return old.p.Owner() == d.p.Owner() })
	if i < 0 {
		m.w.Failf("%s got permits of an owner that was used before, %s", c.Text, d.p.Owner())
		return
	}
	old := m.sets[i]
	m.sets = slices.Delete(m.sets, i, i+1)
	s.granted, s.asked, s.expires = old.granted, old.asked, old.expires
	s.there, s.missing, s.byLine, s.mayBeGranted = old.there, old.missing, old.byLine, false
	s.lease = old.lease
	m.passes[c.Actor.Seat.Session]++
	passes := m.passes[c.Actor.Seat.Session]
	switch {
	case !old.spent || old.over != nil || old.seat != s.seat || old.life != s.life:
		m.w.Failf("%s got the %v, which nobody has released", c.Text, old)
	case old.fixed || s.fixed || old.n != s.n || d.try:
		m.w.Failf("%s got the %v in memory", c.Text, old)
	case limit < 0 || limit > 0 && passes > limit || now.Sub(s.granted) > 100*time.Millisecond:
		m.w.Failf("%s got the %v in memory, after %d others and %v; the limit is %d", c.Text, old, passes-1, now.Sub(s.granted), limit)
	}
}

// notice: a session knows in time when permits are lost, and does not think so otherwise.
func (m *permitModel) notice(s *permitSet, wasGone bool) {
	if s.over != nil || s.spent {
		return
	}
	now, left := time.Now(), s.p.Remaining()
	from, to := s.trust()
	since := s.missing
	if since.IsZero() && !m.exists {
		since = m.untold
	}
	late := m.w.Config.Lease/3 + time.Millisecond
	if !m.w.Calm(m.w.Config.Lease) { // the first try to ask may have failed
		late += 2 * time.Second
	}
	switch {
	case left > 0 && now.Add(left).After(to):
		m.w.Failf("the %v are trusted for %v, and Redis keeps them for %v", s, left, time.Until(s.expires))
	case left > 0 && !since.IsZero() && s.ctx.Err() == nil && now.After(since.Add(late)):
		m.w.Failf("the loss of the %v was not noticed for %v", s, now.Sub(since))
	case left > 0:
	case since.IsZero() && !wasGone && now.Before(from), since.IsZero() && !wasGone && !s.fixed && s.ctx.Err() == nil:
		m.w.Failf("it was said that the %v are lost, and they are not", s)
	default:
		s.over = rlock.ErrLost
	}
}
