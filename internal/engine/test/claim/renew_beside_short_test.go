package claim_test

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"relock/internal/test/faulttest"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/internal/test/slownet"
	"relock/rlock"
)

// Redis is asked about fixed leases too, some of which are over before a far Redis has answered. That the session waits no
// longer for such an answer is no reason to give up those to the renewals that are sent beside it, and to send these again.
func TestRenewalsWaitForTheirAnswersBesideShortLeases(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		const holds, shorts, d = 50, 50, 6 * time.Second
		ctx := within(t, time.Minute)
		p, opt := faulttest.Of(t, s.Option())
		cfg := rlock.Config{Lease: 3 * time.Second, Logger: slog.New(slog.DiscardHandler)}
		ses := locktest.DialOption(t, slownet.Of(t, opt, 40*time.Millisecond), cfg)
		var all sync.WaitGroup
		for range holds {
			m := rlock.New(ses, redistest.Name(t))
			all.Go(func() {
				section, h, err := m.Lock(ctx)
				must(t, err)
				locktest.Stays(t, section, d)
				must(t, h.Unlock())
			})
		}
		short, cancel := context.WithTimeout(ctx, d)
		defer cancel()
		for i := range shorts {
			m := rlock.New(ses, redistest.Name(t))
			all.Go(func() {
				time.Sleep(time.Duration(i) * 5 * time.Millisecond) // so that some are due whenever the others are
				for short.Err() == nil {
					if _, h, err := m.Lock(short, rlock.Lease(150*time.Millisecond)); err == nil {
						time.Sleep(100 * time.Millisecond)
						_ = h.Unlock() // it may be over by now
					}
				}
			})
		}
		all.Wait()
		n := 0
		for _, cmd := range p.Sent() {
			if i := slices.Index(cmd, "3000"); i > 0 && locktest.Calls(t, "renew")(cmd) {
				n += len(cmd) - i - 1
			}
		}
		most := holds * (int(d/time.Second) + 1)
		if !redistest.MadeUpClock() {
			most += holds // an answer may be late on a busy machine
		}
		if n > most {
			t.Errorf("in %v %d locks, the turn of each of which comes each second, were renewed %d times, want %d at most", d, holds, n, most)
		}
	})
}
