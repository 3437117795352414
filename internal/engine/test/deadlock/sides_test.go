package deadlock_test

import (
	"context"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/rwlock"
)

// A reader who waits behind a waiting writer has no holder to be followed to. It does not hide a
// writer of the same section, whose wait is part of a cycle: within a session and across sessions.
func TestDeadlockOfAWriterBesideAReader(t *testing.T) {
	t.Parallel()
	for name, sessions := range map[string]int{"within a session": 1, "across sessions": 2} {
		t.Run(name, func(t *testing.T) {
			redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
				ctx := within(t, 30*time.Second)
				here := dial(t, s, unpolled())
				there := here
				if sessions == 2 {
					there = dial(t, s, unpolled())
				}
				r := locktest.NewRing(t, ctx,
					locktest.Party{Holds: rlock.New(here, "c"), Wants: rwlock.New(here, "rw")},
					locktest.Party{Holds: reader{rwlock.New(there, "rw")}, Wants: rlock.New(there, "c")})
				writer := outsideWriter(t, ctx, s)

				behind := make(chan error, 1)
				go func() {
					_, _, err := rwlock.New(here, "rw").RLock(r.Inside[0])
					behind <- err
				}()
				r.Known(here, 1)
				r.Wait(0)
				r.Known(here, 2)
				r.Wait(1)
				victim := locktest.Get(t, r.Results, 20*time.Second, "the victim")
				locktest.Is(t, "the victim", victim.Err, rlock.ErrDeadlock)
				if victim.I != 1 {
					t.Error("it is not the one who waited last")
				}
				must(t, r.Holds[0].Unlock()) // with it end the waits of its section
				locktest.Is(t, "the reader", locktest.Get(t, behind, 20*time.Second, "the reader"), context.Canceled)
				locktest.Is(t, "the writer", locktest.Get(t, r.Results, 20*time.Second, "the writer").Err, context.Canceled)
				must(t, r.Holds[1].Unlock())
				must(t, locktest.Get(t, writer, 20*time.Second, "the writer outside").Unlock())
			})
		})
	}
}

// outsideWriter has a writer of another session wait for rw, outside of all sections, so that new
// readers wait behind it. It comes back when that has been refused once.
func outsideWriter(t *testing.T, ctx context.Context, s *redistest.Server) <-chan *rlock.Hold {
	t.Helper()
	trace, waits := locktest.Waiting()
	got := make(chan *rlock.Hold, 1)
	cfg := unpolled()
	cfg.Trace = trace
	ses := dial(t, s, cfg)
	go func() {
		_, h, err := rwlock.New(ses, "rw").Lock(ctx)
		if err != nil {
			t.Errorf("the writer outside: %v", err)
		}
		got <- h
	}()
	locktest.Get(t, waits, 20*time.Second, "the writer outside to wait")
	return got
}
