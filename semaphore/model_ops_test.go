package semaphore_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"relock/internal/test/modeltest"
	"relock/rlock"
	"relock/semaphore"
)

type acquireCall struct {
	request
	own         int           // the limit of the handle
	limit, free int           // when it began
	lease       time.Duration // 0: the watchdog renews
	p           *semaphore.Permits
	in          *modeltest.Section
}

// setCall is a Release or an Extend.
type setCall struct {
	s     *permitSet
	d     time.Duration // Extend
	again bool          // Release, and not the first
	empty bool          // the semaphore did not exist
	want  error         // by what was so when it began
	or    error         // this may be instead
}

type limitCall struct {
	limit int
	reaps bool // permits had expired
}

type availableCall struct{ want, got int }

func (m *permitModel) Ops() []modeltest.Op {
	withPermits := func(do func(r *rand.Rand, a *modeltest.Actor, s *permitSet)) func(*rand.Rand, *modeltest.Actor) bool {
		return func(r *rand.Rand, a *modeltest.Actor) bool {
			s := m.pick(r, a)
			if s != nil {
				do(r, a, s)
			}
			return s != nil
		}
	}
	return []modeltest.Op{
		{Name: "acquire", Weight: 22, Do: modeltest.Idle(func(r *rand.Rand, a *modeltest.Actor) bool {
			if time.Now().Before(m.rest) {
				return false
			}
			m.acquire(r, a)
			return true
		})},
		{Name: "acquire and cancel at once", Weight: 2, Do: modeltest.Idle(func(r *rand.Rand, a *modeltest.Actor) bool {
			if !m.mayRace() || time.Now().Before(m.rest) {
				return false
			}
			m.race(r, m.acquire(r, a))
			return true
		})},
		{Name: "release", Weight: 16, Do: modeltest.Idle(withPermits(func(_ *rand.Rand, a *modeltest.Actor, s *permitSet) {
			m.release(a, s)
		}))},
		{Name: "release while a waiter is cancelled", Weight: 2, Do: modeltest.Idle(withPermits(func(r *rand.Rand, a *modeltest.Actor, s *permitSet) {
			m.release(a, s)
			if all := m.waiting(nil); len(all) > 0 {
				m.race(r, all[r.IntN(len(all))])
			}
		}))},
		{Name: "release again", Weight: 1, Do: modeltest.Idle(func(r *rand.Rand, a *modeltest.Actor) bool {
			if len(m.spent) > 0 {
				m.release(a, m.spent[r.IntN(len(m.spent))])
			}
			return len(m.spent) > 0
		})},
		{Name: "extend", Weight: 3, Do: modeltest.Idle(withPermits(m.extend))},
		{Name: "cancel", Weight: 4, Do: m.cancelOne},
		{Name: "end the context", Weight: 1, Do: withPermits(func(_ *rand.Rand, _ *modeltest.Actor, s *permitSet) {
			m.w.Logf("the context of the %v ends", s)
			s.cancel()
		})},
		{Name: "set limit", Weight: 5, Do: modeltest.Idle(m.setLimit)},
		{Name: "available", Weight: 6, Do: modeltest.Idle(func(r *rand.Rand, a *modeltest.Actor) bool {
			own := 4 + r.IntN(2)
			h, d := m.handle(a.Seat, own), &availableCall{want: max(0, m.free(own))}
			m.w.Begin(a, context.Background(), false, d, "Available", func(ctx context.Context) (err error) {
				d.got, err = h.Available(ctx)
				return err
			})
			return true
		})},
		{Name: "delete", Weight: 2, Do: m.delete},
	}
}

// acquire is an Acquire or TryAcquire.
func (m *permitModel) acquire(r *rand.Rand, a *modeltest.Actor) *modeltest.Call {
	d := &acquireCall{request: m.draw(r, a), own: 4 + r.IntN(2)}
	d.limit, d.free = m.limit(d.own), m.free(d.own)
	h := m.handle(a.Seat, d.own)
	do, opts, what := h.Acquire, d.options(), "Acquire"
	if d.try && r.IntN(2) == 0 {
		do, opts, what = h.TryAcquire, nil, "TryAcquire"
	}
	if r.IntN(3) == 0 {
		d.lease = time.Millisecond << r.IntN(16) // to half a minute: in the end only one passes
		opts = append(opts, rlock.Lease(d.lease))
	}
	text := fmt.Sprintf("%s(%v, lease %v, of %d)", what, d.request, d.lease, d.own)
	return m.w.Begin(a, context.Background(), !d.try, d, text, func(ctx context.Context) error {
		section, p, err := do(ctx, d.n, opts...)
		if err == nil {
			d.p, d.in = p, m.w.Watch(section)
		}
		return err
	})
}

// standing returns why permits do not hold any more, if they do not.
func (m *permitModel) standing(s *permitSet) (want, or error) {
	switch from, to := s.trust(); {
	case s.over != nil:
		return s.over, s.over
	case !s.missing.IsZero(), !m.exists, !s.alive(), !time.Now().Before(to):
		return rlock.ErrLost, rlock.ErrLost
	case time.Now().Before(from):
		return nil, nil
	}
	return nil, rlock.ErrLost
}

func (m *permitModel) release(a *modeltest.Actor, s *permitSet) {
	d := &setCall{s: s, again: s.spent, empty: !m.exists}
	if d.want, d.or = m.standing(s); s.spent {
		d.want, d.or = rlock.ErrNotHeld, rlock.ErrNotHeld
	}
	m.w.Begin(a, context.Background(), false, d, fmt.Sprintf("Release of the %v", s), func(context.Context) error {
		return s.p.Release()
	})
}

func (m *permitModel) extend(r *rand.Rand, a *modeltest.Actor, s *permitSet) {
	d := &setCall{s: s, d: time.Millisecond << r.IntN(16)}
	if d.want, d.or = m.standing(s); !s.fixed {
		d.want, d.or = rlock.ErrArgument, rlock.ErrArgument
	}
	m.w.Begin(a, context.Background(), false, d, fmt.Sprintf("Extend of the %v by %v", s, d.d), func(ctx context.Context) error {
		return s.p.Extend(ctx, d.d)
	})
}

func (m *permitModel) setLimit(r *rand.Rand, a *modeltest.Actor) bool {
	if time.Now().Before(m.rest) {
		return false
	}
	d := limitCall{limit: 2 + r.IntN(7)}
	d.reaps = slices.ContainsFunc(m.sets, func(s *permitSet) bool { return s.there && !s.alive() })
	if r.IntN(15) == 0 {
		d.limit = 0
	}
	h := m.handle(a.Seat, 4+r.IntN(2))
	m.w.Begin(a, context.Background(), false, d, fmt.Sprintf("SetLimit(%d)", d.limit), func(ctx context.Context) error {
		return h.SetLimit(ctx, d.limit)
	})
	return true
}

// delete: somebody deletes one of the keys, or both.
func (m *permitModel) delete(r *rand.Rand, _ *modeltest.Actor) bool {
	both := r.IntN(3) == 0
	if both || r.IntN(2) == 0 {
		m.w.Logf("the number of free permits is deleted")
		m.w.Redis.Del(modelName)
		m.exists, m.gone, m.untold = false, true, time.Now()
		if !both {
			if r.IntN(2) == 0 {
				m.rest = time.Now().Add(m.w.Config.Lease)
			}
			return true
		}
	}
	m.w.Logf("the taken permits are deleted")
	m.w.Redis.Del(zset(modelName))
	m.untold = time.Now()
	for _, s := range m.sets {
		if s.there {
			s.there, s.missing = false, time.Now()
			m.total -= s.n
		}
	}
	return true
}
