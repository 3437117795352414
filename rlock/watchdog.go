package rlock

import (
	"container/heap"
	"context"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"relock/internal/keyname"
)

// renewBatch is how many locks one renewal script takes. Each costs Redis about
// 2 µs, so a batch stalls it for less than half a millisecond.
const renewBatch = 200

// trustIn returns how much of a lease can be trusted: all but a margin of 5 %, at
// most 1 s, for clocks that do not run quite alike and for the time that it takes a
// critical section to notice that its context has ended. It counts from when the
// command was sent, which is before Redis began to count.
func (s *Session) trustIn(lease time.Duration) time.Duration {
	return lease - min(lease/20, time.Second)
}

// An agenda is a heap of tenures by when the watchdog must look at them.
type agenda []*tenure

func (a agenda) Len() int           { return len(a) }
func (a agenda) Less(i, j int) bool { return a[i].due < a[j].due }
func (a agenda) Swap(i, j int) {
	a[i], a[j] = a[j], a[i]
	a[i].index, a[j].index = int32(i), int32(j)
}
func (a *agenda) Push(x any) {
	t := x.(*tenure)
	t.index = int32(len(*a))
	*a = append(*a, t)
}
func (a *agenda) Pop() any {
	last := len(*a) - 1
	t := (*a)[last]
	(*a)[last] = nil
	*a = (*a)[:last]
	t.index = -1
	return t
}

// reschedule puts t where it belongs in the agenda. Session.mu must be held.
func (s *Session) reschedule(t *tenure) {
	if t.state != holding || t.live() == 0 {
		s.forgetDue(t)
		return
	}
	t.due = min(t.trust, t.renewAt)
	for _, h := range t.fixed {
		t.due = min(t.due, h.end)
	}
	if t.index < 0 {
		heap.Push(&s.agenda, t)
	} else {
		heap.Fix(&s.agenda, int(t.index))
	}
	s.wakeWatchdog(t.due)
}

// wakeWatchdog has the watchdog look at that time. It sleeps until armed; a later time
// finds it awake anyway. Session.mu must be held.
func (s *Session) wakeWatchdog(at time.Duration) {
	if at < s.armed {
		s.armed = at
		select {
		case s.kick <- struct{}{}:
		default:
		}
	}
}

// forgetDue takes t off the agenda. Session.mu must be held.
func (s *Session) forgetDue(t *tenure) {
	if t.index >= 0 {
		heap.Remove(&s.agenda, int(t.index))
	}
}

// forget takes a tenure that has ended off the books. Session.mu must be held.
func (s *Session) forget(t *tenure) {
	t.detach()
	if t.leaveHost() && !s.closed {
		if t.wasLost {
			s.releaseLater(t.host)
		} else {
			s.releaseHost(t.host)
		}
	}
	s.forgetDue(t)
	key := tenureKey{t.prim.Key(), t.owner.id}
	if s.held[key] == t {
		delete(s.held, key)
	}
	if t.mayStand && t.wasLost && t.debt != nil && !t.behind {
		t.layLater()
		return
	}
	t.lay()
}

// nextLook returns when to ask Redis about t again after having done so at a time:
// a third of the lease later. Holds with a fixed lease are not prolonged, but asked
// for, so that a lock that was deleted under them is noticed too. Times are rounded
// to a common grid, so that locks taken one by one are renewed together. Session.mu
// must be held.
func (s *Session) nextLook(t *tenure, asked time.Duration) time.Duration {
	lease := s.cfg.Lease
	if t.auto() == 0 {
		worth := false
		for _, h := range t.fixed {
			if d := h.until - h.began; d >= minChecked {
				lease, worth = min(lease, d), true
			}
		}
		if !worth {
			return never
		}
	}
	at, grid := asked+lease/3, lease/30
	return max(at-at%grid, asked+lease/6)
}

// minChecked is the shortest fixed lease that is worth a look in the middle of it.
const minChecked = 100 * time.Millisecond

// watch is the session's watchdog: one goroutine that ends what can no longer be
// trusted, has the rest renewed, and the places of waiters in Redis kept. It never waits for Redis itself, so that no
// hold is trusted too long because the network hangs.
func (s *Session) watch() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		s.mu.Lock()
		now := s.now()
		var due []*tenure
		for len(s.agenda) > 0 && s.agenda[0].due <= now {
			t := s.agenda[0]
			if s.look(t, now) {
				due = append(due, t)
			}
			s.reschedule(t)
		}
		silent := s.duePlaces(now)
		s.armed = s.placesDue
		if len(s.agenda) > 0 {
			s.armed = min(s.armed, s.agenda[0].due)
		}
		sleep := s.armed - now
		s.unlock()
		if len(due) > 0 {
			s.background.Go(func() { s.renew(due) })
		}
		if len(silent) > 0 {
			s.background.Go(func() { s.beat(silent) })
		}
		timer.Reset(sleep)
		select {
		case <-timer.C:
		case <-s.kick:
		case <-s.ctx.Done():
			return
		}
	}
}

// look ends what has run out of t, and reports whether it is time to ask Redis.
// Session.mu must be held.
func (s *Session) look(t *tenure, now time.Duration) (ask bool) {
	kept := t.fixed[:0]
	for _, h := range t.fixed {
		if h.end <= now {
			h.runOut()
		} else {
			kept = append(kept, h)
		}
	}
	clear(t.fixed[len(kept):])
	t.fixed = kept
	switch {
	case t.live() == 0:
		// Others may keep the lock alive under the same owner, and this count with
		// it. What has an id is released when it is unlocked; an owner's first hold
		// cannot be told from one in a later life of the lock, and ends with the
		// lease of the last.
		t.mayStand = len(t.parts[0].ids)+len(t.parts[1].ids) > 0
		t.lose("its lease is over")
	case t.trust <= now && t.house != nil && t.live() == 1 && !t.first.done:
		t.lapse()
	case t.trust <= now:
		t.mayStand = true
		t.lose("no renewal was confirmed before the end of the lease")
	case t.renewAt <= now:
		t.renewAt = never // until the answer is here, also of a transfer: it renews
		return t.wanted() && t.transfer == nil && t.host == nil
	}
	return false
}

// renew asks Redis for one lease more for each of ts, many in one script.
func (s *Session) renew(ts []*tenure) {
	sent := s.now()
	batches := s.renewals(ts)
	if len(batches) == 0 {
		return
	}
	cmds := make([]Command, len(batches))
	for i, b := range batches {
		cmds[i] = b.cmd
	}
	ctx, cancel := context.WithTimeout(s.ctx, s.renewPatience(ts))
	defer cancel()
	results := s.runMulti(ctx, cmds)
	for i, b := range batches {
		if isTryAgain(results[i].Error()) {
			s.renewOneByOne(ctx, b, sent)
			continue
		}
		alive, err := results[i].AsIntSlice()
		if err == nil && len(alive) != len(b.tenures) {
			alive, err = nil, errShape
		}
		s.renewed(b, alive, err, sent)
	}
}

// renewPatience is how long to wait for the answer to a renewal of ts: so long that there
// is time for two more tries while they can be trusted.
func (s *Session) renewPatience(ts []*tenure) time.Duration {
	s.mu.Lock()
	defer s.unlock()
	patience := s.cfg.Lease / 3
	for _, t := range ts {
		patience = min(patience, (t.trust-s.now())/3)
	}
	return max(patience, 10*time.Millisecond)
}

// isTryAgain: a Cluster that moves a slot serves its keys one by one, but not those of
// a script that has some on either side.
func isTryAgain(err error) bool {
	re, ok := rueidis.IsRedisErr(err)
	return ok && strings.HasPrefix(re.Error(), "TRYAGAIN")
}

// renewOneByOne asks for the locks of b with a script call each, and without the keys
// that go along with a lock: those can wait.
func (s *Session) renewOneByOne(ctx context.Context, b *renewal, sent time.Duration) {
	var each []*renewal
	var cmds []Command
	s.mu.Lock()
	for i, t := range b.tenures {
		pt := b.parts[i]
		if t.state != holding || pt.live == 0 || (i > 0 && b.parts[i-1] == pt) {
			continue
		}
		one := &renewal{cmd: Command{Script: b.cmd.Script, Args: b.cmd.Args[:1:1]}, lease: b.lease}
		keys, args := pt.prim.RenewArgs(t.owner.id, pt.told(), false)
		one.add(t, pt, keys, args)
		each = append(each, one)
		cmds = append(cmds, one.cmd)
	}
	s.unlock()
	if len(cmds) == 0 {
		return
	}
	for i, r := range s.runMulti(ctx, cmds) {
		alive, err := r.AsIntSlice()
		if err == nil && len(alive) != len(each[i].tenures) {
			alive, err = nil, errShape
		}
		s.renewed(each[i], alive, err, sent)
	}
}

// A renewal is one script call for many tenures of one kind.
type renewal struct {
	cmd     Command
	tenures []*tenure     // one for each element of the reply
	parts   []*part       // of those, the side that was asked for
	lives   []int         // and which life of it
	lease   time.Duration // 0: only asked
}

func (b *renewal) add(t *tenure, pt *part, keys, args []string) {
	b.cmd.Keys = append(b.cmd.Keys, keys...)
	b.cmd.Args = append(b.cmd.Args, args...)
	for range args {
		b.tenures = append(b.tenures, t)
		b.parts = append(b.parts, pt)
		b.lives = append(b.lives, pt.life)
	}
}

type renewalKey struct {
	script *Script
	lease  time.Duration
	slot   int // Cluster: all keys of a call are in one slot
}

// renewals sorts what is due into script calls.
func (s *Session) renewals(ts []*tenure) []*renewal {
	open := make(map[renewalKey]*renewal)
	var all []*renewal
	s.mu.Lock()
	defer s.unlock()
	for _, t := range ts {
		for i := range t.parts {
			pt := &t.parts[i]
			if t.state != holding || pt.live == 0 {
				continue
			}
			k := renewalKey{script: pt.prim.Renew()}
			if t.auto() > 0 {
				k.lease = s.cfg.Lease
			}
			if s.names.Cluster {
				k.slot = keyname.Slot(pt.prim.Key())
			}
			b := open[k]
			if b == nil || len(b.tenures) >= renewBatch {
				b = &renewal{cmd: Command{Script: k.script, Args: []string{itoa(millis(k.lease))}}, lease: k.lease}
				open[k] = b
				all = append(all, b)
			}
			keys, args := pt.prim.RenewArgs(t.owner.id, pt.told(), len(pt.ids) > 0)
			b.add(t, pt, keys, args)
		}
	}
	return all
}

// renewed takes in the answer to a renewal that was sent at the given time.
func (s *Session) renewed(b *renewal, alive []int64, err error, sent time.Duration) {
	s.mu.Lock()
	now := s.now()
	for i, t := range b.tenures {
		switch {
		case t.state != holding || b.parts[i].live == 0 || b.parts[i].life != b.lives[i]:
			continue // that side was released meanwhile, and perhaps taken anew
		case err != nil:
			t.renewAt = min(t.renewAt, now+jitter(max(min(s.cfg.Lease/20, (t.trust-now)/4), 10*time.Millisecond)))
		case alive[i] != 1:
			t.lose("it was gone when it was renewed")
			continue
		default:
			if b.lease > 0 {
				t.trust = max(t.trust, sent+s.trustIn(b.lease))
				s.renewGuests(t)
			}
			t.renewAt = min(t.renewAt, s.nextLook(t, sent))
			t.doubtful = false // a doubt since then has it asked for again
		}
		s.reschedule(t)
	}
	s.unlock()
	if err != nil {
		s.log.Warn("relock: renewal failed, will be tried again", "locks", len(b.tenures), "error", err)
	}
	s.cfg.Trace.renewed(len(b.tenures), err)
}

// recheck asks for every hold at once: the session was not listening for a moment,
// so it may have missed that one was ended.
func (s *Session) recheck() {
	s.mu.Lock()
	defer s.unlock()
	for _, t := range s.held {
		s.doubt(t)
	}
	for t := range s.pending {
		s.doubt(t)
	}
	s.beatAll()
}

// doubt has Redis asked about t at once, or as soon as it is granted. Session.mu must
// be held.
func (s *Session) doubt(t *tenure) {
	t.doubtful = true
	if t.state == holding && t.live() > 0 && t.Err() == nil {
		t.renewAt = min(t.renewAt, s.now())
		s.reschedule(t)
	}
}
