package engine

import (
	"errors"
	"slices"
	"sync"
	"time"

	"relock/internal/redis"
	"relock/internal/report"
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
	redis.Pending
	job    redis.Job
	number uint64
	mine   bool          // the caller that looks at it has taken it along, and has not sent it
	over   bool          // its answer was taken in, or the release timeout is over
	gone   chan struct{} // made by those that wait for that

	trace *report.Hold // what the hooks follow the hold by, if anything
	tell  func(err error, gone bool)

	inner *section // of which it ends some holds, if it does not end the claim
	parts []part   // for each command
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
func (c *claim) depart(now time.Duration, t *report.Hold) error {
	d := &departure{ending: ending{c: c, now: now}, trace: t}
	d.Pending = redis.NewPending(d.prepare(nil))
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
	*j = redis.Job{Name: c.prim.Names().Name(), Until: c.latestEnd(d.now), Heard: d.Hear, Again: d.again, Done: d.done}
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
	case err == nil:
		d.dismissLate()
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
