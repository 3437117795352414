package rlock_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"relock/relocktest"
	"relock/rlock"
)

// Abandon leaves the lock standing until its lease is over: a job that runs once a minute,
// however many processes try.
func ExampleHold_Abandon() {
	session, _, done := relocktest.Open()
	defer done()
	m := rlock.New(session, "newsletter")

	for range 2 {
		_, hold, err := m.TryLock(context.Background(), rlock.Lease(time.Minute))
		if errors.Is(err, rlock.ErrNotAcquired) {
			fmt.Println("it has run")
			continue
		}
		fmt.Println("running")
		fmt.Println("abandon:", hold.Abandon())
	}
	// Output:
	// running
	// abandon: <nil>
	// it has run
}

// Two replicas start the same job at about the same time; one of them runs it, however short it is.
func ExampleAtLeast() {
	session, _, done := relocktest.Open()
	defer done()
	job := func(replica string) func(context.Context) error {
		return func(context.Context) error { fmt.Println(replica, "runs it"); return nil }
	}
	m, ctx := rlock.New(session, "nightly"), context.Background()
	fmt.Println(m.Do(ctx, job("a"), rlock.Wait(0), rlock.AtLeast(time.Minute)))
	err := m.Do(ctx, job("b"), rlock.Wait(0), rlock.AtLeast(time.Minute))
	fmt.Println(errors.Is(err, rlock.ErrNotAcquired))
	// Output:
	// a runs it
	// <nil>
	// true
}

// A service routes the requests for an account to one process, which keeps the account's lock: of a hundred requests the
// first one asks Redis.
func ExampleKeep() {
	session, _, done := relocktest.Open()
	defer done()
	account, ctx := rlock.New(session, "account:7", rlock.Keep(10*time.Second)), context.Background()
	for range 100 {
		err := account.Do(ctx, func(context.Context) error { return nil }) // serve the request
		if err != nil {
			fmt.Println(err)
		}
	}
	state, _ := rlock.New(session, "account:7").State(ctx)
	fmt.Println(len(state.Owners), "owner, although nobody is inside")
	// Output: 1 owner, although nobody is inside
}

// Extend moves the end of a fixed lease, for work that knows how long it takes.
func ExampleHold_Extend() {
	session, _, done := relocktest.Open()
	defer done()
	ctx := context.Background()
	_, hold, _ := rlock.New(session, "batch").Lock(ctx, rlock.Lease(time.Second))
	fmt.Println(hold.Extend(ctx, time.Minute), hold.Remaining() > 50*time.Second)
	hold.Unlock()
	// Output: <nil> true
}
