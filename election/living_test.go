package election_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"relock/election"
	"relock/fairlock"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// A session leads from when Campaign returns until the context of its last leadership ends, whichever of
// its handles is asked. Nothing is kept of leaderships that have ended.
func TestIsLeader(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, patience)
		a, b := dial(t, s, slow()), dial(t, s, slow())
		isLeader(t, a, false)
		e := leads(t, campaign(t, ctx, a, "a", 0), 1)
		isLeader(t, a, true)
		isLeader(t, b, false)
		if election.New(a, "y").IsLeader() {
			t.Error("it leads in another election")
		}
		_, inner, err := election.New(a, "x").Campaign(e.section, "inner")
		must(t, err)
		must(t, e.l.Resign())
		isLeader(t, a, true)
		must(t, inner.Resign())
		isLeader(t, a, false)

		short, cancel := context.WithCancel(ctx)
		e = leads(t, campaign(t, short, a, "a", 0), 2)
		isLeader(t, a, true)
		cancel()
		isLeader(t, a, false)
		must(t, e.l.Resign())

		e = leads(t, campaign(t, ctx, a, "a", 0), 3)
		if ok, err := fairlock.New(b, "x").ForceUnlock(ctx); !ok || err != nil {
			t.Fatalf("ForceUnlock: %v, %v", ok, err)
		}
		ends(t, e.section, patience, rlock.ErrLost)
		isLeader(t, a, false)

		leads(t, campaign(t, ctx, b, "b", 0), 4)
		must(t, b.Close())
		isLeader(t, b, false)
		redistest.Eventually(t, patience, "leaderships that have ended to be forgotten", func() bool { return election.Living() == 0 })
	})
}

// Random Runs of three sessions, whose contexts end, whose leaderships are taken away, and whose work
// returns when it likes: never do two work whose contexts live, a leader's session says that it leads, and
// OnStoppedLeading comes behind the work.
func TestRandomRuns(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, 2*time.Minute)
		sessions := []*rlock.Session{dial(t, s, rlock.Config{}), dial(t, s, rlock.Config{}), dial(t, s, rlock.Config{})}
		total := int64(locktest.Cycles(t, s, 600))
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		var inside atomic.Int32
		var led, started atomic.Int64
		var wg sync.WaitGroup
		for w := range 9 {
			ses, rng := sessions[w%3], rand.New(rand.NewPCG(seed, uint64(w)))
			wg.Go(func() {
				for started.Add(1) <= total && !t.Failed() {
					mine, stop := context.WithCancel(ctx)
					if rng.IntN(4) == 0 { // it may not lead at all
						time.AfterFunc(time.Duration(rng.IntN(3000))*time.Microsecond, stop)
					}
					worked, told, way := false, false, rng.IntN(4)
					err := election.New(ses, "x").Run(mine, "v", election.Callbacks{
						OnStartedLeading: func(leading context.Context) {
							led.Add(1)
							leave := sync.OnceFunc(func() { inside.Add(-1) })
							defer context.AfterFunc(leading, leave)()
							n, says := inside.Add(1), election.New(ses, "x").IsLeader()
							if leading.Err() == nil && (n != 1 || !says) {
								t.Errorf("%d work; IsLeader is %v", n, says)
							}
							leave()
							switch way {
							case 0:
								_, _ = fairlock.New(ses, "x").ForceUnlock(ctx)
								<-leading.Done()
							case 1:
								defer stop() // behind its return
							default:
								stop()
							}
							worked = true
						},
						OnStoppedLeading: func() { told = worked },
					})
					stop()
					if told != worked {
						t.Error("OnStoppedLeading was not called behind the work")
					}
					if lost := worked && way == 0; err != nil && !lost || lost && !errors.Is(err, rlock.ErrLost) {
						t.Errorf("Run: %v; lost: %v", err, lost)
					}
				}
			})
		}
		wg.Wait()
		if ctx.Err() != nil || led.Load() < total/4 {
			t.Errorf("%d of %d led", led.Load(), total)
		}
		redistest.Eventually(t, patience, "leaderships that have ended to be forgotten", func() bool { return election.Living() == 0 })
	})
}
