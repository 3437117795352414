package rlock

import (
	"context"
	"slices"
	"sync/atomic"
	"time"
)

// A tenure is what one owner holds of one lock: it begins with the outermost Lock
// and ends when the last hold is released or the lock is lost. It is itself the
// context of the critical section: derived from the one given to the outermost
// Lock, carrying the owner.
//
// All fields below the first group are guarded by Session.mu.
type tenure struct {
	context.Context // cancelled through cancel
	cancel          context.CancelCauseFunc

	s     *Session
	prim  Primitive // of the outermost Lock, for names and for the line
	owner ctxOwner
	began time.Duration

	state tenureState
	// busy: an operation on this tenure is on its way to Redis. Others wait for
	// turn, which is closed when it is done, so that counts are sent in order.
	busy bool
	// behind: what keeps it busy goes on in the background, for as long as it takes.
	behind bool
	// doubtful: somebody said that the lock was ended, before it was known that it
	// was granted.
	doubtful bool
	wasLost  bool // it ended by losing the lock
	// mayStand: the tenure ended without word from Redis that the lock is gone.
	mayStand bool
	// untidy: a nested hold that has ended may still stand in Redis for a while.
	untidy bool
	reads  bool // it counts among line.readers
	// lingers: a guest that was lost, and is not unlocked yet.
	lingers bool
	shared  atomic.Bool // somebody outside the session may use the owner
	index   int32       // in Session.agenda; -1 if not there
	guest   int32       // in host.house.guests; -1 when it has left

	turn chan struct{} // see busy
	// interrupt ends a nested Lock that keeps it busy; nil if there is none.
	interrupt context.CancelFunc

	parts  [2]part
	fixed  []*Hold // live holds with a fixed lease
	inner  []innerContext
	unsent []*Hold // unlocked, by callers who could not wait for their turn
	first  Hold    // the outermost hold, here to save an allocation
	token  int64

	// trust is until when Redis surely keeps the lock for us, see Session.trustIn.
	trust time.Duration
	// renewAt is when the watchdog asks Redis next; never, if nothing wants it.
	renewAt time.Duration
	due     time.Duration // when the watchdog must look at this tenure

	line *line // not nil while it counts as the line's holder or reference

	// See handover.go and transfer.go.
	transfer *transfer // Redis is being told that this owner has the lock, or had it
	entry    string    // the id of the hold with which it passes on, or was handed over
	debt     *debt     // it ended under a transfer

	// See share.go: a guest has a host, a host a house.
	host  *tenure
	house *house
}

// part counts the holds of one side of a lock.
type part struct {
	prim Primitive
	live int // holds that are neither unlocked nor run out
	auto int // those of live that the watchdog renews
	life int // how often it was taken anew

	// What Redis counts for us: the hold that the owner entered with, unless others
	// may use that owner too, and the further ones by their ids.
	first bool
	byID  bool // there was one with an id
	ids   []string
}

// told returns how many holds of this side Redis counts for us.
func (pt *part) told() int {
	n := len(pt.ids)
	if pt.first {
		n++
	}
	return n
}

type tenureState uint8

const (
	acquiring tenureState = iota
	holding
	ended // released, lost or closed; never leaves this state
)

const never = time.Duration(1<<63 - 1)

// Value makes the owner known to a nested Lock.
func (t *tenure) Value(key any) any {
	if key == (ownerKey{}) && !t.prim.Traits().Anonymous {
		return &t.owner
	}
	return t.Context.Value(key)
}

func (t *tenure) String() string { return "rlock critical section of " + t.owner.id }

// newTenure prepares an acquisition by owner, or by a new owner when it is nil.
func (s *Session) newTenure(ctx context.Context, p Primitive, owner *ctxOwner) *tenure {
	t := &tenure{s: s, prim: p, began: s.now(), trust: never, renewAt: never, due: never, index: -1}
	t.Context, t.cancel = context.WithCancelCause(ctx)
	if owner != nil {
		t.owner = *owner
	} else {
		t.owner = ctxOwner{id: s.owners.Next(), by: s, maker: t}
	}
	return t
}

// live returns the number of holds of all sides. Session.mu must be held.
func (t *tenure) live() int { return t.parts[0].live + t.parts[1].live }

// excludes reports whether there is a hold that lets no other owner in. Session.mu must
// be held.
func (t *tenure) excludes() bool {
	for i := range t.parts {
		if pt := &t.parts[i]; pt.live > 0 && pt.prim.Traits().Exclusive {
			return true
		}
	}
	return false
}

// auto returns how many of them the watchdog renews. Session.mu must be held.
func (t *tenure) auto() int { return t.parts[0].auto + t.parts[1].auto }

// passTurn ends the operation that made the tenure busy. Session.mu must be held.
func (t *tenure) passTurn() {
	if t.state == holding && t.live() == 0 {
		// All its holds were unlocked while it was busy, by callers who could not
		// wait any longer.
		t.s.releaseBehind(t, t.s.over(t))
		return
	}
	t.releaseUnsent()
	t.busy, t.behind = false, false
	if t.turn != nil {
		close(t.turn)
		t.turn = nil
	}
}

// releaseUnsent ends, in the background, single holds that were unlocked by callers who
// could not wait for their turn. Session.mu must be held.
func (t *tenure) releaseUnsent() {
	for _, h := range t.unsent {
		pt := &t.parts[h.part]
		if t.state != holding || !slices.Contains(pt.ids, h.id) {
			continue
		}
		pt.ids = slices.DeleteFunc(pt.ids, func(id string) bool { return id == h.id })
		op := Op{Owner: t.owner.id, Ends: []string{h.id}, Holds: pt.told(), Other: t.parts[1-h.part].told(), ByID: pt.byID}
		t.s.undo(undoing{cmd: pt.prim.Release(&op), name: pt.prim.Name(), until: t.s.over(t)})
		if pt.live == 0 && pt.prim.Traits().Exclusive {
			t.vacate(true)
		}
	}
	t.unsent = nil
}

// waitTurn returns with Session.mu held and t not busy, or, without the mutex, with
// ctx's error. Session.mu must be held.
func (t *tenure) waitTurn(ctx context.Context) error {
	for t.busy {
		if t.turn == nil {
			t.turn = make(chan struct{})
		}
		turn := t.turn
		t.s.unlock()
		select {
		case <-turn:
		case <-ctx.Done():
			return ctx.Err()
		}
		t.s.mu.Lock()
	}
	return nil
}

// innerContext is a context made for nested Locks: derived from what they were
// given, ended with the tenure. Nested Locks that are given contexts with the same
// Done share one, so that a long tenure does not collect them.
type innerContext struct {
	parent <-chan struct{}
	ctx    context.Context
	cancel context.CancelCauseFunc
}

// nestedContext returns the context of a nested Lock that was given ctx. Session.mu
// must be held.
func (t *tenure) nestedContext(ctx context.Context) context.Context {
	if ctx.Done() == t.Done() {
		return ctx // ends when the tenure does: it is the tenure's, with values on top
	}
	kept := t.inner[:0]
	var found context.Context
	for _, in := range t.inner {
		if in.ctx.Err() != nil {
			continue
		}
		kept = append(kept, in)
		if in.parent == ctx.Done() {
			found = in.ctx
		}
	}
	clear(t.inner[len(kept):])
	t.inner = kept
	if found == nil {
		c, cancel := context.WithCancelCause(ctx)
		t.inner = append(t.inner, innerContext{ctx.Done(), c, cancel})
		found = c
	}
	return &sectionContext{Context: ctx, end: found, owner: &t.owner}
}

// sectionContext has the values of one context and the end of another, which is
// derived from a context with the same Done.
type sectionContext struct {
	context.Context
	end   context.Context
	owner *ctxOwner
}

func (c *sectionContext) Done() <-chan struct{} { return c.end.Done() }
func (c *sectionContext) Err() error            { return c.end.Err() }

func (c *sectionContext) Value(key any) any {
	switch key {
	case ownerKey{}:
		return c.owner
	case cancelKey:
		return c.end.Value(key) // context.Cause, and the children of this context
	}
	return c.Context.Value(key)
}

// cancelKey is the key under which package context looks for the cancellation
// behind a context. It is not exported, but context.Cause asks for it. (Should that
// ever change, sections still end when they must; only their cause would be that of
// the context given.)
var cancelKey = func() any {
	var k keyCatcher
	_ = context.Cause(&k)
	return k.key
}()

type keyCatcher struct{ key any }

func (*keyCatcher) Deadline() (time.Time, bool) { return time.Time{}, false }
func (*keyCatcher) Done() <-chan struct{}       { return nil }
func (*keyCatcher) Err() error                  { return context.Canceled } // else nobody asks why
func (k *keyCatcher) Value(key any) any         { k.key = key; return nil }

// end ends the tenure: nothing is held any more as far as its contexts tell. What
// Redis may still count is the caller's business. Session.mu must be held.
func (t *tenure) end(cause error) {
	if t.state == ended {
		return
	}
	t.state = ended
	moving := t.transfer != nil // it had the turn
	t.s.forget(t)
	t.cancelAll(cause)
	if moving {
		t.passTurn()
	}
}

// cancelAll ends the contexts of the critical section. Session.mu must be held; a
// context's AfterFuncs run in goroutines of their own, so it takes no other lock.
func (t *tenure) cancelAll(cause error) {
	t.cancel(cause)
	if t.interrupt != nil {
		t.interrupt()
	}
	for _, in := range t.inner {
		in.cancel(cause)
	}
	t.inner = nil
	for _, h := range t.fixed {
		h.endContext(cause)
	}
	t.fixed = nil
}

// lose ends a tenure whose lock is gone. Session.mu must be held.
func (t *tenure) lose(reason string) {
	if t.state == ended {
		return
	}
	t.wasLost = true
	t.end(ErrLost)
	t.vacate(true)
	for t.house != nil && len(t.house.guests) > 0 {
		t.house.guests[0].lose(reason)
	}
	t.s.afterUnlock(func() {
		t.s.log.Warn("relock: lock lost", "name", t.prim.Name(), "owner", t.owner.id, "reason", reason)
		t.s.cfg.Trace.lost(t.prim.Name(), t.owner.id, reason)
	})
}

// vacate tells the local line that this tenure excludes nobody any more. look says
// that the one in front should try at once. Session.mu must be held.
func (t *tenure) vacate(look bool) {
	l := t.line
	if l == nil {
		return
	}
	t.leaveReaders()
	t.line = nil
	if l.holder == t {
		l.holder = nil
		if look {
			l.nudge()
		}
	}
	t.s.leaveLine(l)
}

// leaveReaders notes in the line that t reads no more, and is no host. Session.mu must be
// held.
func (t *tenure) leaveReaders() {
	if t.reads {
		t.reads = false
		t.line.readers--
	}
	if t.line.host == t {
		t.line.host = nil
	}
}
