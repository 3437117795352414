package line_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"relock/internal/test/redistest"
	"relock/locktrace"
	"relock/rlock"
)

// Readers and writers of several sessions use a lock without a pause: of the writers one, which is back as soon as it has
// left, or three, of which some always wait. A reader that has begun to wait sees one writer come in at most before it
// does (scenario 41).
func TestNoReaderIsPassedByTwoWriters(t *testing.T) {
	t.Parallel()
	for what, writers := range map[string]int{"one writer": 1, "three writers": 3} {
		t.Run(what, func(t *testing.T) {
			redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
				r := newContest(t, s)
				var writes, reads, most atomic.Int64
				for range 3 {
					var begun atomic.Int64 // how many writers had come in when the reader began to wait
					trace := &rlock.Trace{Waiting: func(context.Context, locktrace.Waiting) { begun.Store(writes.Load()) }}
					m := readLock(dial(t, s, rlock.Config{PollFloor: time.Hour, Trace: trace}), r.name)
					r.wg.Go(func() {
						for r.ctx.Err() == nil {
							begun.Store(writes.Load())
							_, h, err := m.Lock(r.ctx)
							if err != nil {
								return
							}
							most.Store(max(most.Load(), writes.Load()-begun.Load()))
							reads.Add(1)
							time.Sleep(about(time.Millisecond))
							must(t, h.Unlock())
						}
					})
				}
				r.lock = writeLock
				for range writers {
					r.loop(countsIn{writeLock(dial(t, s, rlock.Config{}), r.name), &writes}, time.Millisecond, &r.sections)
				}
				r.turns(60)
				r.end()
				t.Logf("%d reads beside %d writes", reads.Load(), writes.Load())
				if n := most.Load(); s.IsMini() && n > 1 {
					t.Errorf("%d writers came in while a reader waited", n)
				}
			})
		})
	}
}

// countsIn counts how often its caller has come in, before that knows.
type countsIn struct {
	locker
	n *atomic.Int64
}

func (c countsIn) Lock(ctx context.Context, opts ...rlock.LockOption) (context.Context, *rlock.Hold, error) {
	ctx, h, err := c.locker.Lock(ctx, opts...)
	if err == nil {
		c.n.Add(1)
	}
	return ctx, h, err
}
