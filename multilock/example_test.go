package multilock_test

import (
	"context"
	"errors"
	"fmt"

	"relock/multilock"
	"relock/relocktest"
	"relock/rlock"
	"relock/rwlock"
	"relock/semaphore"
)

// Two accounts are locked together. A transfer in the other direction, at the same time, names
// them in the other order, and there is no deadlock.
func Example() {
	session, _, done := relocktest.Open()
	defer done()
	ctx := context.Background()

	balance := map[string]int{"ada": 100, "grace": 100}
	transfer := func(from, to string, amount int) error {
		both := multilock.New(rlock.New(session, "account:"+from), rlock.New(session, "account:"+to))
		return both.Do(ctx, func(context.Context) error {
			balance[from] -= amount
			balance[to] += amount
			return nil
		})
	}
	results := make(chan error)
	go func() { results <- transfer("ada", "grace", 30) }()
	go func() { results <- transfer("grace", "ada", 10) }()
	fmt.Println(<-results, <-results)
	fmt.Println(balance["ada"], balance["grace"])
	// Output:
	// <nil> <nil>
	// 80 120
}

// Locks of different kinds: a writer of one table, a reader of another, and a place at the
// printers.
func ExampleNew() {
	session, _, done := relocktest.Open()
	defer done()
	ctx := context.Background()

	orders, prices := rwlock.New(session, "orders"), rwlock.New(session, "prices")
	printers := semaphore.New(session, "printers", 3)
	m := multilock.New(orders, multilock.Read(prices), multilock.Permits(printers, 1))

	ctx, hold, err := m.Lock(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer hold.Unlock()
	fmt.Println(orders.Do(ctx, func(context.Context) error { return nil })) // the owner re-enters
	fmt.Println(printers.Available(ctx))
	// Output:
	// <nil>
	// 2 <nil>
}

// TryLock takes all or none.
func ExampleMutex_TryLock() {
	session, _, done := relocktest.Open()
	defer done()
	ctx := context.Background()

	a, b := rlock.New(session, "a"), rlock.New(session, "b")
	_, held, _ := b.Lock(ctx)
	defer held.Unlock()

	_, _, err := multilock.New(a, b).TryLock(ctx)
	fmt.Println(errors.Is(err, rlock.ErrNotAcquired))
	st, _ := a.State(ctx)
	fmt.Println("owners of a:", len(st.Owners))
	// Output:
	// true
	// owners of a: 0
}
