package engine

import (
	"slices"
	"sync/atomic"
	"time"

	"relock/internal/lazyctx"
	"relock/internal/owner"
	"relock/locktrace"
)

// A section is what one caller has: the context of its critical section and the holds in it,
// the outermost and the nested ones. It lives in memory only; what Redis knows is the claim.
// Sections are not reused: a context that was kept leads to the section that it was made for.
//
// Its context is derived from the one given to the outermost Lock.
//
// The fields below the first group are guarded by the mutex of the claim's lock.
type section struct {
	lazyctx.Context
	claim *claim
	token atomic.Int64 // fencing token; 0 if there is none. A nested Lock may be the first to draw one

	next, prev *section // the open sections of the claim
	// until is when the section ends whatever the claim's trust is: the last of its fixed
	// leases, or, where sections share a claim, the claim's trust at the last renewal that
	// the section's context wanted; over once it has ended. See invariant I2.
	until   time.Duration
	live    [2]int32 // holds that are neither unlocked nor run out, by side
	nesting *nesting // nil without nested Locks, fixed leases and further callers
	first   Hold     // the outermost hold, here to save an allocation
}

// The endings of a section.
const (
	released        = lazyctx.Released
	lost            = lazyctx.Lost
	closed          = lazyctx.Closed
	lostAndUnlocked = lazyctx.LostAndUnlocked
)

func (x *section) String() string { return "relock section of " + x.claim.ownerID() }

// Value is that of the context.
func (x *section) Value(key any) any {
	switch key {
	case owner.Key{}:
		if x.claim.kind.Permits {
			break // permits cannot be re-entered: the owner around them stays
		}
		return x
	case sectionKey{}:
		return x
	}
	return x.Context.Value(key)
}

// hasEnded reports whether the section has ended.
func (x *section) hasEnded() bool { return x.Ended() != 0 }

// over is a time that is past.
const over = time.Duration(-1)

// close ends an open section, and reports whether there are contexts to be cancelled: by cancel,
// without the mutex.
func (x *section) close(why lazyctx.Ending) (cancel bool) {
	cancel, x.until = x.End(why), over
	if x.prev != nil {
		x.prev.next = x.next
	} else {
		x.claim.sections = x.next
	}
	if x.next != nil {
		x.next.prev = x.prev
	}
	x.next, x.prev = nil, nil
	return cancel || x.nesting != nil
}

// end closes an open section, and has its contexts cancelled when the mutex is released.
func (x *section) end(why lazyctx.Ending) {
	if x.close(why) {
		x.claim.lock.later(x.cancel)
	}
}

// cancel ends the contexts of a section that was closed. Cancelling runs code of the caller's
// contexts, so no mutex may be held.
func (x *section) cancel() {
	x.Cancel()
	if x.nesting != nil {
		x.nesting.cancel(x.Ended().Cause())
	}
}

// add counts a hold in the section.
func (x *section) add(h *Hold) {
	x.live[h.side]++
	if h.fixed != nil {
		n := x.needNesting()
		n.fixed = append(n.fixed, h)
		x.resetEnd()
		return
	}
	switch {
	case !x.claim.kind.Shares:
		x.until = never
	case x.auto() == 1: // fixed leases no longer count; renewals move the end
		x.until = x.claim.trust
	default:
		x.until = max(x.until, x.claim.trust)
	}
}

// remove takes a hold out of the count, and returns how many are left: see held.
func (x *section) remove(h *Hold) (left int) {
	if x.claim.num == 0 {
		x.claim.account.Drop(h)
	}
	if !h.ranOut {
		x.live[h.side]--
	}
	if x.nesting == nil {
		return int(x.live[0] + x.live[1])
	}
	delete(x.nesting.traces, h)
	if h.ranOut {
		x.nesting.spent[h.side]--
		return x.held()
	}
	if !x.hasEnded() {
		x.nesting.fixed = slices.DeleteFunc(x.nesting.fixed, func(f *Hold) bool { return f == h })
		x.nesting.callers = slices.DeleteFunc(x.nesting.callers, func(c caller) bool { return c.hold == h })
		x.resetEnd()
	}
	return x.held()
}

// held returns the number of live holds of both sides, and of those that are just being taken.
func (x *section) held() int {
	n := x.live[0] + x.live[1]
	if x.nesting != nil {
		n += x.nesting.entering[0] + x.nesting.entering[1]
	}
	return int(n)
}

// auto returns how many of the live holds the watchdog renews; the section is open.
func (x *section) auto() int { return int(x.live[0]+x.live[1]) - len(x.fixedHolds()) }

// fixedHolds returns the live holds with a fixed lease.
func (x *section) fixedHolds() []*Hold {
	if x.nesting == nil {
		return nil
	}
	return x.nesting.fixed
}

// resetEnd sets the end of a section that only holds with fixed leases keep: it ends with the
// last of them.
func (x *section) resetEnd() {
	if x.auto() == 0 && len(x.fixedHolds()) > 0 {
		x.until = x.lastFixed(func(h *Hold) time.Duration { return h.until })
	}
}

// lastFixed returns the latest of a time of the holds with a fixed lease; 0 if there are none.
func (x *section) lastFixed(of func(h *Hold) time.Duration) (last time.Duration) {
	for _, h := range x.fixedHolds() {
		last = max(last, of(h))
	}
	return last
}

// runOut ends the holds whose fixed lease is over, and returns those with a context of their
// own to be cancelled, without the mutex.
func (x *section) runOut(now time.Duration) (ended []*Hold) {
	if x.nesting == nil {
		return nil
	}
	kept := x.nesting.fixed[:0]
	for _, h := range x.nesting.fixed {
		if h.until > now {
			kept = append(kept, h)
			continue
		}
		h.ranOut = true
		x.endTrace(h, locktrace.HoldExpired)
		x.live[h.side]--
		x.nesting.spent[h.side]++
		if h.cancel != nil {
			ended = append(ended, h)
		}
	}
	clear(x.nesting.fixed[len(kept):])
	x.nesting.fixed = kept
	if ended != nil || x.auto() == 0 {
		x.resetEnd()
	}
	return ended
}

// alive reports whether the context of the outermost Lock lives, or that of a caller that came
// in under the same name. It may run code of the caller's contexts: no mutex may be held.
func (x *section) alive(callers []caller) bool {
	if x.Err() == nil {
		return true
	}
	for _, c := range callers {
		if c.ctx.Err() == nil {
			return true
		}
	}
	return false
}
