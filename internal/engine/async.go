package engine

import (
	"errors"
	"slices"
	"sync"
	"time"

	"relock/internal/api"
	"relock/internal/redis"
	"relock/internal/report"
	"relock/locktrace"
)

// UnlockAsync makes an async release: one that no caller waits for. The clean-up sends it in the background. If an
// attempt of the session for the same lock is sent first, the release is piggybacked: both go in one pipeline, the
// release in front, and its answer is handled before that of the attempt. The claim is releasing, as in an Unlock, until
// the release is answered or the release timeout is over.

// UnlockAsync is Unlock that does not wait; package rlock documents it.
func (h *Hold) UnlockAsync() {
	if !h.valid() {
		return
	}
	if err := h.Unlock(true); err != nil && err != errReleaseSent {
		h.section.claim.reportFailed(err)
	}
}

// errReleaseSent says that the release of a hold is under way. Its outcome is reported later, to the logger and the hooks.
var errReleaseSent = errors.New("rlock: the release is on its way")

// reportFailed logs the error that an Unlock would have returned.
func (c *claim) reportFailed(err error) {
	c.lock.s.log.Warn("relock: an UnlockAsync has failed", "name", api.Shown(c.prim.Names().Name()), "owner", api.Shown(c.ownerID()), "error", err)
}

// An asyncRelease is a release that no caller waits for. It is guarded by the mutex of its claim's lock, but for what
// hears results, which one goroutine does at a time: that of the clean-up, or a caller that piggybacks it.
type asyncRelease struct {
	claimRelease
	redis.Pending
	job    redis.Job
	number uint64
	mine   bool          // a caller has taken it to be piggybacked, and has not sent it
	over   bool          // its answer was handled, or the release timeout is over
	gone   chan struct{} // made by the callers that wait for that

	trace     *report.Hold // what the hooks follow the hold by, if anything
	traceDone func(err error, gone bool)

	inner *innerRelease // if it does not end the claim
}

// asyncReleases are those of a session by their locks. lock.hasAsync is true while a lock has some.
type asyncReleases struct {
	mu   sync.Mutex
	last uint64
	of   map[*lock][]*asyncRelease
}

func (s *asyncReleases) add(l *lock, d *asyncRelease) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of == nil {
		s.of = map[*lock][]*asyncRelease{}
	}
	s.last++
	d.number = s.last
	s.of[l], l.hasAsync = append(s.of[l], d), true
}

func (s *asyncReleases) remove(l *lock, d *asyncRelease) {
	s.mu.Lock()
	defer s.mu.Unlock()
	left := slices.DeleteFunc(s.of[l], func(o *asyncRelease) bool { return o == d })
	if s.of[l] = left; len(left) == 0 {
		delete(s.of, l)
		l.hasAsync = false
	}
}

// all returns those of a lock, and the number of the last one of all.
func (s *asyncReleases) all(l *lock) (all []*asyncRelease, last uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.of[l]), s.last
}

// releaseAsync sends the release of a claim whose last section has closed, without waiting for the answer. The lock's mutex must be held and is
// released.
func (c *claim) releaseAsync(now time.Duration, t *report.Hold) error {
	d := &asyncRelease{claimRelease: claimRelease{c: c, now: now}, trace: t}
	d.Pending = redis.NewPending(d.prepare(nil))
	if r := c.run; r != nil && r.Waiting == 0 {
		r.End() // the next caller need not wait for others to gather
	}
	d.send()
	c.lock.unlock()
	return errReleaseSent
}

// send hands the commands of an async release to the clean-up. The lock's mutex must be held; it may be released meanwhile, and is held
// again at the end.
func (d *asyncRelease) send() {
	c := d.c
	l, s := c.lock, c.lock.s
	if d.trace != nil && d.traceDone == nil {
		l.unlock()
		end, late := s.releaseStart(d.trace, d.quit)
		l.mu.Lock()
		if late != nil {
			return // quit has sent it
		}
		d.traceDone = end
	}
	j := &d.job
	*j = redis.Job{Name: c.prim.Names().Name(), Cmds: commandsOf(d.Cmds), Until: c.latestEnd(d.now), Heard: d.Hear, Again: d.again, Done: d.done}
	s.async.add(l, d)
	if !s.cleanup.Leave(j) {
		d.finish(ErrClosed)
		c.reportFailed(ErrClosed)
	}
}

// again is called by the clean-up when it sends the release once more.
func (d *asyncRelease) again(err error) {
	l := d.c.lock
	l.mu.Lock()
	d.followed = false // by nothing that still counts
	if !d.over && l.s.now() >= d.now+l.s.cfg.ReleaseTimeout {
		err = redis.NotReleased(err)
		d.finish(err)
		d.c.reportFailed(opError("unlock", d.c.prim, err))
	}
	l.unlockInBackground()
}

// done is called by the clean-up when all commands were answered, or when it gives up, which it has logged.
func (d *asyncRelease) done(err error) {
	l := d.c.lock
	l.mu.Lock()
	switch {
	case !d.over:
		if err != nil {
			err = redis.NotReleased(err)
		}
		d.finish(err)
	case err == nil && d.inner != nil:
		d.inner.confirmed()
	case err == nil:
		d.entering.dismissLate()
	}
	l.unlockInBackground()
}

// finish handles the answer, or the error that stands for it, and calls the hooks.
func (d *asyncRelease) finish(err error) {
	c := d.c
	l, s, gone := c.lock, c.lock.s, d.Lost
	d.over = true
	s.async.remove(l, d)
	if d.gone != nil {
		close(d.gone)
	}
	sent := err
	if d.inner != nil {
		err = d.inner.answered(d.Lost, err)
	} else {
		err = d.answered(d.Cmds, &d.Released, err)
	}
	if d.trace != nil {
		s.notes.AddSurely(func() {
			d.traceDone(sent, gone)
			d.trace.Left(locktrace.HoldReleased, d.now, err)
		})
	}
}
