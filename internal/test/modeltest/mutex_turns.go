package modeltest

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"
)

const turnsName = "take turns"

// turns has the idle actors of a process take the lock one after the other: nobody is in the
// way of a hand-over in memory, and no time passes, unless something happens on purpose. By
// chance alone that would be rare.
func (m *Mutex) turns(r *rand.Rand, seat *Seat) bool {
	var idle []*Actor
	for _, a := range seat.Actors {
		if a.call == nil {
			idle = append(idle, a)
		}
	}
	if m.kind.Fair || m.owner != "" || len(idle) < 3 {
		return false
	}
	var calls []*Call
	for _, a := range idle {
		d, mutex := m.newLockCall(a), m.kind.New(a.Seat.Session)
		calls = append(calls, m.w.Begin(a, context.Background(), true, d, "Lock, in turns", func(ctx context.Context) error {
			section, h, err := mutex.Lock(ctx)
			if err == nil {
				d.h, d.in = h, m.w.Watch(section)
			}
			return err
		}))
		m.w.settle()
	}
	for range calls {
		held := m.held(seat)
		i := slices.IndexFunc(held, func(h *hold) bool { return h.t.over == nil })
		if m.w.Failed() || i < 0 || idle[0].call != nil {
			return true // somebody else was quicker
		}
		switch waiting := calls[len(calls)-1]; r.IntN(8) {
		case 0:
			m.w.Logf("the key is deleted")
			m.w.Redis.Del(m.kind.Key)
			m.endLife(time.Now(), false)
		case 1:
			d := time.Millisecond << r.IntN(15)
			m.w.Logf("%v pass", d)
			m.w.pass(d)
		case 2:
			if !waiting.done {
				m.unlock(idle[0], held[i], false)
				m.race(r, waiting)
				m.w.settle()
				continue
			}
		}
		if h := held[i]; h.t.over == nil && !h.spent {
			m.unlock(idle[0], h, false)
			m.w.settle()
		}
	}
	return true
}

// grantedInVain is a Lock that got the lock in memory from somebody who had lost it and did
// not know. It is told at once.
func (m *Mutex) grantedInVain(c *Call, d *lockCall, owner string) {
	t := &tenure{seat: c.Actor.Seat, life: c.Actor.Seat.Life, owner: owner, ctx: c.Ctx, doomed: true, inVain: true, notice: time.Now()}
	t.trust = t.notice
	t.holds = []*hold{{Hold: d.h, t: t, ctx: c.Ctx, cancel: c.Cancel, section: d.in}}
	m.tenures = append(m.tenures, t)
}

// handedFrom returns the tenure from which the lock was handed to an owner in memory.
func (m *Mutex) handedFrom(owner string) *tenure {
	m.mu.Lock()
	from, ok := m.handed[owner]
	m.mu.Unlock()
	if !ok {
		return nil
	}
	for _, t := range m.tenures {
		if t.owner == from {
			return t
		}
	}
	m.w.Failf("%s was let in by %s, who had nothing", owner, from)
	return nil
}

// handedOn reports whether a tenure has handed the lock on in memory.
func (m *Mutex) handedOn(t *tenure) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, from := range m.handed {
		if from == t.owner {
			return true
		}
	}
	return false
}
