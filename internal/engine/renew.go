package engine

import (
	"context"
	"time"

	"relock/internal/backoff"
	"relock/internal/keyname"
	"relock/internal/script"
	"relock/locktrace"
)

// renewBatch is how many claims one renewal script takes. Each costs Redis about 2 µs, so a
// batch stalls it for less than half a millisecond.
const renewBatch = 200

// A renewal is one script call for many claims of one kind.
type renewal struct {
	cmd   script.Command
	lease time.Duration // 0: only asked
	items []renewalItem // one for each element of the reply
}

// A renewalItem is one side of a claim.
type renewalItem struct {
	c     *claim
	side  int
	sides int        // what account.changes was
	alive []*section // whose contexts wanted it
	all   int        // how many sections there were
}

type renewalKey struct {
	script *script.Script
	lease  time.Duration
	slot   int // Cluster: all keys of a call are in one slot
}

// renew asks Redis for one lease more for each of the claims, many in one script.
func (s *Session) renew(claims []*claim) {
	sent, doubts := s.now(), s.conn.Doubts()
	batches, patience := s.renewals(claims)
	if len(batches) == 0 {
		return
	}
	cmds := make([]script.Command, len(batches))
	for i, b := range batches {
		cmds[i] = b.cmd
	}
	ctx, cancel := context.WithTimeout(s.life.Context, patience)
	defer cancel()
	for i, r := range s.run.Multi(ctx, cmds) {
		if err := r.Error(); script.IsTryAgain(err) || script.Denied(err) { // of some key, not of all
			s.renewOneByOne(ctx, batches[i], sent, doubts)
			continue
		}
		alive, err := r.AsIntSlice()
		s.renewalAnswered(batches[i], alive, err, sent, doubts)
	}
}

// renewals sorts what is due into script calls, and returns how long to wait for the answers:
// so long that there is time for two more tries while the claims can be trusted. It runs code
// of the callers' contexts.
func (s *Session) renewals(claims []*claim) (batches []*renewal, patience time.Duration) {
	open := make(map[renewalKey]*renewal)
	patience = s.cfg.Lease / 3
	for _, c := range claims {
		item, fixed := c.wanted()
		l := c.lock
		l.mu.Lock()
		if c.state != held {
			l.unlock()
			continue
		}
		// A caller that has come or gone since then counts as one that wants it.
		// A claim without a section is just being passed on or released.
		sections := c.count()
		wanted := c.paused() || sections > 0 && (len(item.alive) > 0 || item.all != sections)
		if !wanted && (sections == 0 || !c.checked(fixed)) {
			c.stopped = true // a caller that enters the claim later has it renewed again
			c.reschedule()
			l.unlock()
			continue
		}
		patience = min(patience, (c.trust-s.now())/3)
		key := renewalKey{lease: c.shortfall(s.now())}
		if wanted && c.renewed() {
			key.lease = c.uncut(s.cfg.Lease)
		}
		for side, p := range c.sidesOf() {
			if p == nil || c.liveOn(side) == 0 && !c.paused() {
				continue
			}
			key.script = p.(Leased).RenewScript()
			if s.cluster {
				key.slot = keyname.Slot(l.Key())
			}
			b := open[key]
			if b == nil || len(b.items) >= renewBatch {
				b = &renewal{cmd: script.Command{Script: key.script, Args: []string{script.Millis(key.lease)}}, lease: key.lease}
				open[key] = b
				batches = append(batches, b)
			}
			item.side = side
			b.add(p.(Leased), item, &Op{ByIDs: c.more != nil && c.more.byIDs})
		}
		l.unlock()
	}
	return batches, max(patience, 10*time.Millisecond)
}

// wanted returns which sections of c want it to be renewed, and whether one has a fixed lease. It
// runs code of the callers' contexts, so no mutex may be held; sections may come and go meanwhile.
func (c *claim) wanted() (item renewalItem, fixed bool) {
	type asked struct {
		x       *section
		callers []caller
		fixed   bool
	}
	var few [1]asked
	all := few[:0]
	c.lock.mu.Lock()
	for x := c.sections; x != nil; x = x.next {
		a := asked{x: x}
		if x.more != nil {
			a.fixed = len(x.more.fixed) > 0
			a.callers = append(a.callers, x.more.callers...)
		}
		all = append(all, a)
	}
	item = renewalItem{c: c, all: len(all)}
	if c.more != nil {
		item.sides = c.more.changes
	}
	shared := c.prim.Kind().Shares && !c.bound
	c.lock.unlock()
	for _, a := range all {
		if a.fixed && shared || a.x.alive(a.callers) {
			item.alive = append(item.alive, a.x)
		}
		fixed = fixed || a.fixed
	}
	return item, fixed
}

// checked reports whether Redis is asked about the claim though no section wants it to be renewed;
// fixed says that it has a fixed lease. So a claim in doubt is, one whose fixed leases nothing
// renews, and one that Redisson may cut off before the end of a fixed lease.
func (c *claim) checked(fixed bool) bool {
	return c.doubtful() || fixed && (!c.renewed() || c.shortfall(c.lock.s.now()) > 0)
}

// count returns the number of open sections.
func (c *claim) count() (n int) {
	for x := c.sections; x != nil; x = x.next {
		n++
	}
	return n
}

// liveOn returns how many holds of a side are live.
func (c *claim) liveOn(side int) (n int) {
	for x := c.sections; x != nil; x = x.next {
		n += int(x.live[side])
	}
	return n
}

// add appends one side of a claim; op says which keys to name. The lock's mutex must be held.
func (b *renewal) add(p Leased, item renewalItem, op *Op) {
	c := item.c
	op.Owner, op.N, op.Held = c.ownerID(), int(c.n), c.counted(item.side)
	keys, args := p.RenewArgs(op)
	b.cmd.Keys = append(b.cmd.Keys, keys...)
	b.cmd.Args = append(b.cmd.Args, args...)
	for range args {
		b.items = append(b.items, item)
	}
}

// renewOneByOne asks for the claims of b with a script call each, and without the keys that go
// along with a lock: those can wait.
func (s *Session) renewOneByOne(ctx context.Context, b *renewal, sent time.Duration, doubts uint32) {
	var each []*renewal
	var cmds []script.Command
	for i, item := range b.items {
		if i > 0 && b.items[i-1].c == item.c && b.items[i-1].side == item.side {
			continue
		}
		one := &renewal{cmd: script.Command{Script: b.cmd.Script, Args: b.cmd.Args[:1:1]}, lease: b.lease}
		item.c.lock.mu.Lock()
		if p := item.c.sidesOf()[item.side]; item.c.state == held && p != nil {
			one.add(p.(Leased), item, &Op{Alone: true})
			each = append(each, one)
			cmds = append(cmds, one.cmd)
		}
		item.c.lock.unlock()
	}
	if len(cmds) == 0 {
		return
	}
	for i, r := range s.run.Multi(ctx, cmds) {
		alive, err := r.AsIntSlice()
		s.renewalAnswered(each[i], alive, err, sent, doubts)
	}
}

// renewalAnswered takes in the answer to a renewal that was sent at the given time.
func (s *Session) renewalAnswered(b *renewal, alive []int64, err error, sent time.Duration, doubts uint32) {
	if err == nil && len(alive) != len(b.items) {
		err = script.ErrShape
	}
	for i, item := range b.items {
		c := item.c
		c.lock.mu.Lock()
		now := s.now()
		c.expire(now) // what is over stays over, also if the watchdog is late to see it
		switch {
		case c.state != held:
		case err != nil || alive[i] < 0:
			c.renewAt = min(c.renewAt, now+backoff.Jitter(max(min(s.cfg.Lease/20, (c.trust-now)/4), 10*time.Millisecond)))
		case alive[i] == 1 && b.lease == 0:
			c.doubts = doubts
			c.renewAfter(sent)
			c.resume(now)
		case alive[i] == 1:
			c.confirmed(sent, b.lease, doubts)
			item.prolong()
			c.renewAfter(sent)
			c.resume(now)
		case c.more != nil && c.more.changes != item.sides:
			c.renewAt = min(c.renewAt, now+backoff.Least) // what was asked for is not what there is now
		default:
			c.lose("it was gone when it was renewed", true)
		}
		c.reschedule()
		c.lock.unlock()
	}
	took := s.now() - sent
	s.notify(func() {
		if err != nil {
			s.cfg.Logger.Warn("relock: renewal failed, will be tried again", "locks", len(b.items), "error", err)
		}
		s.trace.Renewed(locktrace.Renewed{Claims: len(b.items), Took: took, Err: err})
	})
}

// prolong passes what a renewal has earned on to the sections that wanted it.
func (item renewalItem) prolong() {
	c := item.c
	if !c.prim.Kind().Shares {
		return
	}
	for _, x := range item.alive {
		if !x.over() && x.auto > 0 {
			x.until = max(x.until, c.trust)
		}
	}
}
