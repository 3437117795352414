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

// RWLocker is what kinds of read-write lock have in common.
type RWLocker interface {
	RLock(context.Context, ...rlock.LockOption) (context.Context, *rlock.Hold, error)
	TryRLock(context.Context, ...rlock.LockOption) (context.Context, *rlock.Hold, error)
	Lock(context.Context, ...rlock.LockOption) (context.Context, *rlock.Hold, error)
	TryLock(context.Context, ...rlock.LockOption) (context.Context, *rlock.Hold, error)
	ForceUnlock(context.Context) (bool, error)
}

// RWKind is one kind of read-write lock. Its keys are looked at from outside, so they are
// named here.
type RWKind struct {
	Key     string // of the lock: a hash: mode, owner -> read holds, owner:write -> write holds
	Readers string // a zset: owner -> when its lease ends, in ms
	Line    string // of the writers that wait: a zset; m -> 8.4e15 and when their mark ends, in ms; t -> 8.5e15 and until when it counts for nothing
	Timeout string // what the names of the readers' timeout keys begin with

	Upgrade error // for who has the read side and asks for the write side
	New     func(*rlock.Session) RWLocker
	State   func(context.Context, *rlock.Session) (mode string, owners map[string]int, err error)
}

// RW is the model of a reentrant read-write lock, used on both sides by named and
// nameless owners with and without fixed leases.
type RW struct {
	// Mutex is here for the callers' side only: claims, their holds, and what is done
	// with those. What Redis has is another matter, since owners share the lock.
	Mutex
	kind   RWKind
	writes map[*hold]bool // those of the write side

	lives map[string]*life // by owner
	seen  rwSeen           // Redis, when the world was last quiet
	joins int              // calls that have begun to wait in a session's line

	free, open gone      // no owner is in; nobody and nothing keeps a reader out
	reading    time.Time // since when readers hold the lock and no mark was taken away
	// dead and brief are when the last mark of a killed writer ends at the latest: brief
	// from when the readers that it waited for have left.
	dead, brief time.Time
	stirred     bool     // marks may have been taken away since the last look
	cleared     bool     // they were all
	deleted     bool     // the key was, since the last look
	undone      []string // owners that may have been in for no time, since the last look
}

// life is an owner's stay in the lock: from when it comes in until Redis has nothing of
// it any more.
type life struct {
	owner   string
	since   time.Time
	expires time.Time     // as Redis said last
	latest  time.Time     // the latest end that anybody asked for
	slack   time.Duration // see Mutex.slack
	shared  bool          // more than one claim had holds in it
	loose   bool          // its end may be later than what is left of it deserves
	over    bool          // its lease is; its field stays until somebody clears it away
	by      []*claim

	// unknown are holds whose lease is over, and that Redis may still count. A renewal for
	// another claim that is mistaken (see misled) brings them back to life.
	unknown int
}

// rwSeen is what Redis has.
type rwSeen struct {
	mode          string
	ends          time.Time      // of the hash
	reads, writes map[string]int // owner -> holds
	expiries      map[string]time.Time
	marks         map[string]time.Time // those that are not over
	line          []string             // the entries of writers
	gate          time.Time            // until when readers come in whoever waits
	marked        map[string]time.Time // when they were first seen like this
}

// gone is a state that began when something went.
type gone struct {
	now  bool
	at   time.Time
	told bool // it was published
}

// NewRW returns the model of one read-write lock of that kind.
func NewRW(w *World, kind RWKind) *RW {
	return &RW{
		Mutex: Mutex{w: w, learnt: map[*Seat]time.Time{}}, kind: kind, writes: make(map[*hold]bool), lives: make(map[string]*life),
		free: gone{now: true}, open: gone{now: true},
	}
}

// rwCall is a Lock, RLock, or one of their twins.
type rwCall struct {
	lockCall
	write bool
	joint int       // where it stands in its session's line; 0: nowhere yet
	maybe bool      // or another call of its owner does
	front time.Time // when it was first seen to be in front
}

type stateCall struct {
	mode   string
	owners map[string]int
}

// Ops are those of a mutex, on either side.
func (m *RW) Ops() []Op {
	own := []Op{
		{Name: "lock", Weight: 16, Do: Idle(func(r *rand.Rand, a *Actor) bool { return m.lock(r, a, nil) })},
		{Name: "nest", Weight: 8, Do: Idle(func(r *rand.Rand, a *Actor) bool {
			h := m.pick(r, a)
			return h != nil && m.lock(r, a, h)
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
			if m.lock(r, a, m.pick(r, a)) {
				m.race(r, a.call)
			}
			return true
		})},
		{Name: "extend a lease", Weight: 3, Do: Idle(func(r *rand.Rand, a *Actor) bool {
			h := m.pick(r, a)
			return h != nil && h.fixed && m.extend(r, a)
		})},
		{Name: "force unlock", Weight: 1, Do: Idle(func(_ *rand.Rand, a *Actor) bool {
			d, lock := new(forceCall), m.kind.New(a.Seat.Session)
			m.w.Begin(a, context.Background(), false, d, "ForceUnlock", func(ctx context.Context) (err error) {
				d.found, err = lock.ForceUnlock(ctx)
				return err
			})
			return true
		})},
		{Name: "state", Weight: 2, Do: Idle(func(_ *rand.Rand, a *Actor) bool {
			d, session := new(stateCall), a.Seat.Session
			m.w.Begin(a, context.Background(), false, d, "State", func(ctx context.Context) (err error) {
				d.mode, d.owners, err = m.kind.State(ctx, session)
				return err
			})
			return true
		})},
		{Name: "delete", Weight: 1, Do: func(*rand.Rand, *Actor) bool { return m.delete() }},
	}
	for _, op := range m.Mutex.Ops() { // those that have to do with holds
		if op.Name != turnsName && !slices.ContainsFunc(own, func(o Op) bool { return o.Name == op.Name }) {
			own = append(own, op)
		}
	}
	return own
}

// delete takes the key away under those who are in.
func (m *RW) delete() bool {
	if len(m.lives) == 0 {
		return false
	}
	m.w.Logf("the key is deleted")
	m.w.Redis.Del(m.kind.Key)
	for _, l := range m.lives {
		m.endLife(l, time.Now())
	}
	m.deleted = true
	return true
}

// lock is a Lock of either side, on a context of its own or inside another hold's section.
func (m *RW) lock(r *rand.Rand, a *Actor, inside *hold) bool {
	d, lock, ctx := new(rwCall), m.kind.New(a.Seat.Session), context.Background()
	var opts []rlock.LockOption
	if inside != nil {
		ctx, d.owner = inside.section.Context, inside.Owner()
		d.ended = ctx.Err() != nil
	} else if n := r.IntN(5); n < 2 {
		d.owner = []string{"ann", "bob"}[n]
		ctx, d.named = rlock.WithOwner(ctx, d.owner), true
	}
	if r.IntN(3) == 0 {
		d.lease = time.Millisecond << r.IntN(17) // to a minute
		opts = append(opts, rlock.Lease(d.lease))
	}
	d.write = r.IntN(5) < 2
	switch r.IntN(5) {
	case 0:
		d.try = true
	case 1:
		d.wait = time.Millisecond << r.IntN(17)
		opts = append(opts, rlock.Wait(d.wait))
	}
	do, what := lock.RLock, "RLock"
	switch {
	case d.write && d.try:
		do, what = lock.TryLock, "TryLock"
	case d.write:
		do, what = lock.Lock, "Lock"
	case d.try:
		do, what = lock.TryRLock, "TryRLock"
	}
	if inside != nil {
		what = "nested " + what
	}
	text := fmt.Sprintf("%s(owner %q, wait %v, lease %v)", what, d.owner, d.wait, d.lease)
	m.w.Begin(a, ctx, !d.try, d, text, func(ctx context.Context) error {
		section, h, err := do(ctx, opts...)
		if err == nil {
			d.h, d.in = h, m.w.Watch(section)
		}
		return err
	})
	return true
}

// race cancels a call while it may be getting in. Not on a connection that was cut and is
// not back: taking it back takes a moment then, and a Close would have to wait for it.
func (m *RW) race(r *rand.Rand, c *Call) {
	if c.Actor.Seat.link.connections() < 2 { // commands and messages
		return
	}
	for range r.IntN(60) {
		runtime.Gosched()
	}
	if d, ok := c.Data.(*rwCall); ok {
		d.raced = true
		c.Waits = c.Waits || d.write // see leaving
	}
	m.Mutex.cancel(c)
}

// waiting returns the calls of live processes that wait for the lock, with what they asked
// for, and how many of them are writers.
func (m *RW) waiting() (calls []*Call, writers int) {
	for _, c := range m.w.Waiting() {
		if d, ok := c.Data.(*rwCall); ok {
			calls = append(calls, c)
			if d.write {
				writers++
			}
		}
	}
	return calls, writers
}

// marksEnd returns when the last mark of a killed writer ends at the latest.
func (m *RW) marksEnd() time.Time {
	if !m.brief.IsZero() && m.brief.Before(m.dead) {
		return m.brief
	}
	return m.dead
}

// Gone also notes the marks of the writers that waited: a closed process takes its own
// away, those of a killed one end by themselves.
func (m *RW) Gone(seat *Seat, killed bool) {
	m.Mutex.Gone(seat, killed)
	m.stirred = m.stirred || !killed
	for _, c := range m.w.all {
		if d, ok := c.Data.(*rwCall); ok && d.write && killed && c.Actor.Seat == seat && c.Life == seat.Life {
			m.dead = time.Now().Add(2*m.w.Config.PollFloor + time.Second + time.Millisecond)
			m.brief = time.Time{}
		}
	}
}

func (l *link) connections() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.conns)
}

// Release gives one thing back. Who is leaving already is left to it.
func (m *RW) Release() bool {
	calls, _ := m.waiting()
	for _, c := range calls {
		if c.Ctx.Err() == nil {
			m.Mutex.cancel(c)
			return true
		}
	}
	for _, seat := range m.w.Seats {
		all := m.held(seat)
		for _, a := range seat.Actors {
			if seat.Session != nil && len(all) > 0 && a.call == nil {
				m.unlock(a, all[0], false)
				return true
			}
		}
	}
	return false
}
