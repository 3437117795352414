package semaphore_test

import (
	"context"
	"testing"
	"time"

	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/semaphore"
)

// A request that fits gets in behind more requests that are too large than one script looks at.
func TestASmallRequestPassesManyLargeOnes(t *testing.T) { redistest.Each(t, aSmallRequest) }

func aSmallRequest(t *testing.T, s *redistest.Server) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	open := func() *semaphore.Semaphore {
		ses, err := rlock.Dial(ctx, s.Option(), rlock.Config{PollFloor: 300 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = ses.Close() })
		return semaphore.New(ses, "x", 20)
	}
	holder, small := open(), open()
	if _, _, err := holder.Acquire(ctx, 10); err != nil {
		t.Fatal(err)
	}
	const large = 18
	for range large {
		m := open()
		go func() { _, _, _ = m.Acquire(ctx, 15) }() // until its session closes
	}
	for n := 0; n < large; {
		var err error
		if n, err = holder.Waiters(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := small.Acquire(ctx, 1); err != nil {
		t.Errorf("ten permits are free: %v", err)
	}
}
