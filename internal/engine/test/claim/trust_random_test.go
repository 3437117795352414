package claim_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"relock/fairlock"
	"relock/internal/test/faulttest"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// Callers of several sessions lock, nest, extend and unlock one name at random, some under one owner, with leases of their own or
// renewed ones, while replies and commands are lost, late or sent twice. Nobody trusts the lock for longer than Redis keeps
// it. RELOCK_SEED plays one run again, RELOCK_STRESS makes so many, 10,000 at most.
func TestRandomHoldsAreTrustedNoLongerThanRedisKeepsThem(t *testing.T) {
	first, runs := number(t, "RELOCK_SEED", 1), min(number(t, "RELOCK_STRESS", 12), 10_000)
	if os.Getenv("RELOCK_SEED") != "" {
		runs = 1
	}
	for seed := first; seed < first+runs; seed++ {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { runTrusts(t, uint64(seed)) })
		})
	}
}

// number returns what an environment variable says; n if it is not set.
func number(t *testing.T, name string, n int) int {
	t.Helper()
	if v := os.Getenv(name); v != "" {
		var err error
		if n, err = strconv.Atoi(v); err != nil {
			t.Fatalf("%s=%q is no number", name, v)
		}
	}
	return n
}

// A trustRun is one run. All of it goes on at once.
type trustRun struct {
	s     *redistest.Server
	began time.Time
	stop  time.Time // of new calls and faults
	got   atomic.Int64
	bad   atomic.Bool
	mu    sync.Mutex
	story []string
}

func (w *trustRun) tell(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.story = append(w.story, fmt.Sprintf("%10.3f ", time.Since(w.began).Seconds())+fmt.Sprintf(format, args...))
}

func runTrusts(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 7))
	w := &trustRun{s: redistest.BubbleMini(t), began: time.Now()}
	w.stop = w.began.Add(time.Duration(20+rng.IntN(60)) * time.Second)
	fair, faults := rng.IntN(3) == 0, rng.IntN(4) > 0
	lease := []time.Duration{2 * time.Second, 20 * time.Second}[rng.IntN(2)]
	watchdog := []time.Duration{lease, 30 * time.Second}[rng.IntN(2)] // of Redisson
	w.tell("fair: %v, lease: %v, faults: %v, Redisson's watchdog: %v", fair, lease, faults, watchdog)
	var sessions []*rlock.Session
	var callers, late sync.WaitGroup
	for i := range 2 + rng.IntN(2) {
		ses, p := locktest.DialProxy(t, w.s, rlock.Config{Lease: lease, RedissonWatchdog: watchdog})
		sessions = append(sessions, ses)
		for j := range 1 + rng.IntN(3) {
			var m locktest.Mutex = rlock.New(ses, "x")
			if fair {
				m = fairlock.New(ses, "x")
			}
			c := &trustCaller{trustRun: w, m: m, rng: rand.New(rand.NewPCG(seed, uint64(100*i+j+1)))}
			callers.Go(func() {
				for n := 0; time.Now().Before(w.stop) && !w.bad.Load(); n++ {
					c.who = fmt.Sprintf("session %d, caller %d, call %d", i, j, n)
					c.call()
				}
			})
		}
		if faults {
			of := rand.New(rand.NewPCG(seed, uint64(1000+i)))
			callers.Go(func() { w.disturb(of, p, &late) })
		}
	}
	callers.Wait()
	late.Wait()
	time.Sleep(time.Minute)
	for i, ses := range sessions {
		if held, asking, _, _, _ := locktest.Books(ses); held+asking > 0 {
			w.bad.Store(true)
			w.tell("session %d counts %d claims that hold and %d that ask, and nobody is there", i, held, asking)
		}
	}
	if w.bad.Load() || w.got.Load() == 0 {
		t.Errorf("%d times somebody was in\n%s", w.got.Load(), strings.Join(w.story, "\n"))
	}
}

// disturb loses and delays what a session sends and hears.
func (w *trustRun) disturb(rng *rand.Rand, p *faulttest.Proxy, late *sync.WaitGroup) {
	for time.Now().Before(w.stop) && !w.bad.Load() {
		time.Sleep(upTo(rng, 3000))
		var n atomic.Int32
		skip, d := rng.Int32N(4), upTo(rng, 6000)
		scripts := func(cmd []string) bool { return strings.HasPrefix(cmd[0], "EVAL") && n.Add(1) > skip }
		switch rng.IntN(8) {
		case 0, 1:
			p.DropReply(scripts)
		case 2:
			p.DropRequest(scripts)
		case 3:
			p.DelayReply(d, scripts)
		case 4, 5:
			_, release := p.HoldRequest(scripts)
			late.Go(func() { time.Sleep(d); release() })
		case 6:
			p.BlackHole(true)
			time.Sleep(d)
			p.BlackHole(false)
		case 7:
			p.Cut()
		}
	}
}

// upTo is from 1 ms to so many.
func upTo(rng *rand.Rand, ms int) time.Duration {
	return time.Duration(1+rng.IntN(ms)) * time.Millisecond
}
