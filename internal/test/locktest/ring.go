package locktest

import (
	"context"
	"testing"
	"time"

	"relock/internal/test/redistest"
	"relock/rlock"
)

// A Locker is one side of a lock through one session.
type Locker interface {
	Lock(ctx context.Context, opts ...rlock.LockOption) (context.Context, *rlock.Hold, error)
}

// A Party holds one lock and waits for another one.
type Party struct{ Holds, Wants Locker }

// A Ring is a deadlock of parties.
type Ring struct {
	t       *testing.T
	Parties []Party
	Holds   []*rlock.Hold
	Inside  []context.Context
	Results chan Ended

	Sessions []*rlock.Session // that must know of no wait in the end
}

// Ended is how the second Lock of a party ended, and when.
type Ended struct {
	I    int
	Hold *rlock.Hold
	Err  error
	At   time.Time
}

// NewRing has each party take its first lock.
func NewRing(t *testing.T, ctx context.Context, parties ...Party) *Ring {
	t.Helper()
	r := &Ring{t: t, Parties: parties, Results: make(chan Ended, len(parties))}
	for _, p := range parties {
		section, h, err := p.Holds.Lock(ctx)
		Must(t, err)
		r.Holds, r.Inside = append(r.Holds, h), append(r.Inside, section)
	}
	return r
}

// Wait has a party wait for its second lock.
func (r *Ring) Wait(i int, opts ...rlock.LockOption) {
	go func() {
		_, h, err := r.Parties[i].Wants.Lock(r.Inside[i], opts...)
		r.Results <- Ended{i, h, err, time.Now()}
	}()
}

// Known waits until a session knows of that many waits. The next one is younger then, also on a
// made-up clock, on which two of them can begin in the same microsecond.
func (r *Ring) Known(ses *rlock.Session, waits int) {
	r.t.Helper()
	redistest.Eventually(r.t, 10*time.Second, "a wait to be watched", func() bool { return Suspects(ses) == waits })
	time.Sleep(time.Millisecond)
}

// Resolve waits until one of the parties is told of the deadlock, and unlocks what that holds:
// then the others get their locks. It returns what the victim was told.
func (r *Ring) Resolve(within time.Duration) Ended {
	r.t.Helper()
	victim := Get(r.t, r.Results, within, "the victim")
	Is(r.t, "the victim", victim.Err, rlock.ErrDeadlock, rlock.ErrNotAcquired)
	Must(r.t, r.Holds[victim.I].Unlock())
	for range len(r.Parties) - 1 {
		got := Get(r.t, r.Results, 10*time.Second, "the others' locks")
		if got.Err != nil {
			r.t.Errorf("party %d: %v; there was a victim already: %v", got.I, got.Err, victim.Err)
		} else {
			Must(r.t, got.Hold.Unlock())
		}
		Must(r.t, r.Holds[got.I].Unlock())
	}
	for _, ses := range r.Sessions {
		if n := Suspects(ses); n > 0 {
			r.t.Errorf("a session still knows of %d waits", n)
		}
	}
	return victim
}
