package locktest

import (
	"context"
	"sync"

	"relock/locktrace"
	"relock/rlock"
)

// A Passes counts the hand-overs in memory, and knows who was let in last.
type Passes struct {
	mu    sync.Mutex
	n     int
	owner string
	lost  []string

	listens   func() bool // whether a session listens to the lock's channel; nil: it does not matter
	listening int         // refusals that were answered when one did

	onPass func() // called at each hand-over, if not nil
}

// Trace returns the hooks that tell p.
func (p *Passes) Trace() *rlock.Trace {
	return &rlock.Trace{
		AcquireEnd: func(_ context.Context, e locktrace.AcquireEnd) {
			p.mu.Lock()
			defer p.mu.Unlock()
			if e.Err == nil {
				p.owner = e.Owner
			}
		},
		Attempt: func(e locktrace.Attempt) {
			p.mu.Lock()
			defer p.mu.Unlock()
			if e.Err == nil && !e.Granted {
				if p.listens != nil && p.listens() {
					p.listening++
				}
			}
		},
		HandedOver: func(locktrace.HandedOver) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.n++
			if p.onPass != nil {
				p.onPass()
			}
		},
		Lost: func(e locktrace.Lost) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.lost = append(p.lost, e.Owner+": "+e.Reason)
		},
	}
}

// Count returns how many hand-overs in memory there were.
func (p *Passes) Count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.n
}

// Last returns the owner that was let in last.
func (p *Passes) Last() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.owner
}

// Settled reports whether a waiter that is the first of the line has nothing more to ask: it has listened to the lock's
// channel, and was refused again then.
func (p *Passes) Settled() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.listening > 0
}

// Losses returns what was lost, and why.
func (p *Passes) Losses() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lost
}
