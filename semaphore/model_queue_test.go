package semaphore_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"time"

	"relock/internal/test/modeltest"
	"relock/rlock"
)

// What the models of both kinds share: requests that queue up in their session.

// request is an Acquire or TryAcquire.
type request struct {
	n      int
	number int           // in the order in which they began
	try    bool          // it does not wait
	wait   time.Duration // 0: as long as it takes
	raced  bool          // it was cancelled in the moment in which it may have been granted
	behind bool          // others of its session were waiting when it began
}

func (r *request) asked() *request { return r }

func requestOf(c *modeltest.Call) *request { return c.Data.(interface{ asked() *request }).asked() }

func (r request) String() string {
	return fmt.Sprintf("%d, try %v, wait %v, behind others %v", r.n, r.try, r.wait, r.behind)
}

// options of an Acquire.
func (r *request) options() []rlock.LockOption {
	if r.try || r.wait > 0 {
		return []rlock.LockOption{rlock.Wait(r.wait)}
	}
	return nil
}

// excused: the call ended with an error that has nothing to do with what was free.
func (r *request) excused(c *modeltest.Call) bool {
	notAcquired, cancelled := errors.Is(c.Err, rlock.ErrNotAcquired), errors.Is(c.Err, context.Canceled)
	switch {
	case c.Actor.Seat.Session == nil:
		return errors.Is(c.Err, rlock.ErrClosed)
	case cancelled:
		return r.raced || notAcquired && c.Ctx.Err() != nil && !r.try
	}
	return r.wait > 0 && notAcquired && time.Now().Equal(c.Began.Add(r.wait))
}

type queue struct {
	w      *modeltest.World
	drawn  int // requests
	line   line
	gave   time.Time // when something was given back last
	left   time.Time // when permits were, of which a session may have had more than its share
	killed bool      // a process was: what speaks of it may outlive its entry
}

// waiting returns the requests that wait in the process on seat, or in all, oldest first.
func (q *queue) waiting(seat *modeltest.Seat) (all []*modeltest.Call) {
	for _, c := range q.w.Waiting() {
		if _, ok := c.Data.(interface{ asked() *request }); ok && (seat == nil || c.Actor.Seat == seat) {
			all = append(all, c)
		}
	}
	return all
}

// draw makes up a request of a.
func (q *queue) draw(r *rand.Rand, a *modeltest.Actor) request {
	q.drawn++
	d := request{number: q.drawn, n: 1 + r.IntN(1+r.IntN(6)), behind: len(q.waiting(a.Seat)) > 0}
	switch r.IntN(40) {
	case 0:
		d.n = -r.IntN(2)
	case 1:
		d.n = 100
	}
	switch r.IntN(5) {
	case 0:
		d.try = true
	case 1:
		d.wait = time.Millisecond << r.IntN(17) // to a minute
	}
	return d
}

// outOfTurn says why a granted request should not have been, or "".
func (q *queue) outOfTurn(c *modeltest.Call, d *request) string {
	if c.Ctx.Err() != nil && !d.raced {
		return "its context had ended"
	}
	if d.try && d.behind {
		return "others of its session were waiting"
	}
	for _, other := range q.waiting(c.Actor.Seat) {
		if requestOf(other).number < d.number {
			return fmt.Sprintf("%v: %s has waited for longer", other.Actor, other.Text)
		}
	}
	return ""
}

// overdue returns the requests that should have ended, whatever is free.
func (q *queue) overdue() (all []*modeltest.Call) {
	for _, c := range q.waiting(nil) {
		d := requestOf(c)
		if c.Ctx.Err() != nil || d.wait > 0 && time.Since(c.Began) >= d.wait {
			all = append(all, c)
		}
	}
	return all
}

// calm: nobody has been cut off lately, so that messages are heard.
func (q *queue) calm() bool { return q.w.Calm(q.w.Config.PollFloor + 2*time.Millisecond) }

func (q *queue) cancel(c *modeltest.Call) {
	q.w.Logf("%v: %s is cancelled", c.Actor, c.Text)
	c.Cancel()
}

// mayRace says whether to cancel a request just after its beginning.
//
// TOLERATED: the first command after a cut dials again with the context of its caller. When
// that ends, all that wait for the connection fail with it, the undo of the request too; it is
// tried again only milliseconds later, and whoever closes the session waits for that.
func (q *queue) mayRace() bool { return q.w.Calm(5 * time.Minute) }

// race cancels a request while it may be granted.
func (q *queue) race(r *rand.Rand, c *modeltest.Call) {
	for range r.IntN(60) {
		runtime.Gosched()
	}
	requestOf(c).raced = true
	q.cancel(c)
}

func (q *queue) cancelOne(r *rand.Rand, _ *modeltest.Actor) bool {
	all := q.waiting(nil)
	if len(all) > 0 {
		q.cancel(all[r.IntN(len(all))])
	}
	return len(all) > 0
}

func (q *queue) cancelFirst() bool {
	all := q.waiting(nil)
	if len(all) > 0 {
		q.cancel(all[0])
	}
	return len(all) > 0
}
