package modeltest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"time"

	"relock/rlock"
)

// rwCall is a Lock, RLock, or one of their twins.
type rwCall struct {
	lockCall
	write bool
	joint int       // where it stands in its session's line; 0: nowhere yet
	maybe bool      // or another call of its owner does
	front time.Time // when it was first seen to be in front
}

type stateCall struct {
	mode   string
	owners map[string]int
}

// Ops are those of a mutex, on either side.
func (m *RW) Ops() []Op {
	own := []Op{
		{Name: "lock", Weight: 16, Do: Idle(func(r *rand.Rand, a *Actor) bool { return m.lock(r, a, nil) })},
		{Name: "nest", Weight: 8, Do: Idle(func(r *rand.Rand, a *Actor) bool {
			h := m.pick(r, a)
			return h != nil && m.lock(r, a, h)
		})},
		{Name: "unlock while a waiter is cancelled", Weight: 2, Do: Idle(func(r *rand.Rand, a *Actor) bool {
			h, calls := m.pick(r, a), m.w.Waiting()
			if h == nil || len(calls) == 0 {
				return false
			}
			m.unlock(a, h, false)
			m.race(r, calls[r.IntN(len(calls))])
			return true
		})},
		{Name: "lock and cancel at once", Weight: 2, Do: Idle(func(r *rand.Rand, a *Actor) bool {
			if m.lock(r, a, m.pick(r, a)) {
				m.race(r, a.call)
			}
			return true
		})},
		{Name: "extend a lease", Weight: 3, Do: Idle(func(r *rand.Rand, a *Actor) bool {
			h := m.pick(r, a)
			return h != nil && h.fixed && m.extend(r, a)
		})},
		{Name: "force unlock", Weight: 1, Do: Idle(func(_ *rand.Rand, a *Actor) bool {
			d, lock := new(forceCall), m.kind.New(a.Seat.Session)
			m.w.Begin(a, context.Background(), false, d, "ForceUnlock", func(ctx context.Context) (err error) {
				d.found, err = lock.ForceUnlock(ctx)
				return err
			})
			return true
		})},
		{Name: "state", Weight: 2, Do: Idle(func(_ *rand.Rand, a *Actor) bool {
			d, session := new(stateCall), a.Seat.Session
			m.w.Begin(a, context.Background(), false, d, "State", func(ctx context.Context) (err error) {
				d.mode, d.owners, err = m.kind.State(ctx, session)
				return err
			})
			return true
		})},
		{Name: "delete", Weight: 1, Do: func(*rand.Rand, *Actor) bool { return m.delete() }},
	}
	for _, op := range m.Mutex.Ops() { // those that have to do with holds
		if op.Name != turnsName && !slices.ContainsFunc(own, func(o Op) bool { return o.Name == op.Name }) {
			own = append(own, op)
		}
	}
	return own
}

// delete takes the key away under those who are in.
func (m *RW) delete() bool {
	if len(m.lives) == 0 {
		return false
	}
	m.w.Logf("the key is deleted")
	m.w.Redis.Del(m.kind.Key)
	for _, l := range m.lives {
		m.endLife(l, time.Now())
	}
	m.deleted = true
	return true
}

// lock is a Lock of either side, on a context of its own or inside another hold's section.
func (m *RW) lock(r *rand.Rand, a *Actor, inside *hold) bool {
	d, lock, ctx := new(rwCall), m.kind.New(a.Seat.Session), context.Background()
	var opts []rlock.LockOption
	if inside != nil {
		ctx, d.owner = inside.section.Context, inside.Owner()
		d.ended = ctx.Err() != nil
	} else if n := r.IntN(5); n < 2 {
		d.owner = []string{"ann", "bob"}[n]
		ctx, d.named = rlock.WithOwner(ctx, d.owner), true
	}
	if r.IntN(3) == 0 {
		d.lease = time.Millisecond << r.IntN(17) // to a minute
		opts = append(opts, rlock.Lease(d.lease))
	}
	d.write = r.IntN(5) < 2
	switch r.IntN(5) {
	case 0:
		d.try = true
	case 1:
		d.wait = time.Millisecond << r.IntN(17)
		opts = append(opts, rlock.Wait(d.wait))
	}
	do, what := lock.RLock, "RLock"
	switch {
	case d.write && d.try:
		do, what = lock.TryLock, "TryLock"
	case d.write:
		do, what = lock.Lock, "Lock"
	case d.try:
		do, what = lock.TryRLock, "TryRLock"
	}
	if inside != nil {
		what = "nested " + what
	}
	text := fmt.Sprintf("%s(owner %q, wait %v, lease %v)", what, d.owner, d.wait, d.lease)
	m.w.Begin(a, ctx, !d.try, d, text, func(ctx context.Context) error {
		section, h, err := do(ctx, opts...)
		if err == nil {
			d.h, d.in = h, m.w.Watch(section)
		}
		return err
	})
	return true
}

// race cancels a call while it may be getting in. Not on a connection that was cut and is
// not back: taking it back takes a moment then, and a Close would have to wait for it.
func (m *RW) race(r *rand.Rand, c *Call) {
	if c.Actor.Seat.link.connections() < 2 { // commands and messages
		return
	}
	for range r.IntN(60) {
		runtime.Gosched()
	}
	if d, ok := c.Data.(*rwCall); ok {
		d.raced = true
		c.Waits = c.Waits || d.write // see leaving
	}
	m.Mutex.cancel(c)
}

// Release gives one thing back. Who is leaving already is left to it.
func (m *RW) Release() bool {
	calls, _ := m.waiting()
	for _, c := range calls {
		if c.Ctx.Err() == nil {
			m.Mutex.cancel(c)
			return true
		}
	}
	for _, seat := range m.w.Seats {
		all := m.held(seat)
		for _, a := range seat.Actors {
			if seat.Session != nil && len(all) > 0 && a.call == nil {
				m.unlock(a, all[0], false)
				return true
			}
		}
	}
	return false
}
