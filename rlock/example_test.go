package rlock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"relock/relocktest"
	"relock/rlock"
)

// The usual way: one session a process, one Do a critical section.
func Example() {
	session, _, done := relocktest.Open()
	defer done()

	m := rlock.New(session, "stock:42")
	err := m.Do(context.Background(), func(ctx context.Context) error {
		fmt.Println("selling")
		return ctx.Err() // nil for as long as the lock is held
	})
	fmt.Println("error:", err)
	// Output:
	// selling
	// error: <nil>
}

// The URL of the deployment comes from the environment.
func ExampleDialURL() {
	ctx := context.Background()
	url := "redis://locks:se/cret@redis.example.com:6379" // a slash in a password is %2F
	session, err := rlock.DialURL(ctx, url, rlock.Config{})
	if errors.Is(err, rlock.ErrConfig) {
		fmt.Println("bad config; the password is in the error:", strings.Contains(err.Error(), "cret"))
		return
	}
	if err != nil {
		return // ErrUnavailable: try again
	}
	defer session.Close()
	// Output:
	// bad config; the password is in the error: false
}

// A nested Lock on the context of a critical section re-enters, through any function
// that the context is passed to.
func ExampleMutex_Lock() {
	session, _, done := relocktest.Open()
	defer done()
	m := rlock.New(session, "account:7")

	audit := func(ctx context.Context) {
		_, hold, err := m.Lock(ctx)
		if err != nil {
			fmt.Println(err)
			return
		}
		defer hold.Unlock()
		state, _ := m.State(ctx)
		fmt.Println("holds inside audit:", state.Owners[hold.Owner()])
	}

	section, hold, err := m.Lock(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	audit(section)
	fmt.Println("unlock:", hold.Unlock())
	fmt.Println("section:", context.Cause(section))
	// Output:
	// holds inside audit: 2
	// unlock: <nil>
	// section: rlock: lock released
}

// TryLock does not wait; Wait bounds the waiting.
func ExampleMutex_TryLock() {
	session, _, done := relocktest.Open()
	defer done()
	m := rlock.New(session, "report")
	ctx := context.Background()

	_, hold, _ := m.TryLock(ctx)
	_, _, err := m.TryLock(ctx)
	fmt.Println(errors.Is(err, rlock.ErrNotAcquired))
	_, _, err = m.Lock(ctx, rlock.Wait(10*time.Millisecond))
	fmt.Println(errors.Is(err, rlock.ErrNotAcquired))
	hold.Unlock()
	// Output:
	// true
	// true
}

// A lost lock ends the context of the critical section, with the cause ErrLost.
func Example_lostLock() {
	session, redis, done := relocktest.Open()
	defer done()
	m := rlock.New(session, "job")

	section, hold, err := m.Lock(context.Background(), rlock.Lease(200*time.Millisecond))
	if err != nil {
		fmt.Println(err)
		return
	}
	redis.Miniredis().Del("job") // an operator, an eviction, a failover
	<-section.Done()
	fmt.Println("section:", context.Cause(section))
	fmt.Println("unlock:", hold.Unlock())
	// Output:
	// section: rlock: lock lost
	// unlock: unlock "job": rlock: lock lost
}

// Two goroutines take two locks in opposite orders. One of them is told, and unlocks what it
// holds: so the other goes on.
func ExampleErrDeadlock() {
	session, _, done := relocktest.Open()
	defer done()
	a, b := rlock.New(session, "a"), rlock.New(session, "b")

	var both sync.WaitGroup
	both.Add(2)
	work := func(outer, inner *rlock.Mutex) error {
		return outer.Do(context.Background(), func(ctx context.Context) error {
			both.Done()
			both.Wait() // each holds one lock
			return inner.Do(ctx, func(context.Context) error { return nil })
		})
	}
	results := make(chan error)
	go func() { results <- work(a, b) }()
	go func() { results <- work(b, a) }()
	victim, other := <-results, <-results
	if victim == nil { // the two may end in any order
		victim, other = other, victim
	}
	fmt.Println("deadlock:", errors.Is(victim, rlock.ErrDeadlock))
	fmt.Println("the other:", other)
	// Output:
	// deadlock: true
	// the other: <nil>
}

// Close releases what is held and wakes waiters: the end of a service.
func ExampleSession_Close() {
	session, redis, done := relocktest.Open()
	defer done()
	section, _, _ := rlock.New(session, "leader").Lock(context.Background())
	fmt.Println("close:", session.Close())
	fmt.Println("section:", context.Cause(section))
	fmt.Println("still locked:", redis.Miniredis().Exists("leader"))
	_, _, err := rlock.New(session, "leader").Lock(context.Background())
	fmt.Println(err)
	// Output:
	// close: <nil>
	// section: rlock: session closed
	// still locked: false
	// lock "leader": rlock: session closed
}

// Locker is for code that knows only sync.Locker.
func ExampleMutex_Locker() {
	session, _, done := relocktest.Open()
	defer done()
	l := rlock.New(session, "legacy").Locker(context.Background())
	l.Lock()
	defer l.Unlock()
	fmt.Println("in")
	// Output: in
}

// State and ForceUnlock are for operators.
func ExampleMutex_ForceUnlock() {
	session, _, done := relocktest.Open()
	defer done()
	ctx := context.Background()
	m := rlock.New(session, "stuck")
	m.Lock(rlock.WithOwner(ctx, "who forgot to unlock"))
	state, _ := m.State(ctx)
	fmt.Println(state.Owners)
	ended, err := m.ForceUnlock(ctx)
	fmt.Println(ended, err)
	// Output:
	// map[who forgot to unlock:1]
	// true <nil>
}

// A worker that takes a lock for each of many short steps need not wait for its releases: each goes with the next
// Lock. The last one is on its way when the loop ends, and Close waits for it.
func ExampleHold_UnlockAsync() {
	session, _, done := relocktest.Open()
	defer done()
	m := rlock.New(session, "counter")

	steps := 0
	for range 3 {
		_, hold, err := m.Lock(context.Background())
		if err != nil {
			fmt.Println(err)
			return
		}
		steps++
		hold.UnlockAsync() // the section has ended
	}
	fmt.Println("steps:", steps)
	fmt.Println("close:", session.Close())
	// Output:
	// steps: 3
	// close: <nil>
}
