package engine

import (
	"context"
	"strings"
	"time"

	"relock/internal/inbox"
	"relock/locktrace"
)

// A session may keep a lock that it has left: the claim stays held, without a section, and the next Lock of the session
// opens one in memory. Others ask for the lock back: the script that has the first entry come into the line of a lock
// tells the session of its holder, if the holder's owner id says that it may be kept; and so does a session that was
// refused and stands in no line. A kept claim is released then, which lets the first of the line in, and one in use is
// not kept when its section ends. Nor is one whose caller has stood in the line: others may stand there, behind it.
//
// Chubby (Burrows, OSDI 2006, 2.7), NFS delegations and the lock managers of VMS and GFS2 cache locks in this way. As in
// GFS2, a lock that bounces between sessions is kept less often.

// A keeper is what a lock has besides once its session has kept it. It is guarded by the lock's mutex.
type keeper struct {
	claim  *claim        // the one that is kept, and that no section is open on; nil: none is
	until  time.Duration // until when
	num    uint64        // of the claim that was kept last, or was asked for: its owner's
	since  time.Duration // when that was kept for the first time
	wanted bool          // it was asked back
	reused bool          // a section was opened on it
	bounce int           // how many claims in a row were asked back before the session had used them again
	skip   int           // how many claims are not to be kept, since they would be asked back
	told   bool          // the hooks hear that the claim is kept, and so how that ends
}

// mostSkipped bounds how many claims in a row are not kept although the handle says so: the next one finds out whether
// the lock still bounces, which costs one hand-over about one round trip.
const mostSkipped = 64

// keptTokens is how many fencing tokens are reserved besides with a claim that may be kept: one for each section that is
// opened on it again.
const keptTokens = 64

// KeepFor has the session keep what the handle locks, for d at most after it was left; 0: it does not. It is called
// before the handle is used.
func (h *Handle) KeepFor(d time.Duration) { h.keep = d }

// keepOn keeps a claim whose last section has closed, if it may be kept: no caller of the session waits, and as far as is
// known no other session. Others than the sessions of this library cannot ask for it back, so a claim that goes on
// being used passes through Redis once in that time.
func (c *claim) keepOn(now time.Duration) bool {
	l, s := c.lock, c.lock.s
	if l.queue.First != nil || l.state != lockOpen || s.life.Draining.Load() || s.deaf() ||
		!c.entrable(now) || c.kind.Fenced && !c.account.HasToken() {
		return false
	}
	k := c.keeper(now)
	if c.keptLong(now) {
		l.contention.turns.LeaveToListeners(now)
		return false
	}
	if k.wanted {
		return false
	}
	k.claim, k.until, c.awaits = c, now+c.keep, itsReuse
	c.traceKept(locktrace.KeptBegins)
	if k.until < min(c.trust, c.renewAt) { // else the watchdog visits the claim before
		c.reschedule()
	}
	return true
}

// keptLong reports whether the claim has to be released, for clients that cannot ask for it. Afterwards the lock is left
// to them for a moment: else the session would have it again before they receive the message.
func (c *claim) keptLong(now time.Duration) bool {
	k := c.lock.contention.keeper
	return k != nil && k.num == c.num && now-k.since >= c.keep
}

// keeper returns the keeper of the claim's lock, made if need be. It describes this claim from now on.
func (c *claim) keeper(now time.Duration) *keeper {
	ct := c.lock.needContention()
	if ct.keeper == nil {
		ct.keeper = new(keeper)
	}
	k := ct.keeper
	if k.num != c.num {
		k.num, k.since, k.wanted, k.reused = c.num, now, k.skip > 0, false
		k.skip = max(0, k.skip-1)
	}
	return k
}

// idlePart is what an idle lock that was kept retains of its contention state: how often it has bounced lately, if it
// has, and whether other sessions listen, to which the next Lock may have to leave it.
func (ct *contention) idlePart() *contention {
	switch {
	case ct.turns.HeardByOthers():
		return &contention{keeper: ct.keeper, turns: ct.turns}
	case ct.keeper.bounce > 0:
		return &contention{keeper: ct.keeper}
	}
	return nil
}

// askedBack notes that another session wants the claim. In a row of claims that the session has not used again, each is
// followed by twice as many that are not kept.
func (k *keeper) askedBack() {
	if k.wanted {
		return
	}
	k.wanted = true
	if k.reused {
		return
	}
	k.bounce++
	k.skip = min(mostSkipped, 1<<min(k.bounce, 10)-1)
}

// reuse opens a section for a caller on the claim that the session keeps; nil if there is none. One that the caller
// cannot have is released: then it returns errAgain, and the lock's mutex is released too.
func (a *acquisition) reuse() (x *section, err error) {
	l, now := a.lock, a.lock.s.now()
	k := l.contention.keeper
	if k.claim == nil {
		return nil, nil
	}
	c := k.claim
	if now < k.until && a.kind == c.kind && a.named == "" && !a.opts.Alone() && c.entrable(now) {
		k.claim, k.reused, k.bounce = nil, true, 0
		c.traceKept(locktrace.KeptReused)
		x = c.enter(a, now)
		a.traced.Grant = locktrace.GrantKept
		return x, nil
	}
	k.keepNoMore()
	if c.trust <= now {
		c.end(nil)
		return nil, nil
	}
	_ = c.release(now, nil) // no caller waits for the outcome
	return nil, errAgain
}

// keepNoMore notes that the claim which is kept, if there is one, is about to end.
func (k *keeper) keepNoMore() {
	c := k.claim
	if c == nil {
		return
	}
	k.claim, c.awaits = nil, nothing
	what := locktrace.KeptOver
	if k.wanted {
		what = locktrace.KeptGivenBack
	}
	c.traceKept(what)
}

// giveBack releases what the session keeps of the lock, if it keeps it, in the background.
func (l *lock) giveBack() {
	if ct := l.contention; ct != nil && ct.keeper != nil && ct.keeper.claim != nil {
		ct.keeper.claim.end(nil)
		l.askAtOnce()
	}
}

// hearWanted hears that another session wants a lock that this one may keep.
func (s *Session) hearWanted(owner, key string) {
	for _, l := range s.locks.Find("", key) {
		l.mu.Lock()
		for c := l.claims; c != nil; c = c.next {
			// (The message may come before the answer by which the session has the lock.)
			if c.keep == 0 || c.state != held && c.awaits != anAnswer || c.ownerID() != owner {
				continue
			}
			c.traceKept(locktrace.KeptWanted)
			c.keeper(s.now()).askedBack()
			if c.awaits == itsReuse {
				l.giveBack()
			}
			break
		}
		l.unlockInBackground()
	}
}

// askBack asks the session of an owner that may keep the lock for it, where no script has done so: the caller was
// refused, and stands in no line. One message of a lock is under way at a time: another one would say the same.
// The lock's mutex must be held.
func (a *acquisition) askBack(g *answer) {
	l, s := a.lock, a.lock.s
	i := strings.LastIndexByte(g.Owner, ':')
	if l.askingBack || i < 0 || !strings.HasPrefix(g.Owner[i+1:], "0") || g.Owner[:i] == s.id {
		return
	}
	l.askingBack = true
	text := inbox.Note{Kind: inbox.Wanted, Owner: g.Owner, Key: a.prim.Names().Key()}.String()
	session := g.Owner[:i]
	s.life.Background.Go(func() {
		ctx, cancel := context.WithTimeout(s.life.Closing, s.cfg.TryTimeout())
		defer func() {
			cancel()
			l.mu.Lock()
			l.askingBack = false
			l.mu.Unlock()
		}()
		if err := s.redis.Tell(ctx, session, text); err != nil && s.life.Closing.Err() == nil {
			s.log.Debug("relock: a session that may keep a lock could not be asked for it", "session", session, "error", err)
		}
	})
}
