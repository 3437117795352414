package modeltest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"time"

	"relock/rlock"
)

type lockCall struct {
	owner  string // "": a new one
	try    bool
	wait   time.Duration // 0: as long as it takes
	lease  time.Duration // 0: the watchdog renews
	ended  bool          // the context was done already
	named  bool          // the context names the owner, and is not that of a section
	raced  bool          // it was cancelled in the moment in which it may have got in
	left   time.Time     // when it was cancelled
	undone bool          // it failed, and may have been granted before and taken back
	h      *rlock.Hold
	in     *Section

	// Of a fair lock: its place is behind those that were certain at look `from`, and
	// certain since look `since`; 0: not yet. See queue.
	from, since int
	session     string
	scattered   bool // its run was lost, and its session may not know that yet: see scatter
}

type unlockCall struct {
	h     *hold
	again bool
}

type extendCall struct {
	h *hold
	d time.Duration
}

type forceCall struct{ found bool }

func (m *Mutex) Ops() []Op {
	return slices.Concat(m.queueOps(), []Op{
		{Name: "lock", Weight: 14, Do: Idle(func(r *rand.Rand, a *Actor) bool { return m.lock(r, a, nil, false) })},
		{Name: turnsName, Weight: 6, Do: Idle(func(r *rand.Rand, a *Actor) bool { return m.turns(r, a.Seat) })},
		{Name: "nest", Weight: 8, Do: Idle(func(r *rand.Rand, a *Actor) bool {
			h := m.pick(r, a)
			return h != nil && m.lock(r, a, h, false)
		})},
		{Name: "unlock", Weight: 18, Do: Idle(func(r *rand.Rand, a *Actor) bool {
			h := m.pick(r, a)
			if h != nil {
				m.unlock(a, h, false)
			}
			return h != nil
		})},
		{Name: "unlock while a waiter is cancelled", Weight: 2, Do: Idle(func(r *rand.Rand, a *Actor) bool {
			h, calls := m.pick(r, a), m.w.Waiting()
			if h == nil || len(calls) == 0 {
				return false
			}
			m.unlock(a, h, false)
			m.race(r, calls[r.IntN(len(calls))])
			return true
		})},
		{Name: "lock and cancel at once", Weight: 2, Do: Idle(func(r *rand.Rand, a *Actor) bool {
			if m.lock(r, a, m.pick(r, a), false) {
				m.race(r, a.call)
			}
			return true
		})},
		{Name: "unlock again", Weight: 1, Do: Idle(func(r *rand.Rand, a *Actor) bool {
			if len(m.spent) == 0 {
				return false
			}
			m.unlock(a, m.spent[r.IntN(len(m.spent))], true)
			return true
		})},
		{Name: "extend", Weight: 2, Do: Idle(m.extend)},
	}, m.endings())
}

// endings are the operations that end what others have begun.
func (m *Mutex) endings() []Op {
	return []Op{
		{Name: "cancel", Weight: 3, Do: func(r *rand.Rand, _ *Actor) bool {
			calls := m.w.Waiting()
			if len(calls) == 0 {
				return false
			}
			m.cancel(calls[r.IntN(len(calls))])
			return true
		}},
		{Name: "end the context", Weight: 1, Do: func(r *rand.Rand, a *Actor) bool {
			h := m.pick(r, a)
			if h == nil {
				return false
			}
			m.w.Logf("the context of %s's Lock ends", h.Owner())
			h.cancel()
			return true
		}},
		{Name: "force unlock", Weight: 1, Do: Idle(func(_ *rand.Rand, a *Actor) bool {
			d, mutex := new(forceCall), m.kind.New(a.Seat.Session)
			m.w.Begin(a, context.Background(), false, d, "ForceUnlock", func(ctx context.Context) (err error) {
				d.found, err = mutex.ForceUnlock(ctx)
				return err
			})
			return true
		})},
		{Name: "delete", Weight: 1, Do: func(*rand.Rand, *Actor) bool {
			if m.owner == "" {
				return false
			}
			m.w.Logf("the key is deleted")
			m.w.Redis.Del(m.kind.Key)
			m.endLife(time.Now(), false)
			return true
		}},
	}
}

// pick returns one of the holds of a's process.
func (m *Mutex) pick(r *rand.Rand, a *Actor) *hold {
	all := m.held(a.Seat)
	if len(all) == 0 {
		return nil
	}
	return all[r.IntN(len(all))]
}

// lock is a Lock or TryLock on a context of its own, or inside another hold's section; try
// says that it is a TryLock.
func (m *Mutex) lock(r *rand.Rand, a *Actor, inside *hold, try bool) bool {
	d, ctx, what := m.newLockCall(a), context.Background(), "Lock"
	if inside != nil {
		ctx, d.owner = inside.section.Context, inside.Owner()
		d.ended = ctx.Err() != nil
		what = "nested " + what
	} else if n := r.IntN(5); n < 2 {
		d.owner = []string{"ann", "bob"}[n]
		ctx, d.named = rlock.WithOwner(ctx, d.owner), true
	}
	if r.IntN(3) == 0 {
		d.lease = time.Millisecond << r.IntN(17) // to a minute
	}
	switch n := r.IntN(5); {
	case try || n == 0:
		d.try, what = true, "Try"+what
	case n == 1:
		d.wait = time.Millisecond << r.IntN(17)
	}
	m.begin(a, ctx, d, what)
	return true
}

// begin has an actor call Lock or TryLock, with the options that d has.
func (m *Mutex) begin(a *Actor, ctx context.Context, d *lockCall, what string) *Call {
	mutex := m.kind.New(a.Seat.Session)
	lock := mutex.Lock
	if d.try {
		lock = mutex.TryLock
	}
	var opts []rlock.LockOption
	if d.lease > 0 {
		opts = append(opts, rlock.Lease(d.lease))
	}
	if d.wait > 0 {
		opts = append(opts, rlock.Wait(d.wait))
	}
	text := fmt.Sprintf("%s(owner %q, wait %v, lease %v)", what, d.owner, d.wait, d.lease)
	return m.w.Begin(a, ctx, !d.try, d, text, func(ctx context.Context) error {
		section, h, err := lock(ctx, opts...)
		if err == nil {
			d.h, d.in = h, m.w.Watch(section)
		}
		return err
	})
}

func (m *Mutex) unlock(a *Actor, h *hold, again bool) {
	m.w.Begin(a, context.Background(), false, unlockCall{h, again}, "Unlock of "+h.Owner(), func(context.Context) error {
		return h.Unlock()
	})
}

func (m *Mutex) extend(r *rand.Rand, a *Actor) bool {
	h := m.pick(r, a)
	if h == nil {
		return false
	}
	d := time.Millisecond << r.IntN(17)
	m.w.Begin(a, context.Background(), false, extendCall{h, d}, fmt.Sprintf("Extend of %s by %v", h.Owner(), d), func(ctx context.Context) error {
		return h.Extend(ctx, d)
	})
	return true
}

func (m *Mutex) cancel(c *Call) {
	m.w.Logf("%v: %s is cancelled", c.Actor, c.Text)
	if d, ok := c.Data.(*lockCall); ok {
		d.left = time.Now()
	}
	c.Cancel()
}

// race cancels a call while it may be getting in.
func (m *Mutex) race(r *rand.Rand, c *Call) {
	for range r.IntN(60) {
		runtime.Gosched()
	}
	if d, ok := c.Data.(*lockCall); ok {
		d.raced = true
		c.Waits = c.Waits || m.kind.Fair // see leaving
	}
	m.cancel(c)
}
