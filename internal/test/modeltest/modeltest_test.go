package modeltest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"

	"relock/fairlock"
	"relock/internal/engine"
	"relock/internal/script"
	"relock/internal/test/redistest"
	"relock/rlock"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// loose is a model that takes everything.
type loose struct{ ops []Op }

func (l loose) Ops() []Op      { return l.ops }
func (loose) Gone(*Seat, bool) {}
func (loose) Check([]*Call)    {}
func (loose) Release() bool    { return false }
func (loose) Left()            {}

func inWorld(t *testing.T, cfg Config, seed uint64, model Model, fn func(*testing.T, *World)) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(cfg.withDefaults(), seed)
		w.model = model
		fn(t, w)
		w.tearDown()
	})
}

// TIME in a script is the bubble's clock, as are the TTLs.
func TestScriptsHaveTheBubblesTime(t *testing.T) {
	inWorld(t, Config{}, 1, loose{}, func(t *testing.T, w *World) {
		w.start(w.Seats[0])
		clock := script.New("local t = redis.call('TIME') return {tonumber(t[1]), tonumber(t[2])}")
		now := func() time.Time {
			var at time.Time
			session := (*engine.Session)(w.Seats[0].Session)
			names, err := session.Names("x")
			h := engine.NewHandle(session, &names, nil, err)
			err = h.Calls().Call(context.Background(), "time", script.Command{Script: clock, Keys: []string{"x"}}, func(r rueidis.RedisResult) error {
				reply, err := r.AsIntSlice()
				if err == nil {
					at = time.Unix(reply[0], reply[1]*1000)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			return at
		}
		for range 3 {
			if got, want := now(), time.Now().Truncate(time.Microsecond); !got.Equal(want) {
				t.Errorf("TIME is %v, want %v", got, want)
			}
			time.Sleep(90*time.Minute + time.Millisecond)
		}
	})
}

// What a killed process held stands until its lease is over, and not longer; the process
// neither renews nor releases it.
func TestKilledProcessKeepsItsLockForOneLease(t *testing.T) {
	inWorld(t, Config{}, 1, loose{}, func(t *testing.T, w *World) {
		w.start(w.Seats[0])
		if _, _, err := rlock.New(w.Seats[0].Session, "x").Lock(context.Background()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		w.kill(w.Seats[0])
		time.Sleep(19 * time.Second)
		if !w.Redis.Exists("x") {
			t.Error("the lock of a dead process was gone at once")
		}
		time.Sleep(11*time.Second + time.Millisecond)
		if w.Redis.Exists("x") {
			t.Error("the lock of a dead process still stands after a lease")
		}
	})
}

// A seed gives the same operations again, whatever they draw, and another one others.
func TestSeedDecidesTheSteps(t *testing.T) {
	story := func(seed uint64) (steps []string) {
		var w *World
		model := loose{ops: []Op{{Name: "x", Weight: 20, Do: func(r *rand.Rand, a *Actor) bool {
			n := r.IntN(1000)
			for range 100 * rand.IntN(2) {
				r.Uint64() // a run that draws more must not differ from one that draws less
			}
			steps = append(steps, fmt.Sprint(w.step, a.Seat.N, a.N, n))
			return true
		}}}}
		inWorld(t, Config{Steps: 100}, seed, model, func(t *testing.T, world *World) {
			w = world
			w.play()
			if w.Failed() {
				t.Error(w.tell())
			}
		})
		return steps
	}
	first := story(7)
	if again := story(7); !slices.Equal(first, again) {
		t.Errorf("the same seed gave\n%q and\n%q", first, again)
	}
	if slices.Equal(first, story(8)) {
		t.Error("another seed gave the same")
	}
}

// The run of a named owner gathers for 2 ms, and its only waiter has a Wait of 2 ms: it leaves, and asks for nothing
// in that instant that would be taken back. For its owner holds the lock elsewhere, and Redis would grant it,
// and set the TTL to its lease.
func TestAWaiterWhoseWaitEndsAsksForNothing(t *testing.T) {
	const fixed = 4096 * time.Millisecond
	for round := range uint64(20) {
		model := new(Mutex)
		inWorld(t, Config{Seats: 2}, round, model, func(t *testing.T, w *World) {
			*model = *NewMutex(w, MutexKind{Key: "x", New: func(s *rlock.Session) Locker { return fairlock.New(s, "x") }})
			lock := func(a *Actor, ctx context.Context, owner string, wait, lease time.Duration) {
				d := model.newLockCall(a)
				d.owner, d.named, d.wait, d.lease = owner, owner != "", wait, lease
				model.begin(a, ctx, d, "Lock")
				w.settle()
			}
			nameless, ann := context.Background(), rlock.WithOwner(context.Background(), "ann")
			for _, s := range w.Seats {
				w.start(s)
			}
			lock(w.Seats[1].Actors[0], ann, "ann", 0, fixed)
			lock(w.Seats[0].Actors[0], nameless, "", 0, 0) // its session queues: the next one gathers
			lock(w.Seats[0].Actors[1], ann, "ann", 2*time.Millisecond, 0)
			w.pass(2 * time.Millisecond)
			if n := w.Redis.HGet("x", "ann"); n != "1" || len(w.Waiting()) != 1 {
				t.Errorf("ann has %s holds, want 1; %d calls wait, want 1", n, len(w.Waiting()))
			}
			if ttl := w.Redis.TTL("x"); ttl > fixed {
				t.Errorf("the lock lives for %v, longer than what its owner has asked for", ttl)
			}
			w.giveBack()
			if w.Failed() {
				t.Error(w.tell())
			}
		})
	}
}

// A failed run tells the seed and what was done.
func TestStoryOfAFailedRun(t *testing.T) {
	var w *World
	model := loose{ops: []Op{{Name: "x", Weight: 1000, Do: func(r *rand.Rand, a *Actor) bool {
		w.Begin(a, context.Background(), false, nil, "something", func(context.Context) error {
			if w.step == 3 {
				w.Failf("it was wrong")
			}
			return nil
		})
		return true
	}}}}
	inWorld(t, Config{}, 11, model, func(t *testing.T, world *World) {
		w = world
		w.play()
		story := w.tell()
		for _, want := range []string{"seed 11, after step", "it was wrong", "something", "process 0.1 starts"} {
			if !strings.Contains(story, want) {
				t.Errorf("the story does not have %q:\n%s", want, story)
			}
		}
	})
}
