package rlock_test

import (
	"context"
	"errors"
	"fmt"

	"relock/relocktest"
	"relock/rlock"
)

// A fencing token lets the resource itself refuse a holder that was paused past its
// lease.
func ExampleFenced() {
	session, _, done := relocktest.Open()
	defer done()
	m := rlock.New(session, "file", rlock.Fenced())

	highest := int64(0) // kept by the resource
	write := func(token int64) error {
		if token < highest {
			return fmt.Errorf("stale writer: token %d after %d", token, highest)
		}
		highest = token
		return nil
	}

	ctx := context.Background()
	_, slow, _ := m.Lock(ctx)
	m.ForceUnlock(ctx) // as if slow had been paused past its lease
	_, next, _ := m.Lock(ctx)
	fmt.Println(write(next.Token()))
	fmt.Println(write(slow.Token()))
	next.Unlock()
	// Output:
	// <nil>
	// stale writer: token 1 after 2
}

// A named owner re-enters its lock from another process: here from another session.
func ExampleWithOwner() {
	session, redis, done := relocktest.Open()
	defer done()
	elsewhere, err := rlock.Dial(context.Background(), redis.Option(), rlock.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer elsewhere.Close()

	ctx := rlock.WithOwner(context.Background(), "request-81")
	_, here, _ := rlock.New(session, "order").Lock(ctx)
	_, there, err := rlock.New(elsewhere, "order").TryLock(ctx)
	fmt.Println("re-entered:", err == nil)
	there.Unlock()
	here.Unlock()
	// Output:
	// re-entered: true
}

// WithoutOwner lets goroutines that work for one owner exclude each other.
func ExampleWithoutOwner() {
	session, _, done := relocktest.Open()
	defer done()
	m := rlock.New(session, "row:7")
	ctx := rlock.WithOwner(context.Background(), "request-81")

	_, hold, _ := m.Lock(ctx)
	_, again, err := m.TryLock(ctx)
	fmt.Println("with the owner:", err)
	_, _, err = m.TryLock(rlock.WithoutOwner(ctx))
	fmt.Println("without it:", errors.Is(err, rlock.ErrNotAcquired))
	again.Unlock()
	hold.Unlock()
	// Output:
	// with the owner: <nil>
	// without it: true
}
