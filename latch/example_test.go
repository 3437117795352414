package latch_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"relock/latch"
	"relock/relocktest"
	"relock/rlock"
)

// Workers, of any process, load their data; the report waits for all of them.
func Example() {
	session, _, done := relocktest.Open()
	defer done()
	ctx := context.Background()
	loaded := latch.New(session, "loaded")
	fmt.Println(loaded.TrySet(ctx, 3)) // whichever process comes first

	results := make(chan error, 3)
	for range 3 {
		go func() { results <- loaded.CountDown(ctx) }()
	}
	fmt.Println("all loaded:", loaded.Await(ctx))
	fmt.Println(<-results, <-results, <-results)
	// Output:
	// true <nil>
	// all loaded: <nil>
	// <nil> <nil> <nil>
}

// A process that should have counted down may have died: bound the wait.
func ExampleLatch_Await() {
	session, _, done := relocktest.Open()
	defer done()
	ctx := context.Background()
	l := latch.New(session, "ready")
	_, _ = l.TrySet(ctx, 1)
	err := l.Await(ctx, rlock.Wait(20*time.Millisecond))
	fmt.Println(errors.Is(err, rlock.ErrNotAcquired))
	fmt.Println(l.Count(ctx))
	// Output:
	// true
	// 1 <nil>
}
