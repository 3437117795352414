package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"relock/relocktest"
	"relock/rlock"
)

// oncePer runs job in one of the processes that call it in the same interval, which exceeds how far their clocks are
// apart.
func oncePer(ctx context.Context, interval time.Duration, m *rlock.Mutex, job func(context.Context) error) error {
	err := m.Do(ctx, job, rlock.Wait(0), rlock.AtLeast(interval))
	if errors.Is(err, rlock.ErrNotAcquired) {
		return nil // another process runs it, or has run it
	}
	return err
}

// A job that cron starts on each of three replicas.
func Example_cron() {
	session, _, done := relocktest.Open()
	defer done()
	newsletter := rlock.New(session, "newsletter")

	for replica := range 3 {
		err := oncePer(context.Background(), 55*time.Second, newsletter, func(context.Context) error {
			fmt.Println("replica", replica, "sends it")
			return nil
		})
		if err != nil {
			fmt.Println(err)
		}
	}
	// Output: replica 0 sends it
}
