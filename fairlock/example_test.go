package fairlock_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"relock/fairlock"
	"relock/relocktest"
	"relock/rlock"
)

// waitFor returns when n callers stand in the queue.
func waitFor(m *fairlock.Mutex, n int) {
	for got := -1; got != n; time.Sleep(time.Millisecond) {
		got, _ = m.Waiters(context.Background())
	}
}

// Waiters are served in the order of arrival, whatever process they are in.
func Example() {
	session, _, done := relocktest.Open()
	defer done()
	ctx := context.Background()
	m := fairlock.New(session, "ticket desk")

	_, hold, err := m.Lock(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	served := make(chan struct{})
	for i, who := range []string{"Ada", "Grace", "Barbara"} {
		go func() {
			_ = m.Do(ctx, func(context.Context) error {
				fmt.Println(who)
				served <- struct{}{}
				return nil
			})
		}()
		waitFor(m, i+1)
	}
	hold.Unlock()
	for range 3 {
		<-served
	}
	// Output:
	// Ada
	// Grace
	// Barbara
}

// Waiters tells how long the queue is. A waiter that gives up has left it.
func ExampleMutex_Waiters() {
	session, _, done := relocktest.Open()
	defer done()
	ctx := context.Background()
	m := fairlock.New(session, "report")
	_, hold, _ := m.Lock(ctx)
	defer hold.Unlock()

	waiting, giveUp := context.WithCancel(ctx)
	left := make(chan error)
	go func() {
		_, _, err := m.Lock(waiting)
		left <- err
	}()
	waitFor(m, 1)
	n, err := m.Waiters(ctx)
	fmt.Println(n, err)
	giveUp()
	fmt.Println(errors.Is(<-left, rlock.ErrNotAcquired))
	n, err = m.Waiters(ctx)
	fmt.Println(n, err)
	// Output:
	// 1 <nil>
	// true
	// 0 <nil>
}

// TryLock does not wait, and does not overtake those who do.
func ExampleMutex_TryLock() {
	session, _, done := relocktest.Open()
	defer done()
	ctx := context.Background()
	m := fairlock.New(session, "printer")
	_, hold, err := m.TryLock(ctx)
	fmt.Println(err)
	_, _, err = m.TryLock(ctx)
	fmt.Println(errors.Is(err, rlock.ErrNotAcquired))
	hold.Unlock()
	// Output:
	// <nil>
	// true
}

// ForceUnlock is for operators: it ends the hold, and the first waiter gets the lock.
func ExampleMutex_ForceUnlock() {
	session, _, done := relocktest.Open()
	defer done()
	ctx := context.Background()
	m := fairlock.New(session, "stuck")
	section, _, _ := m.Lock(ctx)

	next := make(chan error)
	go func() { next <- m.Do(ctx, func(context.Context) error { return nil }) }()
	waitFor(m, 1)
	fmt.Println(m.ForceUnlock(ctx))
	<-section.Done()
	fmt.Println("holder:", context.Cause(section))
	fmt.Println("waiter:", <-next)
	// Output:
	// true <nil>
	// holder: rlock: lock lost
	// waiter: <nil>
}

// With rlock.Fenced every acquisition draws a token, also one that was handed over.
func ExampleNew_fenced() {
	session, _, done := relocktest.Open()
	defer done()
	ctx := context.Background()
	m := fairlock.New(session, "file", rlock.Fenced())
	_, first, _ := m.Lock(ctx)

	next := make(chan int64)
	go func() {
		_, h, err := m.Lock(ctx)
		if err != nil {
			fmt.Println(err)
		}
		defer h.Unlock()
		next <- h.Token()
	}()
	waitFor(m, 1)
	fmt.Println(first.Token())
	first.Unlock()
	fmt.Println(<-next)
	// Output:
	// 1
	// 2
}
