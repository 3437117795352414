package semaphore_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
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

// counterModel is the model of a Counter: a number.
type counterModel struct {
	queue
	exists bool
	value  int
	gone   []time.Time // when sessions ended
}

type takeCall struct {
	request
	had int // when it began
}

// countCall is any other operation.
type countCall struct {
	by        int  // how much it adds
	want, got int  // its result
	bad       bool // its argument is
	makes     bool // a counter that does not exist is made
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
		op("add", 6, m.add),
		op("drain", 2, m.drain),
		op("try set", 3, m.trySet),
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

func (m *counterModel) add(r *rand.Rand, c *semaphore.Counter) (*countCall, string, func(context.Context) (int, error)) {
	n := r.IntN(9) - 4
	d := &countCall{by: n, makes: n != 0}
	return d, fmt.Sprintf("Add(%d)", n), func(ctx context.Context) (int, error) { return 0, c.Add(ctx, n) }
}

func (m *counterModel) drain(_ *rand.Rand, c *semaphore.Counter) (*countCall, string, func(context.Context) (int, error)) {
	return &countCall{by: -m.value, want: m.value}, "Drain", c.Drain
}

func (m *counterModel) trySet(r *rand.Rand, c *semaphore.Counter) (*countCall, string, func(context.Context) (int, error)) {
	n := r.IntN(7) - 1
	d := &countCall{bad: n < 0}
	if !m.exists && n >= 0 {
		d.by, d.want, d.makes = n, 1, true
	}
	return d, fmt.Sprintf("TrySet(%d)", n), func(ctx context.Context) (int, error) {
		if made, err := c.TrySet(ctx, n); made || err != nil {
			return 1, err
		}
		return 0, nil
	}
}

func (m *counterModel) release(r *rand.Rand, c *semaphore.Counter) (*countCall, string, func(context.Context) (int, error)) {
	n := r.IntN(4)
	d := &countCall{by: n, bad: n < 1, makes: true}
	return d, fmt.Sprintf("Release(%d)", n), func(ctx context.Context) (int, error) { return 0, c.Release(ctx, n) }
}

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

// Gone: no session owns anything, but what it has asked for stays remembered for a while.
func (m *counterModel) Gone(_ *modeltest.Seat, killed bool) {
	m.gone, m.killed = append(m.gone, time.Now()), m.killed || killed
}

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
		case !d.bad:
			m.value += d.by
			if d.by > 0 {
				m.gave = time.Now()
			}
			m.exists = m.exists || d.makes
		}
	}
	for _, c := range ended {
		if d, ok := c.Data.(*takeCall); ok {
			m.acquired(c, d)
		}
	}
	m.checkRedis()
	m.readLine()
	for _, c := range m.overdue() {
		m.w.Failf("%v: %s still waits", c.Actor, c.Text)
	}
	for _, c := range m.waiting(nil) {
		d := c.Data.(*takeCall)
		if m.calm() && m.waiting(c.Actor.Seat)[0] == c && d.n > 0 {
			if wrong := m.mustGetIn(c, m.value); wrong != "" {
				m.w.Failf("%v: %s waits, and %s", c.Actor, c.Text, wrong)
			}
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
	case d.excused(c):
	case d.try && errors.Is(c.Err, rlock.ErrNotAcquired) && (d.behind || d.n > d.had):
	default:
		m.w.Failf("%s returned %v, and there were %d", c.Text, c.Err, d.had)
	}
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
	m.checkMemory()
}

// checkMemory: for each session that was there of late Redis has one key at most, with no more
// requests than can have been under way at once.
func (m *counterModel) checkMemory() {
	sessions, actors := len(m.w.Seats), len(m.w.Seats[0].Actors)
	for _, at := range m.gone {
		if time.Since(at) <= 3*semaphore.Memory {
			sessions++
		}
	}
	for _, key := range m.w.Redis.Keys() {
		if !strings.HasPrefix(key, "relock_requests:{"+modelName+"}:") {
			continue
		}
		sessions--
		if ttl := m.w.Redis.TTL(key); ttl <= 0 || ttl > 3*semaphore.Memory {
			m.w.Failf("what Redis remembers lives for %v", ttl)
		}
		if slots, _ := m.w.Redis.HKeys(key); len(slots) > 2*actors {
			m.w.Failf("Redis remembers %d requests of a session", len(slots))
		}
	}
	if sessions < 0 {
		m.w.Failf("Redis remembers requests of %d sessions too many", -sessions)
	}
}
