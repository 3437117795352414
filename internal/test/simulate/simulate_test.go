package simulate

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"relock/internal/test/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// env returns a number from the environment.
func env(t *testing.T, name string, otherwise int) int {
	text := os.Getenv("RELOCK_SIMULATE_" + name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		t.Fatalf("RELOCK_SIMULATE_%s is %q; it must be a number", name, text)
	}
	return n
}

// Sessions take locks of one kind, or of all, in made-up time, while the network, processes and Redis fail: what must
// hold stands at ledger. The environment says how many seeds, from which on, of how many sessions and minutes.
func TestSimulation(t *testing.T) {
	seeds, first := env(t, "SEEDS", seedsHere()), env(t, "SEED", 1)
	sessions, minutes := env(t, "SESSIONS", 20), env(t, "MINUTES", 1)
	cores := make(chan struct{}, runtime.NumCPU())
	for i := range seeds {
		seed := uint64(first + i)
		kind := kinds[seed%uint64(len(kinds))]
		if text := os.Getenv("RELOCK_SIMULATE_KIND"); text != "" {
			kind = text
		}
		t.Run(fmt.Sprintf("%d-%s", seed, kind), func(t *testing.T) {
			t.Parallel()
			cores <- struct{}{}
			defer func() { <-cores }()
			began := time.Now()
			synctest.Test(t, func(t *testing.T) { simulate(t, seed, kind, sessions, time.Duration(minutes)*time.Minute) })
			if t.Failed() {
				t.Logf("replay it by: make simulate SEED=%d SEEDS=1 SESSIONS=%d MINUTES=%d KIND=%s", seed, sessions, minutes, kind)
			}
			t.Logf("%v", time.Since(began).Round(time.Millisecond))
		})
	}
}

// simulate runs one seed.
func simulate(t *testing.T, seed uint64, kind string, sessions int, length time.Duration) {
	w := newWorld(t, seed, kind, sessions, length)
	for range sessions {
		w.begin()
	}
	w.harm(length)
	w.finish()
	for _, f := range w.ledger.faults {
		t.Error(f)
	}
	t.Logf("seed %d, %s: lease %v, %d processes, %d sections, %d commands, longest wait %v", seed, kind, w.cfg.Lease, len(w.all),
		w.ledger.entered, w.mini.CommandCount(), w.ledger.longest.Round(time.Millisecond))
}

// seedsHere is how many seeds a plain run of the tests has: less than a minute of one core, also with the race detector.
func seedsHere() int {
	switch {
	case redistest.Race:
		return 4
	case testing.Short():
		return 5
	}
	return 25
}
