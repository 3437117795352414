package rlock

import (
	"context"
	"sync"

	"relock/internal/api"
	"relock/internal/engine"
	"relock/internal/mutex"
)

// Locker adapts the mutex to [sync.Locker]. Warning: it panics where Mutex returns an error. No Lock
// re-enters another's, whatever ctx carries, so that goroutines can share it. Lock waits for as long
// as ctx lives.
func (m *Mutex) Locker(ctx context.Context) sync.Locker { return &locker{m: m, ctx: ctx} }

type locker struct {
	m   *Mutex
	ctx context.Context

	mu sync.Mutex
	// holds has one entry, unless a hold was lost and another goroutine got in before the
	// loser unlocked. Oldest first: the loser must get its own error, not its successor's
	// hold.
	holds []*Hold
}

func (l *locker) Lock() {
	_, h, err := l.m.Lock(WithoutOwner(l.ctx))
	if err != nil {
		panic(err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.holds = append(l.holds, h)
}

func (l *locker) Unlock() {
	if err := l.first().Unlock(); err != nil {
		panic(err)
	}
}

// first takes the oldest hold off the list.
func (l *locker) first() *Hold {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.holds) == 0 {
		p, err := mutex.PrimitiveOf((*engine.Handle)(l.m))
		if err == nil {
			err = api.Wrap("unlock", p.Names().Name(), ErrNotHeld)
		}
		panic(err)
	}
	h := l.holds[0]
	l.holds = l.holds[1:]
	return h
}
