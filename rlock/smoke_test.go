package rlock_test

import (
	"sync"
	"testing"
	"time"

	"relock/internal/redistest"
	"relock/rlock"
)

func TestSmoke(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		a, b := dial(t, s, rlock.Config{}), dial(t, s, rlock.Config{})
		ctx := within(t, 20*time.Second)
		x := 0
		var wg sync.WaitGroup
		for i := range 40 {
			ses := a
			if i%2 == 0 {
				ses = b
			}
			wg.Go(func() {
				for range 20 {
					c1, h, err := rlock.New(ses, "x").Lock(ctx)
					if err != nil {
						t.Error(err)
						return
					}
					y := x
					_, h2, err := rlock.New(ses, "x").Lock(c1)
					if err != nil {
						t.Error(err)
						return
					}
					if err := h2.Unlock(); err != nil {
						t.Error(err)
					}
					x = y + 1
					if err := h.Unlock(); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		if x != 800 {
			t.Error(x)
		}
		t.Log(s.Keys(t), s.Channels(t))
	})
}
