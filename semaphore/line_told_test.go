package semaphore_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/semaphore"
)

// holders are who has the 5 permits of a semaphore.
type holders struct {
	m          *semaphore.Semaphore
	two, three *semaphore.Permits
}

// A change of a semaphore, and what it is to those who wait.
type change struct {
	what  string
	do    func(t *testing.T, s *redistest.Server, ctx context.Context, h holders)
	sizes []int  // of the sessions that wait, of a limit of 5 that is taken
	ends  string // of each: i, it gets in; l, it wants more than the limit; w, it waits
}

var changes = []change{
	{"a release", func(t *testing.T, _ *redistest.Server, _ context.Context, h holders) { must(t, h.three.Release()) }, []int{1, 2, 1}, "iiw"},
	{"a release by ids", func(t *testing.T, _ *redistest.Server, ctx context.Context, h holders) {
		must(t, h.m.ReleaseByID(ctx, h.three.IDs()...))
	}, []int{2, 1, 1}, "iiw"},
	{"a release by some ids", func(t *testing.T, _ *redistest.Server, ctx context.Context, h holders) {
		must(t, h.m.ReleaseByID(ctx, h.three.IDs()[1:]...))
	}, []int{1, 1, 1}, "iiw"},
	{"a limit that is raised", func(t *testing.T, _ *redistest.Server, ctx context.Context, h holders) { must(t, h.m.SetLimit(ctx, 9)) }, []int{3, 1, 2}, "iiw"},
	{"a limit below what the first wants", func(t *testing.T, _ *redistest.Server, ctx context.Context, h holders) {
		must(t, h.m.SetLimit(ctx, 3))
	}, []int{4, 2, 4, 3}, "lwlw"},
	{"a limit below what the first wants, and then a release", func(t *testing.T, _ *redistest.Server, ctx context.Context, h holders) {
		must(t, h.m.SetLimit(ctx, 3))
		must(t, h.three.Release())
	}, []int{4, 1, 4, 1}, "lilw"},
	{"a limit of nothing", func(t *testing.T, _ *redistest.Server, ctx context.Context, h holders) { must(t, h.m.SetLimit(ctx, 0)) }, []int{1, 1}, "ll"},
	{"permits that expire", func(t *testing.T, s *redistest.Server, _ context.Context, h holders) {
		soon := fmt.Sprint(time.Now().Add(50 * time.Millisecond).UnixMilli())
		for _, id := range raw(h.three) {
			must(t, s.Do(t, "ZADD", zset("x"), soon, id).Error())
		}
		pass(t, 100*time.Millisecond)
		_, err := h.m.Available(context.Background()) // somebody looks
		must(t, err)
	}, []int{2, 1, 1}, "iiw"},
	{"a delete", func(t *testing.T, _ *redistest.Server, ctx context.Context, h holders) { must(t, h.m.Delete(ctx)) }, []int{1, 2, 2, 3}, "iiiw"},
}

// Every way in which permits come free, or the limit changes, lets in whom it suffices for, in all sessions, and tells
// those who can never be served. Nobody looks by itself: that is an hour away (scenario 43).
func TestWhatChangesASemaphoreConcernsTheWholeLine(t *testing.T) {
	t.Parallel()
	for _, c := range changes {
		t.Run(c.what, func(t *testing.T) { redistest.EachBubble(t, c.concernsTheLine) })
	}
}

func (c change) concernsTheLine(t *testing.T, s *redistest.Server) {
	ctx := within(t, time.Minute)
	h := holders{m: semaphore.New(dial(t, s, slow()), "x", 5)}
	var err error
	_, h.two, err = h.m.Acquire(ctx, 2)
	must(t, err)
	_, h.three, err = h.m.Acquire(ctx, 3)
	must(t, err)
	waitCtx, stop := context.WithCancel(ctx)
	defer stop()
	var all []<-chan got
	for i, n := range c.sizes {
		all = append(all, acquire(waitCtx, semaphore.New(dial(t, s, slow()), "x", 5), n))
		awaitInLine(t, s, "x", i+1)
		pass(t, time.Millisecond)
	}
	awaitListener(t, s, "x")
	defer reportLine(t, s, "x")
	c.do(t, s, ctx, h)
	for i, end := range c.ends {
		if end == 'w' {
			continue
		}
		switch g := locktest.Get(t, all[i], 10*time.Second, fmt.Sprintf("session %d, which wants %d", i, c.sizes[i])); end {
		case 'i':
			must(t, g.err)
		case 'l':
			is(t, c.what, g.err, semaphore.ErrLimit)
		}
	}
	pass(t, 20*time.Millisecond)
	for i, end := range c.ends {
		if end == 'w' {
			waits(t, fmt.Sprintf("session %d", i), all[i])
		}
	}
	stop()
	for i, end := range c.ends {
		if end == 'w' {
			is(t, "in the end", locktest.Get(t, all[i], 10*time.Second, "a waiter's end").err, rlock.ErrNotAcquired)
		}
	}
}

// The same for a counter.
func TestWhatChangesACounterConcernsTheWholeLine(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		what string
		do   func(t *testing.T, ctx context.Context, c *semaphore.Counter)
		in   int // of three sessions that want 2, 1 and 1
	}{
		{"Release", func(t *testing.T, ctx context.Context, c *semaphore.Counter) { must(t, c.Release(ctx, 3)) }, 2},
		{"Add", func(t *testing.T, ctx context.Context, c *semaphore.Counter) { must(t, c.Add(ctx, 2)) }, 1},
		{"TrySet", func(t *testing.T, ctx context.Context, c *semaphore.Counter) { must(t, second(c.TrySet(ctx, 4))) }, 3},
		{"Drain, which leaves nobody in, and then Release", func(t *testing.T, ctx context.Context, c *semaphore.Counter) {
			must(t, c.Release(ctx, 1))
			drain(t, ctx, c, 1)
			must(t, c.Release(ctx, 3))
		}, 2},
	} {
		t.Run(c.what, func(t *testing.T) {
			redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
				ctx := within(t, time.Minute)
				waitCtx, stop := context.WithCancel(ctx)
				defer stop()
				giver := semaphore.NewCounter(dial(t, s, slow()), "x")
				var all []<-chan error
				for i, n := range []int{2, 1, 1} {
					counter := semaphore.NewCounter(dial(t, s, slow()), "x")
					all = append(all, start(func() error { return counter.Acquire(waitCtx, n) }))
					awaitInLine(t, s, "x", i+1)
					pass(t, time.Millisecond)
				}
				awaitListener(t, s, "x")
				c.do(t, ctx, giver)
				if !redistest.MadeUpClock() { // a session of a busy machine may come after the 5 ms in which it is waited for
					redistest.Eventually(t, 10*time.Second, "nobody to wait who could be in", func() bool {
						free, err := giver.Available(ctx)
						must(t, err)
						entries := inLine(t, s, "x")
						for _, e := range entries {
							if strings.Contains(e, "C00001") && free >= 1 || free >= 2 {
								return false
							}
						}
						return len(entries) < 3
					})
					return
				}
				for i := range c.in {
					must(t, locktest.Get(t, all[i], 10*time.Second, fmt.Sprintf("session %d", i)))
				}
				pass(t, 20*time.Millisecond)
				stop()
				for _, e := range all[c.in:] {
					is(t, "in the end", locktest.Get(t, e, 10*time.Second, "a waiter's end"), rlock.ErrNotAcquired)
				}
			})
		})
	}
}
