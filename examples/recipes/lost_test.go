package recipes_test

import (
	"context"
	"errors"
	"fmt"

	"relock/relocktest"
	"relock/rlock"
)

// load inserts rows for as long as the lock is held.
func load(ctx context.Context, m *rlock.Mutex, rows []string, insert func(context.Context, string) error) error {
	return m.Do(ctx, func(ctx context.Context) error {
		for _, row := range rows {
			if ctx.Err() != nil {
				return context.Cause(ctx) // rlock.ErrLost: another process may be inside
			}
			if err := insert(ctx, row); err != nil { // ctx ends the call as well
				return err
			}
		}
		return nil
	})
}

// A lock that is lost inside a section ends the section's context.
func Example_lostLock() {
	session, _, done := relocktest.Open()
	defer done()
	m := rlock.New(session, "import")

	inserted := 0
	err := load(context.Background(), m, []string{"a", "b", "c"}, func(ctx context.Context, row string) error {
		inserted++
		if row == "b" {
			_, _ = m.ForceUnlock(ctx) // an operator's, or a failover, or an eviction
			<-ctx.Done()
		}
		return nil
	})
	fmt.Println(inserted, errors.Is(err, rlock.ErrLost))
	// Output: 2 true
}
