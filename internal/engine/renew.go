package engine

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/redis/rueidis"

	"relock/internal/clock"
	"relock/internal/keyname"
	"relock/internal/script"
	"relock/locktrace"
)

// renewBatch: a renewal call takes no more claims once its reply would have so many elements. A plain
// claim has one, one with ids or a token that ends has more, one of n permits has n + 2. Each
// costs Redis about 2 µs, so a batch of plain claims stalls it for less than half a millisecond.
const renewBatch = 200

// A renewalItem is one side of a claim.
type renewalItem struct {
	c       *claim
	side    int
	lease   time.Duration // 0: Redis is only asked whether it stands
	changes int           // what Account.Changes was
	alive   []*section    // whose contexts wanted it
	all     int           // how many sections there were
	fixed   bool          // one of them had a fixed lease
}

// renewAsked asks Redis for one lease more for each of the claims, many in one script. Where Redis
// refuses that because of some key, each claim gets a call of its own, without the helper keys of
// the lock: their renewal can wait.
func (s *Session) renewAsked(claims []renewalItem) {
	sent, doubts := s.now(), s.redis.Conn.Doubts.Load()
	round, timeout := s.renewalRoundOf(claims)
	ctx, cancel := context.WithTimeout(s.life.Context, timeout)
	defer cancel()
	send := func(cmds []script.Command) []rueidis.RedisResult { return s.redis.Run.Multi(ctx, cmds) }
	each := renewalRound{most: 1}
	for _, a := range round.send(send) {
		if a.err == nil || !a.oneByOne() {
			s.renewalAnswered(a, sent, doubts)
			continue
		}
		for _, item := range slices.Compact(a.items) {
			c := item.c
			c.lock.mu.Lock()
			if c.state == held && c.account.Sides(c.prim)[item.side] != nil {
				item.addTo(&each, Op{FewestKeys: true})
			}
			c.lock.unlock()
		}
	}
	for _, a := range each.send(send) {
		s.renewalAnswered(a, sent, doubts)
	}
}

// renewalRoundOf sorts what is due into script calls, and returns how long to wait for the answers:
// so long that there is time for two more attempts while the claims can be trusted.
func (s *Session) renewalRoundOf(claims []renewalItem) (round renewalRound, timeout time.Duration) {
	round.most, timeout = renewBatch, s.cfg.Lease/3
	for _, item := range claims {
		c, l := item.c, item.c.lock
		l.mu.Lock()
		if c.state != held {
			l.unlock()
			continue
		}
		sections, live, renewed := 0, [2]int32{}, false
		for x := c.sections; x != nil; x = x.next {
			sections, renewed = sections+1, renewed || x.isRenewed()
			live[0] += x.holds.Live[0]
			live[1] += x.holds.Live[1]
		}
		given := l.contention != nil && l.contention.place.Unconfirmed == c // its grant is not confirmed: it has no full lease yet
		// A caller that has come or gone since then counts as one that wants it. Redis is asked about others too: about one in
		// doubt, one whose fixed leases nothing renews, and one that Redisson may cut off before their end.
		wanted := c.awaits != nothing || sections > 0 && (given || len(item.alive) > 0 || item.all != sections)
		if !wanted && (sections == 0 || c.doubts == s.redis.Conn.Doubts.Load() && !(item.fixed && (!renewed || c.shortfall(s.now()) > 0))) {
			c.except = unrenewed // a caller that enters the claim later has it renewed again
			if s.unrenewed.On.Load() {
				s.unrenewed.Over(c, false)
			}
			c.reschedule()
			l.unlock()
			continue
		}
		timeout = min(timeout, (c.trust-s.now())/3)
		if wanted && (renewed || sections == 0) {
			item.lease = min(s.cfg.Lease, c.safeLease)
		} else {
			item.lease = c.shortfall(s.now())
		}
		for side, p := range c.account.Sides(c.prim) {
			switch {
			case p == nil:
			case live[side] > 0 || sections == 0:
				of := item
				of.side = side
				of.addTo(&round, Op{ByIDs: c.account.ByIDs()})
			case s.unrenewed.On.Load(): // the side was unlocked since its renewal has failed
				s.unrenewed.Answered(c, side)
			}
		}
		l.unlock()
	}
	return round, max(timeout, 10*time.Millisecond)
}

// addTo has one side of a claim asked for with a round; op says which keys to name. The lock's
// mutex must be held.
func (item *renewalItem) addTo(round *renewalRound, op Op) {
	c, slot := item.c, 0
	if c.lock.s.redis.Space.Cluster {
		slot = keyname.Slot(c.lock.Key())
	}
	p := c.account.Sides(c.prim)[item.side].(Leased)
	op.Owner, op.N, op.Held, op.Private = c.ownerID(), int(c.n), c.account.Counted(c.kind, item.side), c.num != 0
	round.add(item, item.lease, slot, p.Renew(&op))
}

// renewalAnswered handles the answer to a renewal that was sent at the given time.
func (s *Session) renewalAnswered(a renewalAnswer, sent time.Duration, doubts uint32) {
	claims := 0
	var failure error
	for i, item := range a.items {
		c := item.c
		if i == 0 || a.items[i-1].c != c { // those of one claim stand side by side
			claims++
		}
		c.lock.mu.Lock()
		now, asked := s.now(), never
		c.expire(now) // a claim whose trust is over stays lost, also if the watchdog has not seen it yet
		switch {
		case c.state != held:
		case a.err != nil || a.alive[i] < 0:
			failure = cmp.Or(a.err, errRenewalDenied)
			s.unrenewed.Failed(c, item.side)
			c.renewAt = min(c.renewAt, now+clock.Jitter(max(min(s.cfg.Lease/20, (c.trust-now)/4), 10*time.Millisecond)))
		case a.alive[i] == 1 && item.lease == 0:
			c.doubts, asked = doubts, sent
		case a.alive[i] == 1 && c.account != nil && c.account.Cut >= sent:
			c.renewAt = min(c.renewAt, now+clock.Least) // what has brought the end closer may have run behind the renewal
		case a.alive[i] == 1:
			c.confirmed(sent, item.lease, doubts)
			if ct := c.lock.contention; ct != nil && ct.place.Unconfirmed == c {
				ct.place.Unconfirmed = nil
			}
			for _, x := range item.alive { // those that wanted it have the trust that it has brought
				if c.kind.Shares && !x.ctx.HasEnded() && x.holds.Renewed() > 0 {
					x.holds.Until = max(x.holds.Until, c.trust)
				}
			}
			asked = sent
		case c.account != nil && c.account.Changes != item.changes:
			c.renewAt = min(c.renewAt, now+clock.Least) // the renewal has asked for other holds than there are now
		default:
			c.lose("it was gone when it was renewed", true)
		}
		c.renewAfter(asked)
		if asked != never {
			if s.unrenewed.On.Load() {
				s.unrenewed.Answered(c, item.side)
			}
			if c.awaits == aRenewal {
				c.resume(now) // after renewAt is set: a claim that still waits for a renewal is asked about at once
			}
		}
		c.lock.unlockInBackground()
	}
	if failure != nil {
		s.unrenewed.Tell(failure)
	}
	if s.trace == nil {
		return
	}
	took := s.now() - sent
	s.notes.Add(func() { s.trace.Hooks.Renewed(locktrace.Renewed{Claims: claims, Took: took, Err: a.err}) })
}

// errRenewalDenied says that the ACL has kept a script from reading a lock.
var errRenewalDenied = errors.New("rlock: Redis does not allow a command of the script")
