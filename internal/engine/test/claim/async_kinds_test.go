package claim_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/rwlock"
)

// A TryLock is never refused by a release of its own session that is still on its way.
func TestTryLockIsNotRefusedByAnUnlockAsync(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ses := dial(t, s, rlock.Config{})
		rng := rand.New(rand.NewPCG(1, 2))
		for _, k := range locktest.AsyncKinds(ses, "") {
			t.Run(k.Name, func(t *testing.T) {
				ctx := within(t, time.Minute) // each: on a busy machine a round takes 25 ms
				for i := range redistest.Rounds(600) {
					take := k.Try // for a second, in which a busy machine may not have loaded a script: so not the first time
					switch i % 3 {
					case 0:
						take = k.Lock
					case 2:
						if k.Other != nil {
							take = k.Other
						}
					}
					_, end, err := take(ctx)
					if err != nil {
						t.Fatalf("round %d: %v", i, err)
					}
					end()
					if n := rng.IntN(4); n > 0 { // so that the release is now here, now on its way
						time.Sleep(time.Duration(rng.IntN(40*n)) * time.Microsecond)
					}
				}
			})
		}
		locktest.Settled(t, ses)
	})
}

// The UnlockAsync of an inner hold ends that hold and no other, and costs what Unlock costs; the lock's count in Redis
// follows.
func TestUnlockAsyncOfInnerHolds(t *testing.T) {
	for _, owner := range []string{"", "order-17"} {
		for _, opts := range [][]rlock.LockOption{nil, {rlock.Lease(20 * time.Second)}} {
			t.Run(fmt.Sprintf("%s %d", owner, len(opts)), func(t *testing.T) {
				redistest.Each(t, func(t *testing.T, s *redistest.Server) {
					ses, p := locktest.DialProxy(t, s, rlock.Config{})
					ctx := within(t, time.Minute)
					if owner != "" {
						ctx = rlock.WithOwner(ctx, owner)
					}
					m := rlock.New(ses, "x")
					outer, h, err := m.Lock(ctx, opts...)
					must(t, err)
					for range 20 {
						section := outer
						var inner []*rlock.Hold
						for range 3 {
							c, in, err := m.Lock(section, opts...)
							must(t, err)
							section, inner = c, append(inner, in)
						}
						for _, in := range inner {
							in.UnlockAsync()
						}
						redistest.Eventually(t, 10*time.Second, "one hold to be left", func() bool { return locktest.Field(t, s, "x", h.Owner()) == "1" })
						if outer.Err() != nil {
							t.Fatal("the outer section has ended")
						}
					}
					if h.Remaining() <= 0 {
						t.Error("the outer hold is not trusted any more")
					}
					h.UnlockAsync()
					locktest.Settled(t, ses)
					if !locktest.Free(t, s, "x") {
						t.Error("not free")
					}
					if a, r := locktest.CallsSent(t, p, "acquire"), locktest.CallsSent(t, p, "release"); a != 61 || r > 61 {
						t.Errorf("%d attempts and %d releases, want 61 and at most 61", a, r)
					}
				})
			})
		}
	}
}

// A downgrade by UnlockAsync lets readers in.
func TestUnlockAsyncDowngrades(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ses, other, ctx := dial(t, s, rlock.Config{}), dial(t, s, rlock.Config{}), within(t, time.Minute)
		m := rwlock.New(ses, "x")
		for range 20 {
			section, w, err := m.Lock(ctx)
			must(t, err)
			_, r, err := m.RLock(section)
			must(t, err)
			w.UnlockAsync()
			_, own, err := m.TryRLock(ctx)
			must(t, err)
			_, theirs, err := rwlock.New(other, "x").RLock(ctx)
			must(t, err)
			own.UnlockAsync()
			theirs.UnlockAsync()
			r.UnlockAsync()
		}
		locktest.Settled(t, ses)
		locktest.Settled(t, other)
	})
}

// AtLeast leaves the lock standing.
func TestUnlockAsyncWithAtLeast(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ses, ctx := dial(t, s, rlock.Config{}), within(t, time.Minute)
		m := rlock.New(ses, "x")
		_, h, err := m.Lock(ctx, rlock.AtLeast(time.Minute))
		must(t, err)
		h.UnlockAsync()
		if _, _, err := m.TryLock(ctx); err == nil {
			t.Error("the lock is not left standing")
		}
		locktest.Settled(t, ses)
		if locktest.Free(t, s, "x") {
			t.Error("the lock is free")
		}
	})
}
