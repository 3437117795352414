package semaphore_test

import (
	"context"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/semaphore"
)

// A permitTaker takes the only permit of a semaphore or a counter, and returns what gives it back.
type permitTaker func(ctx context.Context, ses *rlock.Session, opts ...rlock.LockOption) (release func() error, err error)

var permitTakers = map[string]permitTaker{
	"semaphore": func(ctx context.Context, ses *rlock.Session, opts ...rlock.LockOption) (func() error, error) {
		_, p, err := semaphore.New(ses, "semaphore", 1).Acquire(ctx, 1, opts...)
		return p.Release, err
	},
	"counter": func(ctx context.Context, ses *rlock.Session, opts ...rlock.LockOption) (func() error, error) {
		c := semaphore.NewCounter(ses, "counter")
		return func() error { return c.Release(ctx, 1) }, c.Acquire(ctx, 1, opts...)
	},
}

// Four sessions take a permit again and again: somebody stands in the line at each release. A caller that sleeps between
// its attempts hears of none, and gets in all the same: what comes free shortly before it comes is left to it, also by
// the first of the line, which asks by itself meanwhile (scenario 36).
func TestACallerThatSleepsBetweenAttemptsGetsAPermitBesideALine(t *testing.T) {
	t.Parallel()
	for what, take := range permitTakers {
		t.Run(what, func(t *testing.T) {
			redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
				ctx := within(t, time.Minute)
				_, err := semaphore.NewCounter(dial(t, s, slow()), "counter").TrySet(ctx, 1)
				must(t, err)
				busy, end := context.WithCancel(ctx)
				var done []<-chan error
				for range 4 {
					ses := dial(t, s, rlock.Config{})
					done = append(done, start(func() error {
						for busy.Err() == nil {
							release, err := take(ctx, ses)
							if err != nil {
								return err
							}
							pass(t, time.Millisecond)
							if err := release(); err != nil {
								return err
							}
						}
						return nil
					}))
				}
				polls := locktest.Polls()
				polls.Polling = locktest.Every(30 * time.Millisecond)
				polling, hearing := dial(t, s, polls), dial(t, s, slow())
				for range 3 {
					for how, opts := range map[string][]rlock.LockOption{"Polling": nil, "Retry": {rlock.Retry(polls.Polling)}} {
						ses := polling
						if opts != nil {
							ses = hearing
						}
						soon, stop := context.WithTimeout(ctx, time.Second+s.Slack())
						release, err := take(soon, ses, opts...)
						if err != nil {
							t.Fatalf("%s: %v", how, err)
						}
						must(t, release())
						stop()
					}
				}
				end()
				for _, d := range done {
					must(t, <-d)
				}
			})
		})
	}
}
