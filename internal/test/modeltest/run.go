package modeltest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"

	"relock/internal/test/redistest"
	"relock/rlock"
)

// Config is the size of a world. Zero fields stand for the defaults.
type Config struct {
	Seats   int          // default 3
	Actors  int          // on each seat; default 3
	Steps   int          // of a run; default 250
	Seeds   int          // fixed seeds, 1 to that; default 20; with -short, 4 at most
	Found   []uint64     // seeds that have found a defect once; not with -short, where they would not play the same
	Session rlock.Config // of each session
}

func (c Config) withDefaults() Config {
	for _, f := range []struct {
		n   *int
		def int
	}{{&c.Seats, 3}, {&c.Actors, 3}, {&c.Steps, 250}, {&c.Seeds, 20}} {
		if *f.n == 0 {
			*f.n = f.def
		}
	}
	return c
}

// HandOverLimits are what worlds have, by their seed, unless Config says otherwise: off, the
// default, and few.
var HandOverLimits = [...]int{-1, 0, 1, 3}

// Run plays the model that newModel makes for each world: with the fixed seeds and a
// fresh one, or with what RELOCK_SEED and RELOCK_STRESS say. With -short there are fewer worlds,
// which last half as long.
func Run(t *testing.T, cfg Config, newModel func(*World) Model) {
	cfg = cfg.withDefaults()
	if testing.Short() && os.Getenv("RELOCK_SEED") == "" {
		cfg.Steps /= 2
	}
	for _, seed := range seeds(t, cfg) {
		ok := t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(cfg, seed)
				w.model = newModel(w)
				w.play()
				w.tearDown()
				if w.Failed() {
					t.Errorf("%s\nplay it again with RELOCK_SEED=%d", w.tell(), w.seed)
				}
			})
		})
		if !ok {
			return // one story is enough to read
		}
	}
}

func seeds(t *testing.T, cfg Config) (all []uint64) {
	if v := os.Getenv("RELOCK_SEED"); v != "" {
		seed, err := strconv.ParseUint(v, 10, 64)
		if err != nil {
			t.Fatalf("RELOCK_SEED=%q is not a seed", v)
		}
		return []uint64{seed}
	}
	fresh := 1
	if v := os.Getenv("RELOCK_STRESS"); v != "" {
		n, err := strconv.Atoi(v)
		if err != nil || n < 1 {
			t.Fatalf("RELOCK_STRESS=%q is not a positive number", v)
		}
		fresh += n / cfg.Steps
	}
	fixed := cfg.Seeds
	if testing.Short() {
		fixed = min(fixed, len(HandOverLimits)) // one world of each
	}
	for i := range fixed {
		all = append(all, uint64(i+1))
	}
	if !testing.Short() {
		all = append(all, cfg.Found...)
	}
	for range fresh {
		all = append(all, rand.Uint64())
	}
	return all
}

func newWorld(cfg Config, seed uint64) *World {
	w := &World{
		Redis: miniredis.NewMiniRedis(), Config: cfg.Session,
		story: story{seed: seed, began: time.Now()}, steps: cfg.Steps, stir: make(chan struct{}, 1),
	}
	w.Redis.ClockTTL(true) // the bubble's clock; TIME in scripts follows it too
	if w.Config.HandOverLimit == 0 {
		w.Config.HandOverLimit = HandOverLimits[seed%uint64(len(HandOverLimits))]
	}
	for n := range cfg.Seats {
		s := &Seat{N: n}
		for k := range cfg.Actors {
			s.Actors = append(s.Actors, &Actor{N: k, Seat: s})
		}
		w.Seats = append(w.Seats, s)
	}
	return w
}

// play is one run: random steps, then all is given back, and nothing may be left.
func (w *World) play() {
	for _, s := range w.Seats {
		w.start(s)
	}
	ops := append(w.model.Ops(), w.ops()...)
	total := 0
	for _, op := range ops {
		total += op.Weight
	}
	for w.step = 1; w.step <= w.steps && !w.Failed(); w.step++ {
		// A generator of its own, so that a step does not depend on how many numbers
		// the ones before it drew.
		r := rand.New(rand.NewPCG(w.seed, uint64(w.step)))
		n := r.IntN(total)
		seat := w.Seats[r.IntN(len(w.Seats))]
		actor := seat.Actors[r.IntN(len(seat.Actors))]
		for _, op := range ops {
			if n -= op.Weight; n < 0 {
				if op.Do(r, actor) {
					w.settle()
				}
				break
			}
		}
	}
	w.giveBack()
}

// ops are the operations that all kinds of lock share. Those of the adapter are guarded
// here: they get an idle actor of a live process.
func (w *World) ops() []Op {
	onLive := func(fn func(*Seat)) func(*rand.Rand, *Actor) bool {
		return func(_ *rand.Rand, a *Actor) bool {
			if a.Seat.Session == nil {
				return false
			}
			fn(a.Seat)
			return true
		}
	}
	return []Op{
		{"time passes", 25, func(r *rand.Rand, _ *Actor) bool {
			// The logarithm is what is drawn evenly; and seldom it is many leases.
			d := time.Millisecond << r.IntN(16) // to half a minute
			if r.IntN(200) == 0 {
				d = 20 * time.Minute
			}
			d += time.Duration(r.Int64N(int64(d))).Truncate(time.Millisecond)
			w.Logf("%v pass", d)
			w.pass(d)
			return true
		}},
		{"start", 12, func(_ *rand.Rand, a *Actor) bool {
			if a.Seat.Session == nil {
				w.start(a.Seat)
			}
			return true
		}},
		{"close", 1, onLive(w.close)},
		{"kill", 2, onLive(w.kill)},
		{"cut", 1, onLive(func(s *Seat) {
			w.Logf("seat %d: the connections of process %d.%d are cut", s.N, s.N, s.Life)
			s.link.cut(false)
			w.cut = time.Now()
		})},
	}
}

// Idle wraps an operation of an adapter: it is done only if the actor is idle and its
// process alive.
func Idle(do func(r *rand.Rand, a *Actor) bool) func(*rand.Rand, *Actor) bool {
	return func(r *rand.Rand, a *Actor) bool {
		return a.Seat.Session != nil && a.call == nil && do(r, a)
	}
}

// giveBack ends a run that went well so far.
func (w *World) giveBack() {
	w.Logf("everything is given back")
	for !w.Failed() && w.model.Release() {
		w.settle()
	}
	w.pass(2*w.longest() + time.Minute)
	if w.Failed() {
		return
	}
	for _, key := range redistest.LockKeys(w.Redis.Keys()) {
		if !slices.Contains(w.Keep, key) {
			w.Failf("Redis still has %q", key)
		}
	}
	w.model.Left()
	for _, s := range w.Seats {
		if s.Session != nil {
			w.close(s)
		}
	}
	if !w.Failed() {
		w.settle()
	}
}

// longest returns the longest time that a key still has to live.
func (w *World) longest() (ttl time.Duration) {
	for _, key := range redistest.LockKeys(w.Redis.Keys()) {
		ttl = max(ttl, w.Redis.TTL(key))
	}
	return ttl
}

// tearDown leaves no goroutine in the bubble, whatever happened.
func (w *World) tearDown() {
	for _, s := range w.Seats {
		if s.Session != nil {
			w.kill(s)
		}
	}
	for _, c := range w.all {
		c.Cancel()
	}
	w.down.Wait()
	w.Redis.Close()
}
