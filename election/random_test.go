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
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// Leaders resign, close their sessions, or go silent as a dead process does, with other candidates
// of the same session behind them. Never do two lead at a time, terms grow, each leader sees
// itself, and a successor comes.
func TestRandomSessionsEnd(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		x := &contest{T: t, stalls: locktest.WatchStalls(t)}
		ctx := within(t, 2*time.Minute)
		lives := 5
		if testing.Short() {
			lives = 2
		}
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		var wg sync.WaitGroup
		for seat := range uint64(3) {
			var all []*life
			for range lives {
				l := &life{contest: x}
				l.session, l.proxy = locktest.DialProxy(t, s, rlock.Config{
					Lease: lease, QueueLease: time.Second, ReleaseTimeout: 20 * time.Second,
				})
				l.ctx, l.die = context.WithCancel(ctx)
				all = append(all, l)
			}
			wg.Go(func() {
				for i, l := range all {
					var both sync.WaitGroup
					for c := range uint64(2) {
						rng := rand.New(rand.NewPCG(seed, 100*seat+10*uint64(i)+c))
						both.Go(func() {
							for l.lead(rng) {
							}
						})
					}
					both.Wait()
				}
			})
		}
		wg.Wait()
		if n := x.led.Load(); ctx.Err() != nil || n < int64(3*lives) {
			t.Errorf("%d led; each of %d sessions was to end with a leader", n, 3*lives)
		}
	})
}

// lease is that of the candidates. A successor of a silent leader waits for as long.
const lease = 2 * time.Second

// A contest is what is known outside of Redis.
type contest struct {
	*testing.T
	stalls    *locktest.Stalls
	inside    atomic.Int32
	last, led atomic.Int64
}

// late reports whether the machine is so busy that the context of a leadership may end after its
// lease. The margin between the two is a twentieth of the lease; a stall of a fifth of that shows
// that one goroutine may be later than another by all of it.
func (x *contest) late() bool { return x.stalls.Longest() >= lease/100 }

// A life is one session, until one of its candidates ends it.
type life struct {
	*contest
	session *rlock.Session
	proxy   interface{ BlackHole(bool) }
	ctx     context.Context
	die     context.CancelFunc
}

// lead campaigns once, and reports whether the session goes on.
func (x *life) lead(rng *rand.Rand) bool {
	e := election.New(x.session, "x")
	section, l, err := e.Campaign(x.ctx, "v")
	if err != nil {
		if x.ctx.Err() == nil && !errors.Is(err, rlock.ErrClosed) {
			x.Errorf("Campaign: %v", err)
		}
		return false
	}
	x.led.Add(1)
	leave := sync.OnceFunc(func() { x.inside.Add(-1) })
	context.AfterFunc(section, leave) // on a busy machine it may be lost
	if x.inside.Add(1) != 1 && !x.late() {
		x.Error("two lead at once")
	}
	if before := x.last.Swap(l.Term()); before >= l.Term() {
		x.Errorf("term %d follows %d", l.Term(), before)
	}
	if now, err := e.Leader(section); (err != nil || now.Term != l.Term()) && section.Err() == nil && !x.late() {
		x.Errorf("the leader of term %d sees %+v, %v", l.Term(), now, err)
	}
	leave()
	switch rng.IntN(9) {
	case 0, 1:
		defer x.die()
		if err := x.session.Close(); err != nil {
			x.Errorf("Close: %v", err)
		}
		if cause := context.Cause(section); !errors.Is(cause, rlock.ErrClosed) && !errors.Is(cause, rlock.ErrLost) {
			x.Errorf("the leader of a closed session ends with %v", cause)
		}
		return false
	case 2:
		x.proxy.BlackHole(true)
		x.die()
		return false
	}
	if err := l.Resign(); err != nil && !errors.Is(err, rlock.ErrLost) {
		x.Errorf("Resign: %v", err)
	}
	return !x.Failed()
}
