package engine

import (
	"sync/atomic"
	"time"

	"relock/internal/holds"
)

// A section is what one caller has: the context of its critical section and the holds in it,
// the outermost and the nested ones. It lives in memory only; what Redis knows is the claim.
// Sections are not reused: a context that was kept leads to the section that it was made for.
//
// Its context is derived from the one given to the outermost Lock.
//
// The fields below the first group are guarded by the mutex of the claim's lock.
type section struct {
	ctx   holds.Context // not embedded, as the holds: users have a section as a context
	claim *claim
	token atomic.Int64 // fencing token; 0 if there is none. A nested Lock may be the first to draw one

	next, prev *section // the open sections of the claim
	holds      holds.Set
	first      Hold // the outermost hold, here to save an allocation
}

// The endings of a section.
const (
	released        = holds.Released
	lost            = holds.Lost
	closed          = holds.Closed
	lostAndUnlocked = holds.LostAndUnlocked
)

func (x *section) Deadline() (time.Time, bool) { return x.ctx.Deadline() }
func (x *section) Done() <-chan struct{}       { return x.ctx.Done() }
func (x *section) Err() error                  { return x.ctx.Err() }
func (x *section) String() string              { return "relock section of " + x.claim.ownerID() }

// Value is that of the context.
func (x *section) Value(key any) any {
	switch key {
	case holds.OwnerKey{}:
		if x.claim.kind.Permits {
			break // permits cannot be re-entered: the owner around them stays
		}
		return x
	case sectionKey{}:
		return x
	}
	return x.ctx.Value(key)
}

// isOpen reports whether the section is open: invariant I2.
func (x *section) isOpen(now time.Duration) bool {
	return x.claim.state == held && now < min(x.claim.trust, x.holds.Until)
}

// endedErr says why the section has ended.
func (x *section) endedErr() error {
	if x.ctx.Ended() == closed {
		return ErrClosed
	}
	return ErrLost
}

// close ends an open section, and reports whether there are contexts to be cancelled: by cancel,
// without the mutex.
func (x *section) close(why holds.Ending) (cancel bool) {
	cancel, x.holds.Until = x.ctx.End(why), holds.Over
	if x.prev != nil {
		x.prev.next = x.next
	} else {
		x.claim.sections = x.next
	}
	if x.next != nil {
		x.next.prev = x.prev
	}
	x.next, x.prev = nil, nil
	return cancel || x.holds.Nested != nil
}

// end closes an open section, and has its contexts cancelled when the mutex is released.
func (x *section) end(why holds.Ending) {
	if x.close(why) {
		x.claim.lock.later(func() { x.cancel(holds.AtOnce) })
	}
}

// cancel ends the contexts of a section that was closed. Cancelling runs code of the callers'
// contexts, so no mutex may be held. These may block: run runs what ends each of them, as holds.AtOnce does.
func (x *section) cancel(run func(end func())) {
	run(x.ctx.Cancel)
	x.holds.Nested.Cancel(x.ctx.Ended().Cause(), run)
}
