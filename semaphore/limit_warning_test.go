package semaphore_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/semaphore"
)

// A journal keeps what a Logger was told.
type journal struct {
	mu   sync.Mutex
	text strings.Builder
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

func (j *journal) count(text string) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return strings.Count(j.text.String(), text)
}

// A limit that New was given and that is not the one in Redis has no effect. That is told once for each name
// and session: of a higher one in Redis when more permits are free than New allows, of a lower one when a
// request is refused. It takes no command.
func TestAnotherLimitInRedisIsTold(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := t.Context()
		var log journal
		first := locktest.Dial(t, s, rlock.Config{})
		ses := locktest.Dial(t, s, rlock.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		name := redistest.Name(t)
		for _, n := range []string{"-same", "-more", "-less", "-never", "-set"} {
			_, p, err := semaphore.New(first, name+n, 3).Acquire(ctx, 1)
			must(t, err)
			defer p.Release()
		}
		_, p, err := semaphore.New(first, name+"-less", 3).Acquire(ctx, 2)
		must(t, err)
		defer p.Release()
		use := func(want error, n string, limit, permits int) {
			t.Helper()
			_, p, err := semaphore.New(ses, name+n, limit).TryAcquire(ctx, permits)
			if !errors.Is(err, want) {
				t.Errorf("%d of %s: %v", permits, n, err)
			}
			_ = p.Release()
		}
		for range 3 { // handles of one name
			use(nil, "-more", 1, 1)
			use(rlock.ErrNotAcquired, "-less", 5, 1)
			use(semaphore.ErrLimit, "-never", 5, 5)
			use(nil, "-same", 3, 2)
			use(nil, "-new", 7, 1)
		}
		sets := semaphore.New(ses, name+"-set", 2)
		must(t, sets.SetLimit(ctx, 9))
		must(t, sets.Do(ctx, 2, func(context.Context) error { return nil }))
		redistest.Eventually(t, 20*time.Second, "three warnings", func() bool { return log.count("another limit in Redis") >= 3 })
		must(t, ses.Close())
		for text, want := range map[string]int{
			"another limit in Redis": 3, "level=WARN": 3,
			`-more "least limit"=2 given=1`: 1, "-less limit=3 given=5": 1, "-never limit=3 given=5": 1,
		} {
			if got := log.count(text); got != want {
				t.Errorf("%d times %q, want %d, in\n%s", got, text, want, log.text.String())
			}
		}
	})
}
