package clock_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"relock/internal/clock"
)

// Each call has at least seven eighths of the time, and none has more than all of it.
func TestCallsShareATimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s clock.Deadline
		s.Set(t.Context(), 8*time.Second)
		defer s.Stop()
		began := time.Now()
		seen := map[context.Context]bool{}
		for range 40 {
			now := time.Since(began)
			ctx := s.At(now)
			seen[ctx] = true
			end, ok := ctx.Deadline()
			if left := time.Until(end); !ok || left <= 7*time.Second || left > 8*time.Second {
				t.Errorf("at %v a call has %v", now, left)
			}
			time.Sleep(250 * time.Millisecond)
		}
		if len(seen) != 10 {
			t.Errorf("40 calls in 10 s had %d contexts, want 10", len(seen))
		}
	})
}

func TestStopAndParentEndTheContexts(t *testing.T) {
	var s clock.Deadline
	s.Stop() // before there is one
	parent, cancel := context.WithCancel(t.Context())
	s.Set(parent, time.Hour)
	first := s.At(0)
	later := s.At(time.Hour)
	if first == later {
		t.Fatal("an hour later the context is the same")
	}
	if s.Stop(); later.Err() == nil {
		t.Error("Stop leaves the last context")
	}
	if cancel(); first.Err() == nil {
		t.Error("the first context outlives its parent")
	}
}

func TestCallsAtOnceShareOneContext(t *testing.T) {
	var s clock.Deadline
	s.Set(t.Context(), time.Hour)
	defer s.Stop()
	got := make([]context.Context, 8)
	var wg sync.WaitGroup
	for i := range got {
		wg.Go(func() { got[i] = s.At(time.Second) })
	}
	wg.Wait()
	for _, ctx := range got {
		if ctx != got[0] || ctx.Err() != nil {
			t.Errorf("%v and %v, %v", ctx, got[0], ctx.Err())
		}
	}
}
