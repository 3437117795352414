package recipes_test

import (
	"context"
	"fmt"
	"sync"

	"relock/multilock"
	"relock/relocktest"
	"relock/rlock"
)

// transfer holds both accounts. Another transfer may name the same two the other way round, at
// the same time, and neither waits for the other for ever.
func transfer(ctx context.Context, session *rlock.Session, from, to string, move func()) error {
	both := multilock.New(rlock.New(session, "account:"+from), rlock.New(session, "account:"+to))
	return both.Do(ctx, func(context.Context) error { move(); return nil })
}

// Several locks, all or none.
func Example_severalLocks() {
	session, _, done := relocktest.Open()
	defer done()
	ctx := context.Background()

	ada, grace := 100, 100
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() { _ = transfer(ctx, session, "ada", "grace", func() { ada--; grace++ }) })
		wg.Go(func() { _ = transfer(ctx, session, "grace", "ada", func() { ada += 2; grace -= 2 }) })
	}
	wg.Wait()
	fmt.Println(ada, grace)
	// Output: 120 80
}
