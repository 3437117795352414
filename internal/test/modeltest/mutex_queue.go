package modeltest

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// A Place is where a waiter stands in the queue of a fair lock.
type Place struct {
	Session, Owner string
	// Shares: others of the session may have joined it, so that it is of a nameless owner
	// without a fixed lease. Known is false where what the queue knew of it was deleted.
	Shares, Known bool
}

// A queue is what the model of a fair lock knows of the order of its waiters.
//
// The model looks at each quiet instant, and counts these looks. A call that begins after
// look n has its place behind every waiter that was in the queue at look n, and a call that
// waits at a look is in the queue by then; with two exceptions. While a process has no
// connection its attempts take a moment. And of the calls of one owner in one process
// only one is in the queue, the others wait for that. So each call has a look at which it
// was not in the queue yet, and one since which it certainly is; the order of two is known
// if these do not overlap.
//
// The dead keep their places until they have been silent for a QueueLease, but nobody waits
// for them: that nobody listens any more is known at once.
type queue struct {
	looks    int
	sessions map[string]process // by session id
	stirred  time.Time          // when places were last lost by no fault of the waiters
	jolt     time.Time          // when anything but time last happened
	killed   time.Time          // when a process last was
	front    Place              // who was in front at the last look
}

type process struct {
	seat *Seat
	life int
	gone bool // in good order
}

func newQueue() queue { return queue{sessions: map[string]process{}} }

func (p process) live() bool {
	return p.seat != nil && p.seat.Session != nil && p.seat.Life == p.life
}

// newLockCall is what is known of a Lock before it begins.
func (m *Mutex) newLockCall(a *Actor) *lockCall {
	id := a.Seat.Session.ID()
	m.queue.sessions[id] = process{seat: a.Seat, life: a.Seat.Life}
	return &lockCall{from: m.queue.looks, session: id}
}

func (m *Mutex) queueGone(seat *Seat, killed bool) {
	m.queue.jolt = time.Now()
	if killed {
		m.queue.killed = time.Now()
		return
	}
	for id, p := range m.queue.sessions {
		if p.seat == seat && p.life == seat.Life {
			p.gone = true
			m.queue.sessions[id] = p
		}
	}
}

// gatherFor is for how long a waiter may gather with others before it is in the queue.
const gatherFor = 3 * time.Millisecond

// heartbeat is the longest time between two signs of life of a waiter.
func (m *Mutex) heartbeat() time.Duration { return m.w.Config.QueueLease / 4 }

// queueCalm: everybody has heard, and was heard of, since something unusual happened.
func (m *Mutex) queueCalm() bool {
	return m.w.Calm(m.w.Config.PollFloor) && (m.queue.stirred.IsZero() || time.Since(m.queue.stirred) > m.heartbeat())
}

// floor is for how long the lock may be free, without a message, while somebody waits.
func (m *Mutex) floor() time.Duration {
	switch {
	case !m.kind.Fair:
		return m.w.Config.PollFloor
	case m.queueCalm():
		return m.heartbeat()
	default:
		return m.w.Config.QueueLease
	}
}

type waitersCall struct{ n int }

// queueOps are the operations that only a fair lock has.
func (m *Mutex) queueOps() []Op {
	if !m.kind.Fair {
		return nil
	}
	return []Op{
		{Name: "count the waiters", Weight: 3, Do: Idle(func(_ *rand.Rand, a *Actor) bool {
			d := new(waitersCall)
			counter := m.kind.New(a.Seat.Session).(interface {
				Waiters(context.Context) (int, error)
			})
			m.w.Begin(a, context.Background(), false, d, "Waiters", func(ctx context.Context) (err error) {
				d.n, err = counter.Waiters(ctx)
				return err
			})
			return true
		})},
		{Name: "delete, and come or go before the next heartbeat", Weight: 5, Do: Idle(func(r *rand.Rand, a *Actor) bool {
			calls := m.w.Waiting()
			if m.owner == "" || len(calls) == 0 {
				return false
			}
			m.w.Logf("the key is deleted")
			m.w.Redis.Del(m.kind.Key)
			m.endLife(time.Now(), false)
			if n := r.IntN(3); n > 0 {
				return m.lock(r, a, nil, n == 1)
			}
			m.cancel(calls[r.IntN(len(calls))])
			return true
		})},
		{Name: "delete a helper key", Weight: 1, Do: func(r *rand.Rand, _ *Actor) bool {
			key := m.kind.Helpers[r.IntN(len(m.kind.Helpers))]
			if r.IntN(3) > 0 || !m.w.Redis.Del(key) {
				return false
			}
			m.w.Logf("%q is deleted", key)
			m.queue.stirred = time.Now()
			for _, c := range m.w.Waiting() {
				if d, ok := c.Data.(*lockCall); ok {
					d.from, d.since, d.scattered = m.queue.looks, 0, false
				}
			}
			return true
		}},
	}
}

// leaving: a cancelled call of a process that has to connect again takes a moment to see
// that it is gone from the queue.
func (m *Mutex) leaving(d *lockCall) bool {
	if !m.kind.Fair || !d.raced || m.w.Calm(math.MaxInt64) || time.Since(d.left) > 100*time.Millisecond {
		return false
	}
	m.queue.stirred = time.Now() // it has a place or not
	return true
}

// letIn: a TryLock that found the lock free has let in somebody who waited.
func (m *Mutex) letIn(ended []*Call) bool {
	return slices.ContainsFunc(ended, func(c *Call) bool {
		d, ok := c.Data.(*lockCall)
		return ok && !d.try && (c.Err == nil || d.raced)
	})
}

// gathers reports whether a waiter shares its place with others of its session.
func (m *Mutex) gathers(d *lockCall) bool {
	return d.owner == "" && d.lease == 0 && m.w.Config.HandOverLimit >= 0
}

// inRun reports whether a waiter may belong to the run of a claim that its session has, or has
// lost without knowing it yet: then it has no place in Redis.
func (m *Mutex) inRun(d *lockCall) bool {
	return m.gathers(d) && slices.ContainsFunc(m.claims, func(t *claim) bool {
		return t.over == nil && strings.HasPrefix(t.owner, d.session+":")
	})
}

// scatter: the rest of a run whose claim was lost has no place until its session knows. Then it
// has the place that it had.
func (m *Mutex) scatter() {
	for _, c := range m.w.Waiting() {
		if d, ok := c.Data.(*lockCall); ok && m.inRun(d) {
			d.scattered = true
		}
	}
}

// dropRuns takes those off the waiters who have no place, since their run has been let in: of
// a session that has one the first, as many as have no place. unsure are sessions of which it
// is not known who has one, since others of theirs may just have come.
func (m *Mutex) dropRuns(waiting []*lockCall, places []Place) (left []*lockCall, unsure map[string]bool) {
	without := map[string]int{}
	unsure = map[string]bool{}
	for _, d := range waiting {
		switch {
		case !m.gathers(d):
		case d.since > 0:
			without[d.session]++
		case m.inRun(d) || d.scattered:
			unsure[d.session] = true
		}
	}
	for _, p := range places {
		if strings.HasPrefix(p.Owner, p.Session+":") && (p.Shares || !p.Known) {
			without[p.Session]--
		}
	}
	left = slices.DeleteFunc(waiting, func(d *lockCall) bool {
		if without[d.session] <= 0 || d.since == 0 || !m.inRun(d) && !d.scattered {
			return false
		}
		without[d.session]--
		return true
	})
	return left, unsure
}

// gathered: somebody of the same process waits, though perhaps not yet in Redis.
func (m *Mutex) gathered(c *Call) bool {
	return slices.ContainsFunc(m.w.Waiting(), func(o *Call) bool {
		_, ok := o.Data.(*lockCall)
		return ok && o.Actor.Seat == c.Actor.Seat
	})
}
