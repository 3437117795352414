package semaphore_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"

	"relock/internal/test/modeltest"
	"relock/rlock"
	"relock/semaphore"
)

// Random operations on one counter, by three processes that come and go, against a plain
// number: nothing is lost and nothing counts twice, whoever dies.
func TestCounterRandomAgainstModel(t *testing.T) {
	t.Parallel()
	modeltest.Run(t, modeltest.Config{Seeds: 8}, func(w *modeltest.World) modeltest.Model {
		w.Keep = append(w.Keep, modelName)
		return &counterModel{queue: queue{w: w}}
	})
}

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
	w     *modeltest.World
	drawn int // requests
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

// counterModel is the model of a Counter: a number.
type counterModel struct {
	queue
	exists  bool
	value   int
	records []record
}

// record is that of a request, until it is forgotten.
type record struct {
	until time.Time
	sure  bool
}

type takeCall struct {
	request
	had int // when it began
}

// countCall is any other operation.
type countCall struct {
	by         int           // how much it adds
	want, got  int           // its result
	bad        bool          // its argument is
	remembered time.Duration // for so long, if it is
}

func (m *counterModel) Ops() []modeltest.Op {
	op := func(name string, weight int, do func(*rand.Rand, *semaphore.Counter) (*countCall, string, func(context.Context) (int, error))) modeltest.Op {
		return modeltest.Op{Name: name, Weight: weight, Do: modeltest.Idle(func(r *rand.Rand, a *modeltest.Actor) bool {
			m.begin(r, a, do)
			return true
		})}
	}
	return []modeltest.Op{
		{Name: "acquire", Weight: 22, Do: modeltest.Idle(func(r *rand.Rand, a *modeltest.Actor) bool {
			m.acquire(r, a)
			return true
		})},
		{Name: "acquire and cancel at once", Weight: 3, Do: modeltest.Idle(func(r *rand.Rand, a *modeltest.Actor) bool {
			if !m.mayRace() {
				return false
			}
			m.race(r, m.acquire(r, a))
			return true
		})},
		{Name: "cancel", Weight: 4, Do: m.cancelOne},
		op("release", 14, m.release),
		{Name: "release while a waiter is cancelled", Weight: 4, Do: modeltest.Idle(func(r *rand.Rand, a *modeltest.Actor) bool {
			m.begin(r, a, m.release)
			if all := m.waiting(nil); len(all) > 0 {
				m.race(r, all[r.IntN(len(all))])
			}
			return true
		})},
		op("add", 6, func(r *rand.Rand, c *semaphore.Counter) (*countCall, string, func(context.Context) (int, error)) {
			n := r.IntN(9) - 4
			d := &countCall{by: n}
			if n != 0 {
				d.remembered = m.memory()
			}
			return d, fmt.Sprintf("Add(%d)", n), func(ctx context.Context) (int, error) { return 0, c.Add(ctx, n) }
		}),
		op("drain", 2, func(_ *rand.Rand, c *semaphore.Counter) (*countCall, string, func(context.Context) (int, error)) {
			d := &countCall{by: -m.value, want: m.value}
			if m.value != 0 {
				d.remembered = m.memory()
			}
			return d, "Drain", c.Drain
		}),
		op("try set", 3, func(r *rand.Rand, c *semaphore.Counter) (*countCall, string, func(context.Context) (int, error)) {
			n := r.IntN(7) - 1
			d := &countCall{bad: n < 0}
			if !m.exists && n >= 0 {
				d.by, d.want, d.remembered = n, 1, m.memory()
			}
			return d, fmt.Sprintf("TrySet(%d)", n), func(ctx context.Context) (int, error) {
				if made, err := c.TrySet(ctx, n); made || err != nil {
					return 1, err
				}
				return 0, nil
			}
		}),
		op("available", 3, func(_ *rand.Rand, c *semaphore.Counter) (*countCall, string, func(context.Context) (int, error)) {
			return &countCall{want: m.value}, "Available", c.Available
		}),
		{Name: "delete", Weight: 1, Do: func(*rand.Rand, *modeltest.Actor) bool {
			m.w.Logf("the counter is deleted")
			m.w.Redis.Del(modelName)
			m.exists, m.value = false, 0
			return true
		}},
	}
}

func (m *counterModel) release(r *rand.Rand, c *semaphore.Counter) (*countCall, string, func(context.Context) (int, error)) {
	n := r.IntN(4)
	d := &countCall{by: n, bad: n < 1}
	if n > 0 {
		d.remembered = m.memory()
	}
	return d, fmt.Sprintf("Release(%d)", n), func(ctx context.Context) (int, error) { return 0, c.Release(ctx, n) }
}

// memory is for how long all but an Acquire is remembered.
func (m *counterModel) memory() time.Duration { return m.w.Config.ReleaseTimeout + semaphore.Memory }

// takeMemory is for how long an Acquire is remembered, and that it was undone.
const takeMemory = 3 * semaphore.Memory

// begin starts an operation that does not wait.
func (m *counterModel) begin(r *rand.Rand, a *modeltest.Actor, do func(*rand.Rand, *semaphore.Counter) (*countCall, string, func(context.Context) (int, error))) {
	d, text, fn := do(r, semaphore.NewCounter(a.Seat.Session, modelName))
	m.w.Begin(a, context.Background(), false, d, text, func(ctx context.Context) (err error) {
		d.got, err = fn(ctx)
		return err
	})
}

func (m *counterModel) acquire(r *rand.Rand, a *modeltest.Actor) *modeltest.Call {
	d := &takeCall{request: m.draw(r, a), had: m.value}
	c := semaphore.NewCounter(a.Seat.Session, modelName)
	do, what := func(ctx context.Context) error { return c.Acquire(ctx, d.n, d.options()...) }, "Acquire"
	if d.try && r.IntN(2) == 0 {
		do, what = func(ctx context.Context) error { return c.TryAcquire(ctx, d.n) }, "TryAcquire"
	}
	return m.w.Begin(a, context.Background(), !d.try, d, fmt.Sprintf("%s(%v)", what, d.request), do)
}

// Gone: nobody owns anything.
func (m *counterModel) Gone(*modeltest.Seat, bool) {}

func (m *counterModel) Release() bool { return m.cancelFirst() }
func (m *counterModel) Left()         {}

func (m *counterModel) Check(ended []*modeltest.Call) {
	for _, c := range ended {
		d, ok := c.Data.(*countCall)
		switch {
		case !ok:
			continue
		case d.bad && !errors.Is(c.Err, rlock.ErrArgument), !d.bad && (c.Err != nil || d.got != d.want):
			m.w.Failf("%s returned %d, %v, want %d", c.Text, d.got, c.Err, d.want)
		case !d.bad && d.remembered > 0:
			m.value += d.by
			m.exists = true
			m.remember(d.remembered, true)
		}
	}
	for _, c := range ended {
		if d, ok := c.Data.(*takeCall); ok {
			m.acquired(c, d)
		}
	}
	m.checkRedis()
	for _, c := range m.overdue() {
		m.w.Failf("%v: %s still waits", c.Actor, c.Text)
	}
	for _, c := range m.waiting(nil) {
		d := c.Data.(*takeCall)
		if m.calm() && m.waiting(c.Actor.Seat)[0] == c && d.n <= m.value {
			m.w.Failf("%v: %s waits, and there are %d", c.Actor, c.Text, m.value)
		}
	}
}

// acquired is an Acquire or TryAcquire that has ended.
func (m *counterModel) acquired(c *modeltest.Call, d *takeCall) {
	switch {
	case d.n < 1:
		if !errors.Is(c.Err, rlock.ErrArgument) {
			m.w.Failf("%s returned %v", c.Text, c.Err)
		}
	case c.Err == nil:
		if wrong := m.outOfTurn(c, &d.request); wrong != "" {
			m.w.Failf("%s took: %s", c.Text, wrong)
		}
		if d.try && d.n > d.had {
			m.w.Failf("%s took, and there were %d", c.Text, d.had)
		}
		if m.value -= d.n; m.value < 0 {
			m.w.Failf("%s took, and that left %d", c.Text, m.value)
		}
		m.remember(takeMemory, true)
	case d.excused(c):
		// An attempt that was not answered is undone, however long ago it was, and that is
		// remembered.
		if d.raced || !m.w.Calm(time.Since(c.Began)+m.w.Config.PollFloor) {
			m.remember(takeMemory, false)
		}
	case d.try && errors.Is(c.Err, rlock.ErrNotAcquired) && (d.behind || d.n > d.had):
	default:
		m.w.Failf("%s returned %v, and there were %d", c.Text, c.Err, d.had)
	}
}

func (m *counterModel) remember(d time.Duration, sure bool) {
	m.records = append(m.records, record{time.Now().Add(d), sure})
}

// checkRedis compares the model with what Redis has.
func (m *counterModel) checkRedis() {
	value, want := "", ""
	if m.exists {
		want = fmt.Sprint(m.value)
	}
	if value, _ = m.w.Redis.Get(modelName); value != want {
		m.w.Failf("Redis has %q, want %q", value, want)
	}
	must, may, found := 0, 0, 0
	kept := m.records[:0]
	for _, r := range m.records {
		switch left := time.Until(r.until); {
		case left < -time.Millisecond:
			continue
		case left > time.Millisecond && r.sure:
			must++
		default:
			may++
		}
		kept = append(kept, r)
	}
	m.records = kept
	for _, key := range m.w.Redis.Keys() {
		if strings.HasPrefix(key, "relock_request:{"+modelName+"}:") {
			found++
		}
	}
	if found < must || found > must+may {
		m.w.Failf("Redis remembers %d requests, want %d, and at most %d more", found, must, may)
	}
}
