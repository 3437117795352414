package engine

import (
	"context"
	"time"

	"relock/internal/account"
)

// needAccount returns c.account, made if need be.
func (c *claim) needAccount() *account.Account {
	if c.account == nil {
		c.account = account.New(c.prim, "")
	}
	return c.account
}

// op is what the claim's commands have in common.
func (c *claim) op() Op {
	op := Op{Owner: c.ownerID(), N: int(c.n)}
	if c.kind.Lines {
		op.Line.Named = true
		if c.state == asking {
			op.Line.Head = c.entryHead()
		}
	}
	return op
}

// awaitAnswer waits until no command of the claim is under way, and returns false if ctx ends first.
// A claim that asks counts as having one under way between two attempts too. That does not hold for a
// TryLock (try), which would wait for a release. The lock's mutex must be held; it is released meanwhile and
// held again at the end.
func (c *claim) awaitAnswer(ctx context.Context, try bool) bool {
	l := c.lock
	for c.account != nil && c.account.Busy && !(try && c.state == asking && c.awaits != anAnswer) {
		free := c.account.Freed()
		l.unlock()
		select {
		case <-free:
			l.mu.Lock()
		case <-ctx.Done():
			l.mu.Lock()
			return false
		}
	}
	return true
}

// answered notes that a command of the claim, which is held, is under way no more. If the session has closed meanwhile, Close has
// left the end of a named owner to it: see busyByName.
func (c *claim) answered() {
	c.account.Answered()
	if l := c.lock; l.state == lockClosed && c.state == held && c.sections == nil && !c.account.Cancels() {
		c.endBy(l.s.now()+l.s.cfg.ReleaseTimeout, nil)
	}
}

// busyByName reports whether a command of a named owner is under way. It may not have been written yet, and if it is a nested
// Lock it would find the owner in other sessions, behind a release that is sent now.
func (c *claim) busyByName() bool { return c.num == 0 && c.account.Busy }

// surplus takes the ids of a side off the account that the holds of a section do not need, and
// returns them: they are to be ended. The last one of a side that is to stand for a while yet stays.
func (c *claim) surplus(side int, x *section) []string {
	needed := x.holds.Needed(side)
	if p := c.account.Sides(c.prim)[side]; p != nil && leaves(p) && c.mustStand(c.lock.s.now()) > 0 {
		c.opensLater(side, x)
		needed = max(needed, 1)
	}
	return c.account.Surplus(c.kind, side, needed)
}

// latestEnd returns when the lock ends in Redis at the latest if no further command for it is answered. A renewal
// may be under way.
func (c *claim) latestEnd(now time.Duration) time.Duration {
	at := max(now+c.lock.s.cfg.Lease, c.trust+time.Second)
	if c.account != nil {
		at = max(at, c.account.Stands+time.Second, c.account.AtLeast+time.Second)
	}
	return at
}
