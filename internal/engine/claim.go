package engine

import (
	"math"
	"strconv"
	"time"

	"relock/internal/account"
	"relock/internal/clock"
	"relock/internal/holds"
)

// A claim is what Redis has granted, or is being asked to grant, to this session for one
// lock: one owner, what stands under it, its lease. The owner id is made for the claim and
// never used again, so that a command which arrives late finds nothing to harm.
// docs/architecture.md has the diagram of its states, and the invariants I1 to I6; lock.check and
// claim.checkEntry assert I2, I3, I5 and I6 in tests, as far as they can.
//
// All fields are guarded by the lock's mutex, but for slot. Their order keeps a claim in a size class
// of Go's allocator, as that of a section does: a session may hold a great many locks.
type claim struct {
	lock     *lock
	*target                   // of the acquisition that it was made for
	num      uint64           // of its private owner; 0 if the owner is named
	account  *account.Account // nil for a private claim with one hold, which has no id
	sections *section         // the open ones
	run      *run             // of a fair lock: the waiters that it is for; nil for a TryLock

	next, prev *claim // of lock.claims

	lease

	first section // the first one, here to save an allocation
}

// A lease is how a claim stands: its state, and what Redis has granted, for how long, and what may be
// done with it meanwhile.
type lease struct {
	// trust is until when Redis surely keeps the lock: the lease, less a margin, from when
	// the last confirmed command was sent.
	trust     time.Duration
	renewAt   time.Duration // when to ask Redis for another lease; renewalUnderWay while it is asked
	safeLease time.Duration // how much of a lease is left whatever another process does; never: all. See exposed.go
	passUntil time.Duration // until when callers may enter: the end of the slice, or of the time to join
	slot      clock.Slot    // in the schedule, which guards it
	n         int32         // permits; or of a counter more
	// doubts is the session's count of doubts (Conn.Doubts) when that command was sent. If that is another by now, the
	// session may have missed that the claim ended: no caller enters it, and an Unlock asks Redis.
	doubts uint32

	state  claimState
	awaits awaited
	// noHandOver: it is never handed over. It has had a hold with a fixed lease or abandoned, a nested command of
	// unknown outcome, an inner release that was not confirmed, or a change of side.
	noHandOver bool
	except     exception
}

// trustIn returns how much of a lease can be trusted: all but a margin of 5 %, at most 1 s,
// for clocks that do not run quite alike and for the time that it takes a section to notice
// that its context has ended. It counts from when the command was sent, which is before
// Redis began to count.
func trustIn(lease time.Duration) time.Duration { return lease - min(lease/20, time.Second) }

// newClaim makes a claim for an acquisition, on the lock's list before anything is sent.
func (l *lock) newClaim(a *acquisition) *claim {
	c := &claim{lock: l, target: a.target, next: l.claims}
	c.n, c.renewAt, c.safeLease, c.noHandOver = int32(min(a.n, math.MaxInt32)), never, a.safeLease, a.opts.Lease > 0 || a.opts.AtLeast > 0
	if a.kind.Lines && !a.kind.Fair && !a.kind.Shares && l.s.slowUntil.Load() > int64(l.s.now()) {
		c.except = slowTaker
	}
	if a.named != "" {
		c.account = account.New(c.prim, a.named)
	} else {
		c.num = l.s.owners.Add(1)
	}
	k := a.kind
	if k.Unleased || a.named != "" { // the first hold has an id
		c.needAccount().Begin(k, l.s.newID(k))
	}
	if l.claims != nil {
		l.claims.prev = c
	}
	l.claims = c
	return c
}

// ownerID returns the owner as it stands in Redis. That of a private one is
// "<session id>:<number>", the shape of Redisson's "<client id>:<thread id>". A number that begins with a 0 says that the
// session may keep the lock, and can be asked for it.
func (c *claim) ownerID() string {
	if c.num == 0 {
		return c.account.Owner
	}
	var buf [64]byte // enough for a UUID, so that only the string is allocated
	id := append(append(buf[:0], c.lock.s.id...), ':')
	if c.keep > 0 {
		id = append(id, '0')
	}
	return string(strconv.AppendUint(id, c.num, 10))
}

// open opens a section on the claim, with its outermost hold, which began at a time.
func (c *claim) open(a *acquisition, began time.Duration) *section {
	x := &c.first
	if x.claim != nil {
		x = new(section)
	}
	x.ctx.Parent, x.claim = a.ctx, c
	x.next = c.sections
	if x.next != nil {
		x.next.prev = x
	}
	c.sections = x
	x.first = Hold{x, holds.Hold{Side: uint8(a.kind.Side)}}
	if a.opts.Lease > 0 {
		x.first.fix(began, a.opts.Lease)
	}
	end := never
	if c.kind.Shares {
		end = c.trust
	}
	x.holds.Add(&x.first.held, end)
	if a.lock.s.trace != nil {
		x.holds.Follow(&x.first.held, a.lock.s.trace.NewHold(&a.traced))
	}
	return x
}

// excludes reports whether the claim has a hold that lets no other owner in.
func (c *claim) excludes() bool {
	if c.account == nil || c.sections == nil {
		return c.kind.Exclusive
	}
	for side, p := range c.account.Sides(c.prim) {
		if p != nil && p.Kind().Exclusive && c.sections.holds.Live[side] > 0 {
			return true
		}
	}
	return false
}

// An awaited is what a claim waits for. If it is held, no section is open on it meanwhile, and it is renewed.
type awaited uint8

const (
	nothing  awaited = iota
	anAnswer         // asking: to an attempt for it; the release of the claim must be sent after that
	theFront         // held: permits, until the caller in front has the answer to its attempt, see undelivered.go
	aRenewal         // held: it is to be confirmed before the next section opens, see awaitrenewal.go
	itsReuse         // held: the session keeps it, see keep.go
)

// confirmed notes that Redis has granted the claim, or renewed it, by a command that was sent
// at a time.
func (c *claim) confirmed(sent, lease time.Duration, doubts uint32) {
	c.trust, c.doubts = max(c.trust, sent+trustIn(min(lease, c.safeLease))), doubts
	if c.safeLease != never {
		c.expose(sent + lease)
	}
}

// cut notes that a command which is about to be sent may bring the end of the lock closer: to a lease from when it runs. Its
// answer may never come, and a later Lock adds to what is trusted. So the trust comes closer at once, and a renewal that
// was sent before does not bring it back.
func (c *claim) cut(now, lease time.Duration) {
	c.trust, c.account.Cut = min(c.trust, now+trustIn(lease)), now
}

// expose bounds the trust of an exposed claim, which Redis may keep until a time. The claim may not have
// been exposed when the trust was earned: a writer that takes a read hold too lets readers of other
// processes in when it unlocks the write side.
func (c *claim) expose(stands time.Duration) {
	c.trust = min(c.trust, c.lock.s.now()+trustIn(c.safeLease))
	m := c.needAccount()
	m.Stands = max(m.Stands, stands)
}

// entrable reports whether another caller may enter the claim, as far as the claim itself is
// concerned.
func (c *claim) entrable(now time.Duration) bool {
	return c.handsOver() && c.num != 0 && c.doubts == c.lock.s.redis.Conn.Doubts.Load() &&
		c.trust-now >= trustIn(min(c.lock.s.cfg.Lease, c.safeLease))/2
}

// handsOver reports whether the claim can be handed over if its trust suffices: not while an inner release is under way.
func (c *claim) handsOver() bool {
	return c.state == held && !c.noHandOver && (c.account == nil || !c.account.Leaves) && c.lock.s.cfg.HandOverLimit >= 0
}

// countsHere reports whether the nested holds of the claim's sections are counted in memory only:
// those of readers that share a claim.
func (c *claim) countsHere() bool { return c.kind.Shares && c.num != 0 && !c.noHandOver }
