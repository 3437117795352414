package engine

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"relock/internal/cleanup"
	"relock/internal/resend"
	"relock/internal/script"
	"relock/internal/tracing"
	"relock/locktrace"
)

// UnlockAsync: a release that no caller waits for is a departure. It leaves at once, in the background, unless an
// attempt of the session for the same lock comes before: that takes it along, in front of itself in one pipeline. Its
// answer is taken in before that of the attempt. Until it is answered, or the release timeout is over, its claim is
// releasing, as that of an Unlock which another goroutine waits for.

// UnlockAsync is Unlock that does not wait; package rlock documents it.
func (h *Hold) UnlockAsync() {
	if !h.valid() {
		return
	}
	if err := h.unlock(true); err != nil && err != errLeaves {
		h.section.claim.tellFailed(err)
	}
}

// errLeaves says that the release of a hold is on its way: what becomes of it is told later.
var errLeaves = errors.New("rlock: the release is on its way")

// tellFailed tells the logger what an Unlock would have returned.
func (c *claim) tellFailed(err error) {
	c.lock.s.log.Warn("relock: an UnlockAsync has failed", "name", c.prim.Names().Name(), "owner", c.ownerID(), "error", err)
}

// A departure is a release that no caller waits for. It is guarded by the mutex of its claim's lock, but for what
// hears results, which one goroutine does at a time: that of the clean-up, or a caller that has taken it along.
type departure struct {
	ending
	resend.Pending
	job    cleanup.Job
	number uint64
	mine   bool          // the caller that looks at it has taken it along, and has not sent it
	over   bool          // its answer was taken in, or the release timeout is over
	gone   chan struct{} // made by those that wait for that

	trace *tracing.Hold // what the hooks follow the hold by, if anything
	tell  func(err error, gone bool)

	inner *section // of which it ends some holds, if it does not end the claim
	parts []part   // for each command
}

// A part is the ids of a side that a command ends, while other holds stay.
type part struct {
	side int
	ids  []string
}

// departures are those of a session by their locks. A lock that has some says so in leaving.
type departures struct {
	mu   sync.Mutex
	last uint64
	of   map[*lock][]*departure
}

func (s *departures) add(l *lock, d *departure) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of == nil {
		s.of = map[*lock][]*departure{}
	}
	s.last++
	d.number = s.last
	s.of[l], l.leaving = append(s.of[l], d), true
}

func (s *departures) remove(l *lock, d *departure) {
	s.mu.Lock()
	defer s.mu.Unlock()
	left := slices.DeleteFunc(s.of[l], func(o *departure) bool { return o == d })
	if s.of[l] = left; len(left) == 0 {
		delete(s.of, l)
		l.leaving = false
	}
}

// departures returns those of the lock, and the number of the last one of all.
func (l *lock) departures() (all []*departure, last uint64) {
	s := &l.s.departures
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.of[l]), s.last
}

// depart has the release of a claim whose last section has closed leave. The lock's mutex must be held and is
// released.
func (c *claim) depart(now time.Duration, t *tracing.Hold) error {
	d := &departure{ending: ending{c: c, now: now}, trace: t}
	d.Pending = resend.NewPending(d.prepare(nil))
	if r := c.run; r != nil && r.Waiting() == 0 {
		r.End() // the next caller need not wait for others to gather
	}
	d.leave()
	c.lock.unlock()
	return errLeaves
}

// leave has the commands of a departure sent. The lock's mutex must be held; it may be released meanwhile, and is held
// again at the end.
func (d *departure) leave() {
	c := d.c
	l, s := c.lock, c.lock.s
	if d.trace != nil {
		l.unlock()
		d.tell = d.trace.ReleaseStart()
		l.mu.Lock()
	}
	j := &d.job
	*j = cleanup.Job{Name: c.prim.Names().Name(), Until: c.latestEnd(d.now), Heard: d.Hear, Again: d.again, Done: d.done}
	for _, cmd := range d.Cmds {
		j.Cmds = append(j.Cmds, cmd.Command)
	}
	s.departures.add(l, d)
	if !s.cleanup.Leave(j) {
		d.settle(ErrClosed)
		c.tellFailed(ErrClosed)
	}
}

// again is told by the clean-up that the release goes on.
func (d *departure) again(err error) {
	l := d.c.lock
	l.mu.Lock()
	d.followed = false // by nothing that still counts
	if !d.over && l.s.now() >= d.now+l.s.cfg.ReleaseTimeout {
		err = d.Err(err)
		d.settle(err)
		d.c.tellFailed(opError("unlock", d.c.prim, err))
	}
	l.unlockBehind()
}

// done is told by the clean-up that all was answered, or that it was given up, of which the clean-up has told the
// logger.
func (d *departure) done(err error) {
	l := d.c.lock
	l.mu.Lock()
	switch {
	case !d.over:
		if err != nil {
			err = d.Err(err)
		}
		d.settle(err)
	case err == nil && d.inner != nil:
		d.confirmed()
	}
	l.unlockBehind()
}

// settle takes in the answer, or its lack, and tells the hooks.
func (d *departure) settle(err error) {
	c := d.c
	l, s, gone := c.lock, c.lock.s, d.Lost
	d.over = true
	s.departures.remove(l, d)
	if d.gone != nil {
		close(d.gone)
	}
	sent := err
	if d.inner != nil {
		err = d.innerAnswered(err)
	} else {
		err = d.answered(d.Cmds, &d.Released, err)
	}
	if d.trace != nil {
		s.notes.AddSurely(func() {
			d.tell(sent, gone)
			d.trace.Left(locktrace.HoldReleased, d.now, err)
		})
	}
}

// takeAlong takes the departures of the lock that were not sent yet, for an attempt that is about to be sent. Those
// that were are away.
func (l *lock) takeAlong() (along, away []*departure) {
	all, _ := l.departures()
	for _, d := range all {
		if l.s.cleanup.Take(&d.job) {
			d.mine = true
			along = append(along, d)
		} else {
			away = append(away, d)
		}
	}
	return along, away
}

// putBack has departures leave after all that were taken along, but for those that were sent.
func (l *lock) putBack(along []*departure) {
	for _, d := range along {
		if d.mine {
			d.mine, d.followed = false, false
			l.s.cleanup.Return(&d.job, nil)
		}
	}
}

// follows reports whether the caller in front can ask although a claim of its session holds the lock: that is being
// released, and the release can be taken along.
func (a *acquisition) follows() bool {
	l := a.lock
	if !l.releases() {
		return false
	}
	along, _ := l.takeAlong()
	if slices.ContainsFunc(along, func(d *departure) bool { return d.c == l.holder }) {
		a.along = along
		return true
	}
	l.putBack(along)
	return false
}

// releases reports whether the claim that holds the lock is being released while it has departures.
func (l *lock) releases() bool { return l.leaving && l.holder != nil && l.holder.state == releasing }

// awaitAway has a TryLock wait for the departures that are away already and that it may be refused for. Others it
// takes along. The lock's mutex must be held; it is released meanwhile and held again at the end.
func (a *acquisition) awaitAway() error {
	l := a.lock
	_, last := l.departures()
	for l.leaving {
		along, away := l.takeAlong()
		i := slices.IndexFunc(away, func(d *departure) bool {
			return d.number <= last && (d.inner != nil || a.kind.Exclusive || d.c.kind.Exclusive || a.kind.Permits)
		})
		if i < 0 {
			a.along = along
			return nil
		}
		l.putBack(along)
		d := away[i]
		if d.gone == nil {
			d.gone = make(chan struct{})
		}
		gone := d.gone
		l.unlock()
		ctx, cancel := a.bounded(a.ctx, a.queued)
		answered := false
		select {
		case <-gone:
			answered = true
		case <-ctx.Done():
		}
		cancel()
		var err error
		if !answered {
			err = a.ended()
		}
		l.mu.Lock()
		if err != nil {
			return err
		}
	}
	return nil
}

// bring takes along what has not left yet, for the attempt that is about to be sent. What it returns is to be
// deferred: it has leave what was not sent after all, also if code of the caller's context has ended the goroutine.
func (a *acquisition) bring() (end func()) {
	l := a.lock
	if a.along == nil {
		a.along, _ = l.takeAlong()
	}
	along := a.along
	for _, d := range along {
		d.followed = l.queue.First == &a.node
	}
	return func() {
		a.along = nil
		l.putBack(along)
	}
}

// sendBehind sends an attempt behind the departures that it takes along, and takes in their answers. It runs the
// hooks: no mutex may be held.
func (s *Session) sendBehind(ctx context.Context, along []*departure, cmd script.Command) rueidis.RedisResult {
	if err := ctx.Err(); err != nil {
		return rueidis.NewErrorResult(err)
	}
	var cmds []script.Command
	for _, d := range along {
		cmds = append(cmds, d.job.Cmds...)
	}
	results := s.redis.Run.InOrder(ctx, append(cmds, cmd))
	for _, d := range along {
		n := len(d.Cmds)
		d.mine = false
		s.cleanup.Return(&d.job, results[:n])
		results = results[n:]
	}
	return results[0]
}

// leaveInner is the UnlockAsync of a hold while its section goes on. The lock's mutex must be held; it is released
// meanwhile and held again at the end.
func (h *Hold) leaveInner(t *tracing.Hold) error {
	err, counted := h.endInner()
	switch c := h.section.claim; {
	case !counted:
	case c.account.Busy(): // with a command whose answer comes first
		c.account.Unsent = true
	case c.departSurplus(h.section, t):
		err = cmp.Or(err, errLeaves)
	}
	return err
}

// departUnsent has leave what an UnlockAsync has left to the command that was awaited then.
func (c *claim) departUnsent(x *section) {
	if c.account.Unsent && !c.account.Busy() {
		c.departSurplus(x, nil)
	}
}

// departSurplus has the release of holds leave beyond those that the section has, and reports whether there are any.
// The lock's mutex must be held; it may be released meanwhile, and is held again at the end.
func (c *claim) departSurplus(x *section, t *tracing.Hold) bool {
	if x.hasEnded() || c.state != held || x.holds.Held() == 0 {
		return false
	}
	c.account.Unsent = false
	d := &departure{ending: ending{c: c, now: c.lock.s.now()}, trace: t, inner: x}
	keep := c.keepFor(x)
	var cmds []resend.ReleaseCommand
	for side := range x.holds.Live {
		ends := c.surplus(side, x)
		if len(ends) == 0 {
			continue
		}
		if keep > 0 { // by the time that it runs, the holds that stay may deserve more
			c.account.Shortening(ends)
		}
		d.parts = append(d.parts, part{side, ends})
		cmds = append(cmds, resend.ReleaseCommand{Command: c.account.Partial(c.kind, side, ends, keep, c.op()), Known: true})
	}
	if cmds == nil {
		return false
	}
	d.Pending = resend.NewPending(cmds)
	c.account.Sending()
	c.account.Leaves = true
	d.leave()
	return true
}

// innerAnswered is answered for holds that ended while their section went on.
func (d *departure) innerAnswered(err error) error {
	c, x := d.c, d.inner
	m := c.account
	m.Leaves = false
	switch {
	case err != nil:
		c.pinned = true
	case x.hasEnded() || c.state != held:
		err = x.lostErr()
	case d.Lost:
		c.lose("it was gone when it was unlocked", true)
		err = ErrLost
	default:
		d.confirmed()
		if until, _ := x.holds.LastFixed(nil); x.holds.Held() == len(x.holds.Fixed()) {
			c.trust = min(c.trust, until)
			c.reschedule()
		}
	}
	m.Answered()
	if c.state == held {
		c.departUnsent(x)
		c.vacate()
	}
	return err
}

// confirmed notes that the holds of a departure are no longer in Redis.
func (d *departure) confirmed() {
	for _, p := range d.parts {
		d.c.account.Ended(p.side, p.ids)
		d.c.account.Shortened(p.ids)
	}
}
