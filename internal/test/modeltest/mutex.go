package modeltest

import (
	"context"
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
	Line   string // key of the line of sessions that wait; "": it has none
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
	stay

	claims []*claim
	spent  []*hold             // unlocked
	token  int64               // the highest that was drawn
	learnt map[*Seat]time.Time // when a process last learnt that it had lost the lock
	queue  queue               // of a fair lock

	mu     sync.Mutex
	handed map[string]bool // owners whose claims were handed over in memory since the last look
}

// A stay is what Redis has. A life of the lock begins when an owner enters and ends when the
// key goes.
type stay struct {
	owner   string        // "" when free
	since   time.Time     // when that owner entered, or when it became free
	told    bool          // it became free by a release that was published
	expires time.Time     // as Redis said last
	latest  time.Time     // the latest end that anybody asked for in this life
	slack   time.Duration // miniredis has nanoseconds, scripts have not: see checkRedis
	shared  bool          // more than one claim had holds in this life
	by      []*claim      // those with holds in this life
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
