package claim_test

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/internal/waiting"
	"relock/rlock"
)

// An idle waiter costs less than one command a second (R15).
func TestIdleWaiterIsQuiet(t *testing.T) {
	redistest.EachBubble(t, idleWaiterIsQuiet)
}

func idleWaiterIsQuiet(t *testing.T, s *redistest.Server) {
	holder := dial(t, s, rlock.Config{})
	ses, p := locktest.DialProxy(t, s, rlock.Config{PollFloor: 250 * time.Millisecond})
	ctx := within(t, 20*time.Second)
	_, h, err := rlock.New(holder, "x").Lock(ctx)
	must(t, err)
	p.Reset()
	_, _, err = rlock.New(ses, "x").Lock(ctx, rlock.Wait(2500*time.Millisecond))
	if !errors.Is(err, rlock.ErrNotAcquired) {
		t.Error(err)
	}
	// Ten floors, each up to a tenth shorter, after try, subscribe, try.
	if got := p.Count(); got > 3+12 {
		t.Errorf("waiting for ten poll floors sent %d commands: %q", got, p.Log())
	}
	must(t, h.Unlock())
}

// No goroutine and no timer for a held lock: ten thousand add none, and they are
// renewed by few scripts.
func TestHeldLocksNeedNoGoroutine(t *testing.T) {
	redistest.SkipShort(t)
	s := redistest.Real(t)
	lease := 6 * time.Second
	if redistest.Race { // with which a busy machine takes longer than that for all of them
		lease = 30 * time.Second
	}
	before := runtime.NumGoroutine() // tests that wait for their turn have one each
	ses, p := locktest.DialProxy(t, s, rlock.Config{Lease: lease, ReleaseTimeout: time.Minute})
	ctx := within(t, 5*time.Minute)
	const n = 10_000
	base := runtime.NumGoroutine()
	if base-before > 40 {
		t.Errorf("%d goroutines for an idle session and its proxy", base-before)
	}
	holds := make([]*rlock.Hold, n)
	for i := range holds {
		_, h, err := rlock.New(ses, fmt.Sprint("held-", i)).Lock(ctx)
		must(t, err)
		holds[i] = h
	}
	redistest.Eventually(t, 5*time.Second, "no goroutine more than before", func() bool {
		return runtime.NumGoroutine() <= base+2 // a renewal may be under way
	})
	p.Reset()
	renewals := func() (scripts, locks int) {
		for _, cmd := range p.Log() {
			if f := strings.SplitN(cmd, " ", 4); f[0] == "EVALSHA" {
				var k int
				fmt.Sscan(f[2], &k)
				scripts, locks = scripts+1, locks+k
			}
		}
		return
	}
	redistest.Eventually(t, lease+20*time.Second, "every lock to be renewed once", func() bool {
		_, locks := renewals()
		return locks >= n
	})
	scripts, locks := renewals()
	if scripts > locks/100 {
		t.Errorf("%d scripts renewed %d locks, want at least 100 with each", scripts, locks)
	}
	t.Logf("%d scripts renewed %d locks", scripts, locks)
	for _, h := range holds {
		must(t, h.Unlock())
	}
	locktest.NothingLeft(t, s, ses)
}

// Ten thousand waiters on ten thousand names share one subscriber connection, and no
// channel is left afterwards (R14).
func TestManyWaitersShareOneConnection(t *testing.T) {
	redistest.SkipShort(t)
	s := redistest.Real(t)
	// Ten thousand releases at once are confirmed when a busy machine gets to it.
	holder := dial(t, s, rlock.Config{ReleaseTimeout: 2 * time.Minute})
	ses := dial(t, s, rlock.Config{PollFloor: time.Minute, ReleaseTimeout: 2 * time.Minute})
	ctx, stalls := within(t, 120*time.Second), locktest.WatchStalls(t)
	const n = 10_000
	name := func(i int) string { return fmt.Sprint("n", i) }
	holds := make([]*rlock.Hold, n)
	for i := range holds {
		_, h, err := rlock.New(holder, name(i)).Lock(ctx)
		must(t, err)
		holds[i] = h
	}
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			_, h, err := rlock.New(ses, name(i)).Lock(ctx)
			if err != nil {
				t.Error(err)
				return
			}
			// What a message gives is lost if the machine stands still for as long as Redis keeps it.
			if err := h.Unlock(); err != nil && !stalls.Excuse(err, waiting.GrantLease) {
				t.Error(err)
			}
		})
	}
	redistest.Eventually(t, 60*time.Second, "everybody to listen", func() bool { return len(s.Channels(t)) == n+2 })
	clients, err := s.Do(t, "CLIENT", "LIST", "TYPE", "pubsub").ToString()
	must(t, err)
	if got := strings.Count(clients, "\n"); got != 2 {
		t.Errorf("%d subscriber connections for two sessions", got)
	}
	for _, h := range holds {
		must(t, h.Unlock())
	}
	wg.Wait()
	locktest.NothingLeft(t, s, holder, ses)
}
