package modeltest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"relock/rlock"
)

// claim is what an owner holds in one process, from its outermost Lock on.
type claim struct {
	seat  *Seat
	life  int
	owner string
	ctx   context.Context // given to the outermost Lock
	holds []*hold
	over  error     // how it ended; nil while it lasts
	until time.Time // the latest end of the lock that was asked for, when it was released

	// local: a private owner that began as a renewed reader. Redis counts one for it, however
	// many holds are nested, for as long as one of them lives; a nested hold with a fixed
	// lease ends by itself in memory, and the owner is renewed meanwhile.
	local bool

	granted   time.Time // when the lock was granted to it by another's release, perhaps; zero: it was not
	confirmed bool      // that is so long ago that its full lease is there

	dead bool // its process was killed
	doom
}

// A doom is the end of a claim that its session has yet to learn of.
type doom struct {
	doomed bool      // its life of the lock is over; it learns of it
	notice time.Time // until then, if it still asks,
	trust  time.Time // and until then if its context has ended
	inVain bool      // it was doomed, and has handed its claim over in memory
	// revived: it is doomed, but the same owner has entered anew elsewhere; what it asks
	// Redis for is there, so it need not learn of it.
	revived bool
}

type hold struct {
	*rlock.Hold
	t       *claim
	ctx     context.Context           // given to its Lock
	ended   atomic.Pointer[time.Time] // when that ended; nil as long as it has not
	cancel  context.CancelFunc
	section *Section
	own     bool // the section is its own, not the claim's
	fixed   bool
	byName  bool // its context names the owner; it was not nested through a section

	end     time.Time // fixed: of its trust
	until   time.Time // fixed: of its lease
	counted bool      // by Redis
	spent   bool      // unlocked
}

// watched has the hold note when its context ends, which may be between two looks of the model.
func (h *hold) watched() *hold {
	context.AfterFunc(h.ctx, func() {
		now := time.Now()
		h.ended.Store(&now)
	})
	return h
}

// Owner is that of its claim.
func (h *hold) Owner() string { return h.t.owner }

// derived reports whether a section is not that of a claim itself. Which of two Locks of one
// owner was the outermost cannot be told from the order in which they were seen to return.
func (s *Section) derived() bool { return strings.HasSuffix(fmt.Sprint(s.Context), ".WithCancel") }

func (h *hold) ranOut() bool { return h.fixed && !time.Now().Before(h.end) }

// uncertain: the session may or may not know yet that the claim is over.
func (t *claim) uncertain() bool { return t.doomed || !t.wanted() }

// wanted reports whether a context lives that wants the lock to be renewed: that of the
// outermost Lock, or that of another Lock which named the owner. A fixed lease in a local
// claim wants it whatever its contexts.
func (t *claim) wanted() bool {
	return t.ctx.Err() == nil || slices.ContainsFunc(t.holds, func(h *hold) bool {
		return !h.spent && (h.byName && !h.fixed && h.ctx.Err() == nil || t.local && h.fixed && !h.ranOut())
	})
}

func (t *claim) live() bool {
	return slices.ContainsFunc(t.holds, func(h *hold) bool { return !h.spent && !h.ranOut() })
}

// lostBy reports whether a Lock that got in found out that its owner's claim is gone, and took the lock anew: only one that
// named the owner does so. The holds that the claim had are lost then.
func (t *claim) lostBy(named bool) bool {
	return named && t.doomed && !slices.ContainsFunc(t.holds, func(h *hold) bool { return h.Remaining() > 0 })
}

// joined returns the claim that a Lock which got in has joined; nil if it has made one.
func (m *Mutex) joined(seat *Seat, owner string, named bool) *claim {
	t := m.claimOf(seat, owner)
	if t != nil && t.lostBy(named) {
		m.lose(t)
		return nil
	}
	return t
}

// renews reports whether the watchdog keeps the lock alive for this claim.
func (t *claim) renews() bool {
	return t.over == nil && !t.dead && !t.uncertain() &&
		slices.ContainsFunc(t.holds, func(h *hold) bool { return !h.spent && (!h.fixed || t.local && !h.ranOut()) })
}

// hasMore reports whether the claim has another live hold.
func (t *claim) hasMore(h *hold) bool {
	return slices.ContainsFunc(t.holds, func(o *hold) bool { return o != h && !o.spent && !o.ranOut() })
}

// held returns what the callers in the process on seat have not unlocked yet.
func (m *Mutex) held(seat *Seat) (all []*hold) {
	for _, t := range m.claims {
		for _, h := range t.holds {
			if t.seat == seat && t.life == seat.Life && !t.dead && !h.spent {
				all = append(all, h)
			}
		}
	}
	return all
}

// claimOf returns the claim of owner in the process on seat that is not over.
func (m *Mutex) claimOf(seat *Seat, owner string) *claim {
	for _, t := range m.claims {
		if t.seat == seat && t.life == seat.Life && t.owner == owner && t.over == nil && !t.dead {
			return t
		}
	}
	return nil
}
