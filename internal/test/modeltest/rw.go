package modeltest

import (
	"context"
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

// NewRW returns the model of one read-write lock of that kind.
func NewRW(w *World, kind RWKind) *RW {
	return &RW{
		Mutex: Mutex{w: w, learnt: map[*Seat]time.Time{}}, kind: kind, writes: make(map[*hold]bool), lives: make(map[string]*life),
		free: gone{now: true}, open: gone{now: true},
	}
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
