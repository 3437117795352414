package life_test

import (
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"relock/internal/life"
)

// Wait returns to each of its callers when the last goroutine has ended, also one that another goroutine began.
func TestWaitEndsWithTheLastGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g life.Group
		g.Wait() // for nothing
		first, second := make(chan struct{}), make(chan struct{})
		g.Go(func() {
			<-first
			g.Go(func() { <-second })
		})
		var over atomic.Int32
		for range 2 {
			go func() {
				g.Wait()
				over.Add(1)
			}()
		}
		for _, end := range []chan struct{}{first, second} {
			synctest.Wait()
			if n := over.Load(); n > 0 {
				t.Fatalf("%d waits are over while a goroutine runs", n)
			}
			close(end)
		}
		synctest.Wait()
		if n := over.Load(); n != 2 {
			t.Errorf("%d of 2 waits are over", n)
		}
		g.Wait()
	})
}

// Goroutines may begin while somebody waits and none runs: a sync.WaitGroup would panic now and then, and
// the race detector report each.
func TestTheFirstMayBeginBesideAWait(t *testing.T) {
	var g life.Group
	var ran atomic.Int32
	const rounds = 1000
	waited := make(chan struct{})
	go func() {
		defer close(waited)
		for ran.Load() < rounds {
			g.Wait()
			runtime.Gosched()
		}
	}()
	for range rounds {
		g.Go(func() { ran.Add(1) })
		runtime.Gosched()
	}
	<-waited
	g.Wait()
	if n := ran.Load(); n != rounds {
		t.Errorf("%d of %d goroutines have run when Wait returns", n, rounds)
	}
}

// A goroutine that ends itself counts no longer.
func TestGoexitIsAnEnd(t *testing.T) {
	var g life.Group
	g.Go(runtime.Goexit)
	g.Wait()
}

// A group is idle at 0, and a channel of it stays closed whatever is counted later.
func TestGroupCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g life.Group
		if !over(g.Idle()) {
			t.Error("an empty group is not idle")
		}
		g.Add(2)
		first, second := g.Idle(), g.Idle()
		if g.Add(-1); over(first) || g.Count() != 1 {
			t.Error("it is idle at 1")
		}
		g.Add(-1)
		g.Add(1)
		if !over(first) || !over(second) || over(g.Idle()) {
			t.Error("it was not idle at 0, or is at 1")
		}
	})
}
