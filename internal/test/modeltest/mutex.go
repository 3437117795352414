package modeltest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"

	"relock/locktrace"
	"relock/rlock"
)

// Locker is what kinds of mutex have in common.
type Locker interface {
	Lock(context.Context, ...rlock.LockOption) (context.Context, *rlock.Hold, error)
	TryLock(context.Context, ...rlock.LockOption) (context.Context, *rlock.Hold, error)
	ForceUnlock(context.Context) (bool, error)
}

// MutexKind is one kind of mutex.
type MutexKind struct {
	Key    string // of the lock: a hash, owner -> holds
	Fenced bool   // it draws tokens
	New    func(*rlock.Session) Locker

	// Books, if not nil, says what a session still keeps account of when all is given
	// back; "" for nothing.
	Books func(*rlock.Session) string

	// HandedOver, if not nil, is called when the lock was handed over in memory.
	HandedOver func()

	// Fair says that waiters are served in the order in which they came, across all
	// sessions, and that every hold has an id; Queue then returns who stands in the
	// queue, as Redis has it, the first one first. See queue.
	Fair  bool
	Queue func(*miniredis.Miniredis) []Place
	// Helpers are keys of a fair lock that may vanish while it is in use, without harm
	// but that those who wait lose their places; Ids is the key of the ids of holds.
	Helpers []string
	Ids     string
}

// Mutex is the model of a reentrant, exclusive lock, used by named and nameless owners
// with and without fixed leases.
type Mutex struct {
	w    *World
	kind MutexKind

	// What Redis has. A life of the lock begins when an owner enters and ends when the
	// key goes.
	owner   string        // "" when free
	since   time.Time     // when that owner entered, or when it became free
	told    bool          // it became free by a release that was published
	expires time.Time     // as Redis said last
	latest  time.Time     // the latest end that anybody asked for in this life
	slack   time.Duration // miniredis has nanoseconds, scripts have not: see checkRedis
	shared  bool          // more than one claim had holds in this life
	by      []*claim      // those with holds in this life

	claims []*claim
	spent  []*hold             // unlocked
	token  int64               // the highest that was drawn
	learnt map[*Seat]time.Time // when a process last learnt that it had lost the lock
	queue  queue               // of a fair lock

	mu     sync.Mutex
	handed map[string]bool // owners whose claims were handed over in memory since the last look
}

// claim is what an owner holds in one process, from its outermost Lock on.
type claim struct {
	seat  *Seat
	life  int
	owner string
	ctx   context.Context // given to the outermost Lock
	holds []*hold
	over  error     // how it ended; nil while it lasts
	until time.Time // the latest end of the lock that was asked for, when it was released

	// local: a private owner that began as a renewed reader. Redis counts one for it, however
	// many holds are nested, for as long as one of them lives; a nested hold with a fixed
	// lease ends by itself in memory, and the owner is renewed meanwhile.
	local bool

	dead   bool      // its process was killed
	doomed bool      // its life of the lock is over; it learns of it
	notice time.Time // until then, if it still asks,
	trust  time.Time // and until then if its context has ended
	inVain bool      // it was doomed, and has handed its claim over in memory
	// revived: it is doomed, but the same owner has entered anew elsewhere; what it asks
	// Redis for is there, so it need not learn of it.
	revived bool
}

type hold struct {
	*rlock.Hold
	t       *claim
	ctx     context.Context // given to its Lock
	cancel  context.CancelFunc
	section *Section
	own     bool // the section is its own, not the claim's
	fixed   bool
	byName  bool // its context names the owner; it was not nested through a section

	end     time.Time // fixed: of its trust
	until   time.Time // fixed: of its lease
	counted bool      // by Redis
	spent   bool      // unlocked
}

// Owner is that of its claim.
func (h *hold) Owner() string { return h.t.owner }

// derived reports whether a section is not that of a claim itself. Which of two Locks of one
// owner was the outermost cannot be told from the order in which they were seen to return.
func (s *Section) derived() bool { return strings.HasSuffix(fmt.Sprint(s.Context), ".WithCancel") }

func (h *hold) ranOut() bool { return h.fixed && !time.Now().Before(h.end) }

// uncertain: the session may or may not know yet that the claim is over.
func (t *claim) uncertain() bool { return t.doomed || !t.wanted() }

// wanted reports whether a context lives that wants the lock to be renewed: that of the
// outermost Lock, or that of another Lock which named the owner. A fixed lease in a local
// claim wants it whatever its contexts.
func (t *claim) wanted() bool {
	return t.ctx.Err() == nil || slices.ContainsFunc(t.holds, func(h *hold) bool {
		return !h.spent && (h.byName && !h.fixed && h.ctx.Err() == nil || t.local && h.fixed && !h.ranOut())
	})
}

func (t *claim) live() bool {
	return slices.ContainsFunc(t.holds, func(h *hold) bool { return !h.spent && !h.ranOut() })
}

// renews reports whether the watchdog keeps the lock alive for this claim.
func (t *claim) renews() bool {
	return t.over == nil && !t.dead && !t.uncertain() &&
		slices.ContainsFunc(t.holds, func(h *hold) bool { return !h.spent && (!h.fixed || t.local && !h.ranOut()) })
}

// hasMore reports whether the claim has another live hold.
func (t *claim) hasMore(h *hold) bool {
	return slices.ContainsFunc(t.holds, func(o *hold) bool { return o != h && !o.spent && !o.ranOut() })
}

// held returns what the callers in the process on seat have not unlocked yet.
func (m *Mutex) held(seat *Seat) (all []*hold) {
	for _, t := range m.claims {
		for _, h := range t.holds {
			if t.seat == seat && t.life == seat.Life && !t.dead && !h.spent {
				all = append(all, h)
			}
		}
	}
	return all
}

// claimOf returns the claim of owner in the process on seat that is not over.
func (m *Mutex) claimOf(seat *Seat, owner string) *claim {
	for _, t := range m.claims {
		if t.seat == seat && t.life == seat.Life && t.owner == owner && t.over == nil && !t.dead {
			return t
		}
	}
	return nil
}

// NewMutex returns the model of one mutex of that kind.
func NewMutex(w *World, kind MutexKind) *Mutex {
	if kind.Fenced {
		w.Keep = append(w.Keep, "redisson_lock_token:{"+kind.Key+"}")
	}
	m := &Mutex{w: w, kind: kind, queue: newQueue(), handed: map[string]bool{}, learnt: map[*Seat]time.Time{}}
	w.Config.Trace = &rlock.Trace{HandedOver: func(e locktrace.HandedOver) {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.handed[e.Owner] = true
		if m.kind.HandedOver != nil {
			m.kind.HandedOver()
		}
	}}
	return m
}

// trusted is how much of a lease a session trusts.
func trusted(lease time.Duration) time.Duration { return lease - min(lease/20, time.Second) }

// The operations.

type lockCall struct {
	owner string // "": a new one
	try   bool
	wait  time.Duration // 0: as long as it takes
	lease time.Duration // 0: the watchdog renews
	ended bool          // the context was done already
	named bool          // the context names the owner, and is not that of a section
	raced bool          // it was cancelled in the moment in which it may have got in
	left  time.Time     // when it was cancelled
	h     *rlock.Hold
	in    *Section

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
	return append(m.queueOps(), []Op{
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
	}...)
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
	d, mutex, ctx := m.newLockCall(a), m.kind.New(a.Seat.Session), context.Background()
	var opts []rlock.LockOption
	what := "Lock"
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
		opts = append(opts, rlock.Lease(d.lease))
	}
	lock := mutex.Lock
	switch n := r.IntN(5); {
	case try || n == 0:
		d.try, lock, what = true, mutex.TryLock, "Try"+what
	case n == 1:
		d.wait = time.Millisecond << r.IntN(17)
		opts = append(opts, rlock.Wait(d.wait))
	}
	text := fmt.Sprintf("%s(owner %q, wait %v, lease %v)", what, d.owner, d.wait, d.lease)
	m.w.Begin(a, ctx, !d.try, d, text, func(ctx context.Context) error {
		section, h, err := lock(ctx, opts...)
		if err == nil {
			d.h, d.in = h, m.w.Watch(section)
		}
		return err
	})
	return true
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

// Release gives one thing back.
func (m *Mutex) Release() bool {
	if calls := m.w.Waiting(); len(calls) > 0 {
		m.cancel(calls[0])
		return true
	}
	for _, seat := range m.w.Seats {
		if all := m.held(seat); seat.Session != nil && len(all) > 0 {
			m.unlock(seat.Actors[0], all[0], false)
			return true
		}
	}
	return false
}

// Left looks at the books, and at what is sent on behalf of nobody.
func (m *Mutex) Left() {
	var scripts atomic.Int64
	m.w.Redis.Server().SetPreHook(func(_ *server.Peer, cmd string, _ ...string) bool {
		if strings.HasPrefix(cmd, "EVAL") {
			scripts.Add(1)
		}
		return false
	})
	time.Sleep(m.w.Config.Lease)
	m.w.Redis.Server().SetPreHook(nil)
	if n := scripts.Load(); n > 0 {
		m.w.Failf("%d scripts were run when nobody held anything or waited", n)
	}
	for _, s := range m.w.Seats {
		if s.Session == nil || m.kind.Books == nil {
			continue
		}
		if left := m.kind.Books(s.Session); left != "" {
			m.w.Failf("the session on seat %d still has %s", s.N, left)
		}
	}
}
