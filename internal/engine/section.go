package engine

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"relock/internal/owner"
	"relock/internal/stdcontext"
	"relock/locktrace"
)

// A section is what one caller has: the context of its critical section and the holds in it,
// the outermost and the nested ones. It lives in memory only; what Redis knows is the claim.
// Sections are not reused: a context that was kept leads to the section that it was made for.
//
// Its context is derived from the one given to the outermost Lock. What can be cancelled is
// made at the first call of Done, or for the cause: most sections end before that.
//
// The fields below the first group are guarded by the mutex of the claim's lock.
type section struct {
	parent context.Context
	claim  *claim
	made   atomic.Pointer[cancellation]
	token  atomic.Int64 // fencing token; 0 if there is none. A nested Lock may be the first to draw one

	next, prev *section // the open sections of the claim
	// until is when the section ends whatever the claim's trust is: the last of its fixed
	// leases, or, where sections share a claim, the claim's trust at the last renewal that
	// the section's context wanted. See invariant I2.
	until   time.Duration
	live    [2]int32     // holds that are neither unlocked nor run out, by side
	auto    int32        // the live ones that the watchdog renews
	ended   atomic.Int32 // why it has ended, an ending; read without the mutex too
	nesting *nesting     // nil without nested Locks, fixed leases and further callers
	first   Hold         // the outermost hold, here to save an allocation
}

// An ending is why a section has ended; 0 while it is open.
type ending int32

const (
	released ending = iota + 1
	lost
	closed
	lostAndUnlocked // lost, and all its holds have been unlocked since
)

func (e ending) cause() error {
	return [...]error{nil, ErrReleased, ErrLost, ErrClosed, ErrLost}[e]
}

// A cancellation is what can be cancelled of a section's context.
type cancellation struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
}

func (x *section) Deadline() (time.Time, bool) { return x.parent.Deadline() }
func (x *section) Done() <-chan struct{}       { return x.cancellation().ctx.Done() }
func (x *section) String() string              { return "relock section of " + x.claim.ownerID() }

func (x *section) Err() error {
	if m := x.made.Load(); m == nil && !x.hasEnded() && x.parent.Err() == nil {
		return nil
	}
	// Made now, so that the first reason stays the reason.
	return x.cancellation().ctx.Err()
}

func (x *section) Value(key any) any {
	switch key {
	case owner.Key{}:
		if x.claim.kind.Permits {
			break // permits cannot be re-entered: the owner around them stays
		}
		return x
	case sectionKey{}:
		return x
	case stdcontext.CancelKey: // context.Cause, and the children of this context
		return x.cancellation().ctx.Value(key)
	}
	return x.parent.Value(key)
}

// hasEnded reports whether the section has ended.
func (x *section) hasEnded() bool { return x.ended.Load() != 0 }

func (x *section) cancellation() *cancellation {
	m := x.made.Load()
	if m == nil {
		m = new(cancellation)
		m.ctx, m.cancel = context.WithCancelCause(x.parent)
		if !x.made.CompareAndSwap(nil, m) {
			m.cancel(nil)
			m = x.made.Load()
		}
	}
	if e := ending(x.ended.Load()); e != 0 {
		m.cancel(e.cause()) // the section ended before there was anything to cancel
	}
	return m
}

// close ends an open section, and reports whether there are contexts to be cancelled: by cancel,
// without the mutex.
func (x *section) close(why ending) (cancel bool) {
	x.ended.Store(int32(why))
	if x.prev != nil {
		x.prev.next = x.next
	} else {
		x.claim.sections = x.next
	}
	if x.next != nil {
		x.next.prev = x.prev
	}
	x.next, x.prev = nil, nil
	return x.made.Load() != nil || x.nesting != nil
}

// end closes an open section, and has its contexts cancelled when the mutex is released.
func (x *section) end(why ending) {
	if x.close(why) {
		x.claim.lock.later(x.cancel)
	}
}

// cancel ends the contexts of a section that was closed. Cancelling runs code of the caller's
// contexts, so no mutex may be held.
func (x *section) cancel() {
	cause := ending(x.ended.Load()).cause()
	if m := x.made.Load(); m != nil {
		m.cancel(cause)
	}
	if x.nesting != nil {
		x.nesting.cancel(cause)
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
	x.auto++
	switch {
	case !x.claim.kind.Shares:
		x.until = never
	case x.auto == 1: // fixed leases no longer count; renewals move the end
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
		if h.fixed == nil {
			x.auto--
		}
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
	}
	x.resetEnd()
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
	if x.auto == 0 && len(x.fixedHolds()) > 0 {
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
	if ended != nil || x.auto == 0 {
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
