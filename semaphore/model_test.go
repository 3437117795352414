package semaphore_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"relock/internal/test/modeltest"
	"relock/rlock"
	"relock/semaphore"
)

// Random operations on one semaphore, by three processes that come and go, against a
// model: who has which permits and until when, what each call may return, that free and
// taken permits add up to the limit whenever the world is quiet, and who may wait.
func TestRandomAgainstModel(t *testing.T) {
	t.Parallel()
	modeltest.Run(t, modeltest.Config{Seeds: 8}, func(w *modeltest.World) modeltest.Model {
		w.Keep = append(w.Keep, modelName, zset(modelName)) // Left looks at them
		return &permitModel{queue: queue{w: w}, handles: map[handleKey]*semaphore.Semaphore{}, owners: map[string]bool{},
			passes: map[*rlock.Session]int{}}
	})
}

const modelName = "model"

// permitModel is the model of a Semaphore.
type permitModel struct {
	queue
	exists  bool      // the number of free permits does
	total   int       // free and taken ones, while it exists
	highest int       // limit that there ever was
	untold  time.Time // when something was deleted, of which nobody is told
	gone    bool      // at the last look it did not exist
	rest    time.Time // until then nobody new comes, who would make it again
	sets    []*permitSet
	spent   []*permitSet           // released
	owners  map[string]bool        // that there ever were
	passes  map[*rlock.Session]int // hand-overs since the last grant by Redis
	handles map[handleKey]*semaphore.Semaphore
}

type handleKey struct {
	s     *rlock.Session
	limit int
}

// permitSet is what one Acquire got.
type permitSet struct {
	p       *semaphore.Permits
	seat    *modeltest.Seat
	life    int
	n       int
	ctx     context.Context // given to Acquire
	cancel  context.CancelFunc
	section *modeltest.Section
	fixed   bool
	lease   time.Duration // since the last Acquire or Extend
	end     time.Time     // fixed: of its trust

	there   bool      // Redis has them
	granted time.Time // by Redis; they may have been handed over since
	asked   time.Time // when they are to expire, not compared yet with Redis
	expires time.Time // as Redis said last
	missing time.Time // since when they are deleted
	mayGo   bool      // a release in the background may or may not find them

	mayBeGranted bool // by another's release: it waited, and has no lease of its own
	byLine       bool // it was, and was not confirmed since

	over  error // how the section ended; nil while it lasts
	spent bool  // released by the caller
	dead  bool  // the process was killed
}

func (s *permitSet) String() string { return fmt.Sprintf("%d permits of %s", s.n, s.p.Owner()) }

// alive: Redis counts them as taken; it counts milliseconds.
func (s *permitSet) alive() bool { return s.there && s.expires.UnixMilli() > time.Now().UnixMilli() }

// trusted is how much of a lease a session trusts.
func trusted(lease time.Duration) time.Duration { return lease - min(lease/20, time.Second) }

// trust returns when the session stops to trust them, at the earliest and at the latest.
func (s *permitSet) trust() (from, to time.Time) {
	if s.fixed {
		return s.end, s.end
	}
	sent := s.expires.Add(-s.lease) // scripts count whole milliseconds, and one more
	return sent.Add(trusted(s.lease) - time.Millisecond), sent.Add(trusted(s.lease))
}

// limit is that of a semaphore for a handle that may make it.
func (m *permitModel) limit(own int) int {
	if m.exists {
		return m.total
	}
	return own
}

// free returns how many permits are free for that handle; it may be below 0.
func (m *permitModel) free(own int) int {
	n := m.limit(own)
	for _, s := range m.sets {
		if s.alive() {
			n -= s.n
		}
	}
	return n
}

// held returns what the callers in the process on seat have not released yet.
func (m *permitModel) held(seat *modeltest.Seat) (all []*permitSet) {
	for _, s := range m.sets {
		if s.seat == seat && s.life == seat.Life && !s.dead && !s.spent {
			all = append(all, s)
		}
	}
	return all
}

func (m *permitModel) pick(r *rand.Rand, a *modeltest.Actor) *permitSet {
	all := m.held(a.Seat)
	if len(all) == 0 {
		return nil
	}
	return all[r.IntN(len(all))]
}

func (m *permitModel) handle(seat *modeltest.Seat, limit int) *semaphore.Semaphore {
	key := handleKey{seat.Session, limit}
	if m.handles[key] == nil {
		m.handles[key] = semaphore.New(seat.Session, modelName, limit)
		m.highest = max(m.highest, limit)
	}
	return m.handles[key]
}

// The operations.

type acquireCall struct {
	request
	own         int           // the limit of the handle
	limit, free int           // when it began
	lease       time.Duration // 0: the watchdog renews
	p           *semaphore.Permits
	in          *modeltest.Section
}

// setCall is a Release or an Extend.
type setCall struct {
	s     *permitSet
	d     time.Duration // Extend
	again bool          // Release, and not the first
	empty bool          // the semaphore did not exist
	want  error         // by what was so when it began
	or    error         // this may be instead
}

type limitCall struct {
	limit int
	reaps bool // permits had expired
}

type availableCall struct{ want, got int }

func (m *permitModel) Ops() []modeltest.Op {
	withPermits := func(do func(r *rand.Rand, a *modeltest.Actor, s *permitSet)) func(*rand.Rand, *modeltest.Actor) bool {
		return func(r *rand.Rand, a *modeltest.Actor) bool {
			s := m.pick(r, a)
			if s != nil {
				do(r, a, s)
			}
			return s != nil
		}
	}
	return []modeltest.Op{
		{Name: "acquire", Weight: 22, Do: modeltest.Idle(func(r *rand.Rand, a *modeltest.Actor) bool {
			if time.Now().Before(m.rest) {
				return false
			}
			m.acquire(r, a)
			return true
		})},
		{Name: "acquire and cancel at once", Weight: 2, Do: modeltest.Idle(func(r *rand.Rand, a *modeltest.Actor) bool {
			if !m.mayRace() || time.Now().Before(m.rest) {
				return false
			}
			m.race(r, m.acquire(r, a))
			return true
		})},
		{Name: "release", Weight: 16, Do: modeltest.Idle(withPermits(func(_ *rand.Rand, a *modeltest.Actor, s *permitSet) {
			m.release(a, s)
		}))},
		{Name: "release while a waiter is cancelled", Weight: 2, Do: modeltest.Idle(withPermits(func(r *rand.Rand, a *modeltest.Actor, s *permitSet) {
			m.release(a, s)
			if all := m.waiting(nil); len(all) > 0 {
				m.race(r, all[r.IntN(len(all))])
			}
		}))},
		{Name: "release again", Weight: 1, Do: modeltest.Idle(func(r *rand.Rand, a *modeltest.Actor) bool {
			if len(m.spent) > 0 {
				m.release(a, m.spent[r.IntN(len(m.spent))])
			}
			return len(m.spent) > 0
		})},
		{Name: "extend", Weight: 3, Do: modeltest.Idle(withPermits(m.extend))},
		{Name: "cancel", Weight: 4, Do: m.cancelOne},
		{Name: "end the context", Weight: 1, Do: withPermits(func(_ *rand.Rand, _ *modeltest.Actor, s *permitSet) {
			m.w.Logf("the context of the %v ends", s)
			s.cancel()
		})},
		{Name: "set limit", Weight: 5, Do: modeltest.Idle(m.setLimit)},
		{Name: "available", Weight: 6, Do: modeltest.Idle(func(r *rand.Rand, a *modeltest.Actor) bool {
			own := 4 + r.IntN(2)
			h, d := m.handle(a.Seat, own), &availableCall{want: max(0, m.free(own))}
			m.w.Begin(a, context.Background(), false, d, "Available", func(ctx context.Context) (err error) {
				d.got, err = h.Available(ctx)
				return err
			})
			return true
		})},
		{Name: "delete", Weight: 2, Do: m.delete},
	}
}

// acquire is an Acquire or TryAcquire.
func (m *permitModel) acquire(r *rand.Rand, a *modeltest.Actor) *modeltest.Call {
	d := &acquireCall{request: m.draw(r, a), own: 4 + r.IntN(2)}
	d.limit, d.free = m.limit(d.own), m.free(d.own)
	h := m.handle(a.Seat, d.own)
	do, opts, what := h.Acquire, d.options(), "Acquire"
	if d.try && r.IntN(2) == 0 {
		do, opts, what = h.TryAcquire, nil, "TryAcquire"
	}
	if r.IntN(3) == 0 {
		d.lease = time.Millisecond << r.IntN(16) // to half a minute: in the end only one passes
		opts = append(opts, rlock.Lease(d.lease))
	}
	text := fmt.Sprintf("%s(%v, lease %v, of %d)", what, d.request, d.lease, d.own)
	return m.w.Begin(a, context.Background(), !d.try, d, text, func(ctx context.Context) error {
		section, p, err := do(ctx, d.n, opts...)
		if err == nil {
			d.p, d.in = p, m.w.Watch(section)
		}
		return err
	})
}

// standing returns why permits do not hold any more, if they do not.
func (m *permitModel) standing(s *permitSet) (want, or error) {
	switch from, to := s.trust(); {
	case s.over != nil:
		return s.over, s.over
	case !s.missing.IsZero(), !m.exists, !s.alive(), !time.Now().Before(to):
		return rlock.ErrLost, rlock.ErrLost
	case time.Now().Before(from):
		return nil, nil
	}
	return nil, rlock.ErrLost
}

func (m *permitModel) release(a *modeltest.Actor, s *permitSet) {
	d := &setCall{s: s, again: s.spent, empty: !m.exists}
	if d.want, d.or = m.standing(s); s.spent {
		d.want, d.or = rlock.ErrNotHeld, rlock.ErrNotHeld
	}
	m.w.Begin(a, context.Background(), false, d, fmt.Sprintf("Release of the %v", s), func(context.Context) error {
		return s.p.Release()
	})
}

func (m *permitModel) extend(r *rand.Rand, a *modeltest.Actor, s *permitSet) {
	d := &setCall{s: s, d: time.Millisecond << r.IntN(16)}
	if d.want, d.or = m.standing(s); !s.fixed {
		d.want, d.or = rlock.ErrArgument, rlock.ErrArgument
	}
	m.w.Begin(a, context.Background(), false, d, fmt.Sprintf("Extend of the %v by %v", s, d.d), func(ctx context.Context) error {
		return s.p.Extend(ctx, d.d)
	})
}

func (m *permitModel) setLimit(r *rand.Rand, a *modeltest.Actor) bool {
	if time.Now().Before(m.rest) {
		return false
	}
	d := limitCall{limit: 2 + r.IntN(7)}
	d.reaps = slices.ContainsFunc(m.sets, func(s *permitSet) bool { return s.there && !s.alive() })
	if r.IntN(15) == 0 {
		d.limit = 0
	}
	h := m.handle(a.Seat, 4+r.IntN(2))
	m.w.Begin(a, context.Background(), false, d, fmt.Sprintf("SetLimit(%d)", d.limit), func(ctx context.Context) error {
		return h.SetLimit(ctx, d.limit)
	})
	return true
}

// delete: somebody deletes one of the keys, or both.
func (m *permitModel) delete(r *rand.Rand, _ *modeltest.Actor) bool {
	both := r.IntN(3) == 0
	if both || r.IntN(2) == 0 {
		m.w.Logf("the number of free permits is deleted")
		m.w.Redis.Del(modelName)
		m.exists, m.gone, m.untold = false, true, time.Now()
		if !both {
			if r.IntN(2) == 0 {
				m.rest = time.Now().Add(m.w.Config.Lease)
			}
			return true
		}
	}
	m.w.Logf("the taken permits are deleted")
	m.w.Redis.Del(zset(modelName))
	m.untold = time.Now()
	for _, s := range m.sets {
		if s.there {
			s.there, s.missing = false, time.Now()
			m.total -= s.n
		}
	}
	return true
}

// Release gives one thing back.
func (m *permitModel) Release() bool {
	if m.cancelFirst() {
		return true
	}
	for _, seat := range m.w.Seats {
		if all := m.held(seat); seat.Session != nil && len(all) > 0 {
			m.release(seat.Actors[0], all[0])
			return true
		}
	}
	return false
}

// Left: all permits are free, and no taken ones are left when somebody has looked.
func (m *permitModel) Left() {
	for _, s := range m.w.Seats {
		if s.Session == nil {
			continue
		}
		n, err := m.handle(s, 5).Available(context.Background())
		if want := max(0, m.limit(5)); n != want || err != nil {
			m.w.Failf("in the end %d are available (%v), and the limit is %d", n, err, want)
		}
		if m.w.Redis.Exists(zset(modelName)) {
			m.w.Failf("taken permits are left in the end")
		}
	}
}

// Gone: what a closed process held is released; what a killed one held stands until its
// lease is over.
func (m *permitModel) Gone(seat *modeltest.Seat, killed bool) {
	for _, s := range m.held(seat) {
		switch {
		case killed:
			s.dead, m.killed = true, true
		case s.over == nil:
			s.over = rlock.ErrClosed
			s.there = s.there && !s.alive()
		}
	}
}
