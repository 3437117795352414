package semaphore_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"relock/relocktest"
	"relock/rlock"
	"relock/semaphore"
)

// The usual way: one semaphore for what must be bounded in all processes together, one Do
// a use of it.
func Example() {
	session, _, done := relocktest.Open()
	defer done()

	downloads := semaphore.New(session, "downloads", 10)
	err := downloads.Do(context.Background(), 1, func(ctx context.Context) error {
		free, _ := downloads.Available(ctx)
		fmt.Println("downloading;", free, "more may")
		return ctx.Err() // nil for as long as the permit is held
	})
	fmt.Println("error:", err)
	// Output:
	// downloading; 9 more may
	// error: <nil>
}

// Acquire takes several permits at once, or waits until it can. What the section's
// context ends with tells why it ended.
func ExampleSemaphore_Acquire() {
	session, _, done := relocktest.Open()
	defer done()
	workers := semaphore.New(session, "workers", 4)

	section, permits, err := workers.Acquire(context.Background(), 3)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("held:", permits.N())
	fmt.Println("release:", permits.Release())
	fmt.Println("section:", context.Cause(section))

	_, _, err = workers.Acquire(context.Background(), 5)
	fmt.Println(errors.Is(err, semaphore.ErrLimit))
	// Output:
	// held: 3
	// release: <nil>
	// section: rlock: lock released
	// true
}

// TryAcquire does not wait; Wait bounds the waiting.
func ExampleSemaphore_TryAcquire() {
	session, _, done := relocktest.Open()
	defer done()
	m := semaphore.New(session, "exports", 2)
	ctx := context.Background()

	_, permits, _ := m.TryAcquire(ctx, 2)
	_, _, err := m.TryAcquire(ctx, 1)
	fmt.Println(errors.Is(err, rlock.ErrNotAcquired))
	_, _, err = m.Acquire(ctx, 1, rlock.Wait(10*time.Millisecond))
	fmt.Println(errors.Is(err, rlock.ErrNotAcquired))
	permits.Release()
	// Output:
	// true
	// true
}

// The first use sets the limit, and SetLimit changes it for all processes. Permits that are
// held stay held.
func ExampleSemaphore_SetLimit() {
	session, _, done := relocktest.Open()
	defer done()
	ctx := context.Background()
	m := semaphore.New(session, "mails", 5)

	_, permits, _ := m.Acquire(ctx, 4)
	m.SetLimit(ctx, 2)
	free, _ := m.Available(ctx)
	fmt.Println("free:", free)
	permits.Release()
	free, _ = m.Available(ctx)
	fmt.Println("free:", free)
	// Output:
	// free: 0
	// free: 2
}

// Permits with a fixed lease end by themselves, unless they are extended. Releasing them
// afterwards says so, and changes nothing.
func ExamplePermits_Release() {
	session, _, done := relocktest.Open()
	defer done()
	m := semaphore.New(session, "slots", 1)
	ctx := context.Background()

	section, permits, err := m.Acquire(ctx, 1, rlock.Lease(20*time.Millisecond))
	if err != nil {
		fmt.Println(err)
		return
	}
	<-section.Done()
	fmt.Println(context.Cause(section))
	fmt.Println(errors.Is(permits.Release(), rlock.ErrLost))
	fmt.Println(errors.Is(permits.Release(), rlock.ErrNotHeld))
	// Output:
	// rlock: lock lost
	// true
	// true
}

// A counter is for what one process takes and another gives back: here the room in a queue.
func ExampleCounter() {
	session, _, done := relocktest.Open()
	defer done()
	ctx := context.Background()
	room := semaphore.NewCounter(session, "queue:room")

	made, _ := room.TrySet(ctx, 2) // the first process makes it
	fmt.Println("made:", made)
	fmt.Println("producer:", room.Acquire(ctx, 2))
	fmt.Println("full:", errors.Is(room.TryAcquire(ctx, 1), rlock.ErrNotAcquired))
	fmt.Println("consumer:", room.Release(ctx, 1))
	free, _ := room.Available(ctx)
	fmt.Println("free:", free)
	// Output:
	// made: true
	// producer: <nil>
	// full: true
	// consumer: <nil>
	// free: 1
}

// Add changes a counter by any number, also below 0; Drain takes all that it has.
func ExampleCounter_Drain() {
	session, _, done := relocktest.Open()
	defer done()
	ctx := context.Background()
	tokens := semaphore.NewCounter(session, "tokens")

	tokens.Add(ctx, 100)
	tokens.Add(ctx, -30)
	had, err := tokens.Drain(ctx)
	fmt.Println(had, err)
	left, _ := tokens.Available(ctx)
	fmt.Println(left)
	// Output:
	// 70 <nil>
	// 0
}
