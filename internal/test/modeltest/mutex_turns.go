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
		calls = append(calls, m.begin(a, context.Background(), m.newLockCall(a), "Lock, in turns"))
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

// grantedInVain is a Lock that was handed a claim in memory that was lost, though the session
// did not know. It learns of it as the section before it would have: claims are renewed again
// from then on.
func (m *Mutex) grantedInVain(c *Call, d *lockCall, from *claim) {
	t := &claim{seat: c.Actor.Seat, life: c.Actor.Seat.Life, owner: from.owner, ctx: c.Ctx, doom: doom{doomed: true, notice: from.notice, trust: from.trust}}
	if next := time.Now().Add(m.w.Config.Lease/3 + time.Millisecond); next.After(t.notice) {
		t.notice = next
	}
	h := &hold{Hold: d.h, t: t, ctx: c.Ctx, cancel: c.Cancel, section: d.in}
	t.holds = []*hold{h.watched()}
	m.claims = append(m.claims, t)
}

// handedFrom returns the claim before the one that an owner has just been granted, if that
// was in memory.
func (m *Mutex) handedFrom(owner string) *claim {
	for _, t := range slices.Backward(m.claims) {
		if t.owner == owner && m.wasHandedOver(owner) {
			return t
		}
	}
	return nil
}

// wasHandedOver reports whether the claim of an owner was handed over since the last look.
func (m *Mutex) wasHandedOver(owner string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.handed[owner]
}

// forgetHandOvers is the end of a look.
func (m *Mutex) forgetHandOvers() {
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.handed)
}
