package modeltest

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
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
// look n has its place behind everybody who was in the queue at look n, and whoever waits
// at a look is in the queue by then; with two exceptions. While a process has no
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

// checkOrder: whoever enters overtakes nobody. Behind the first of a named owner others
// may come in its name in the same instant, from other processes too.
func (m *Mutex) checkOrder(c *Call, d *lockCall, ended []*Call) {
	if !m.kind.Fair || !m.queueCalm() {
		return
	}
	m.checkPunctual(c)
	for _, o := range m.w.Waiting() {
		od, ok := o.Data.(*lockCall)
		if ok && od.before(d) && !od.scattered && !slices.ContainsFunc(ended, func(e *Call) bool {
			ed, ok := e.Data.(*lockCall)
			return ok && e.Err == nil && d.owner != "" && ed.owner == d.owner && !od.before(ed)
		}) {
			m.w.Failf("%s got in before %v: %s", c.Text, o.Actor, o.Text)
		}
	}
}

// before reports whether d's place is certainly in front of that of other.
func (d *lockCall) before(other *lockCall) bool { return d.since > 0 && other.from >= d.since }

// checkQueue compares the queue with that in Redis, and notes who is in it by now.
func (m *Mutex) checkQueue(ended []*Call) {
	if !m.kind.Fair {
		return
	}
	m.queue.looks++
	if len(ended) > 0 {
		m.queue.jolt = time.Now()
	}
	m.arrived()
	m.checkHelpers()
	places := m.kind.Queue(m.w.Redis)
	var live []Place
	for _, p := range places {
		proc, known := m.queue.sessions[p.Session]
		switch {
		case !known || proc.gone:
			m.w.Failf("Redis has a place of session %s, which has closed", p.Session)
		case proc.live():
			live = append(live, p)
		}
	}
	if m.queueCalm() {
		m.checkPlaces(live)
		m.checkCount(ended, len(live), len(places))
	}
	m.checkLeft(ended)
	m.queue.front = Place{}
	if len(places) > 0 {
		m.queue.front = places[0]
	}
}

// arrived notes who is certainly in the queue by now, or certainly not.
func (m *Mutex) arrived() {
	for _, c := range m.w.Waiting() {
		d, ok := c.Data.(*lockCall)
		if ok && d.scattered && m.queueCalm() && !m.inRun(d) {
			d.scattered = false
		}
		if !ok || d.since > 0 || d.scattered || time.Since(c.Began) < gatherFor {
			continue
		}
		alone, behind := true, false
		for _, o := range m.w.Waiting() {
			od, ok := o.Data.(*lockCall)
			if ok && o != c && od.session == d.session && od.owner == d.owner && d.owner != "" {
				alone, behind = false, behind || od.since > 0
			}
		}
		switch {
		case behind:
			d.from = m.queue.looks
		case d.owner != "" && time.Since(m.queue.jolt) < gatherFor: // it may just have come to its turn
		case alone && m.queueCalm():
			d.since = m.queue.looks
		}
	}
}

// checkHelpers: every key but the token has a TTL, and each hold an id.
func (m *Mutex) checkHelpers() {
	for _, key := range m.w.Redis.Keys() {
		if m.w.Redis.TTL(key) <= 0 && !slices.Contains(m.w.Keep, key) {
			m.w.Failf("%q has no TTL", key)
		}
	}
	if m.owner == "" || m.w.Redis.HGet(m.kind.Key, m.owner) == "" {
		return
	}
	ids, _ := m.w.Redis.SMembers(m.kind.Ids)
	ids = slices.DeleteFunc(ids, func(id string) bool { return strings.HasPrefix(id, "forced:") })
	count := m.w.Redis.HGet(m.kind.Key, m.owner)
	n, _ := strconv.Atoi(count)
	// The first hold of a private owner has no id, and does not remove those of an earlier life.
	private := m.owner != "ann" && m.owner != "bob"
	if n != len(ids) && !(private && n >= 1 && n <= len(ids)+1) {
		m.w.Failf("Redis counts %s holds, and has the ids %q", count, ids)
	}
	if lock, own := m.w.Redis.TTL(m.kind.Key), m.w.Redis.TTL(m.kind.Ids); !(private && n == 1) && lock-own > time.Millisecond {
		m.w.Failf("the lock lives for %v, the ids of its holds for %v", lock, own)
	}
}

// checkPlaces compares who waits with the places of the living in Redis.
func (m *Mutex) checkPlaces(places []Place) {
	var waiting, sorted []*lockCall // as they came, the certain ones first; in Redis's order
	for _, certain := range []bool{true, false} {
		for _, c := range m.w.Waiting() {
			if d, ok := c.Data.(*lockCall); ok && certain == (d.since > 0) {
				waiting = append(waiting, d)
			}
		}
	}
	waiting, unsure := m.dropRuns(waiting, places)
	for _, p := range places {
		i := slices.IndexFunc(waiting, func(d *lockCall) bool {
			return d.session == p.Session && (d.owner == p.Owner || d.owner == "" && strings.HasPrefix(p.Owner, p.Session+":")) &&
				(!p.Known || p.Shares == m.gathers(d))
		})
		if i < 0 {
			m.w.Failf("Redis has a place of %q on session %s, where nobody waits in that name", p.Owner, p.Session)
			return
		}
		sorted = append(sorted, waiting[i])
		waiting = slices.Delete(waiting, i, i+1)
	}
	for _, d := range waiting {
		if d.since > 0 {
			m.w.Failf("a Lock of owner %q on session %s waits, and has no place in %v", d.owner, d.session, places)
		}
	}
	for i, d := range sorted {
		for _, behind := range sorted[i+1:] {
			if behind.before(d) && !unsure[behind.session] {
				m.w.Failf("in Redis %q of session %s is in front of %q of session %s, who came before",
					d.owner, d.session, behind.owner, behind.session)
			}
		}
	}
}

// checkCount judges what Waiters said: the living, and the dead until they have been silent
// for too long (also those of whom only that is left when they were last heard of).
func (m *Mutex) checkCount(ended []*Call, live, all int) {
	within := func(t time.Time) bool { return !t.IsZero() && time.Since(t) < m.w.Config.QueueLease }
	switch {
	case !within(m.queue.killed):
		all = live
	case within(m.queue.stirred):
		all = math.MaxInt
	}
	for _, c := range ended {
		if d, ok := c.Data.(*waitersCall); ok && (c.Err != nil || d.n < live || d.n > all) {
			m.w.Failf("Waiters returned %d, %v; %d wait, and there are %d places", d.n, c.Err, live, all)
		}
	}
}

// checkLeft: one who leaves the queue while the lock is free has let in the next.
func (m *Mutex) checkLeft(ended []*Call) {
	if m.owner != "" || !m.queueCalm() {
		return
	}
	left := slices.ContainsFunc(ended, func(c *Call) bool {
		d, ok := c.Data.(*lockCall)
		return ok && c.Err != nil && d.since > 0 && !d.scattered
	})
	for _, c := range m.w.Waiting() {
		if d, ok := c.Data.(*lockCall); ok && left && d.since > 0 && !d.scattered {
			m.w.Failf("%v: %s waits, the lock is free, and somebody has just left the queue", c.Actor, c.Text)
		}
	}
}

// checkPunctual: when a lease has ended and nothing else has happened for a while, the first
// one in the queue has asked how long it takes, and is there then. It is called before
// what has happened now is noted.
func (m *Mutex) checkPunctual(c *Call) {
	late := time.Since(m.since)
	if m.since.Sub(m.queue.jolt) <= m.heartbeat() || !m.queueCalm() || late <= 3*time.Millisecond {
		return
	}
	if p := m.queue.front; m.queue.sessions[p.Session].live() {
		m.w.Failf("%s got in %v after the lease had ended; first in the queue was %q of session %s", c.Text, late, p.Owner, p.Session)
	}
}
