package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"relock/relocktest"
	"relock/rlock"
)

// oncePer runs job in one of the processes that call it in the same interval. The interval is
// longer than the job, and longer than the clocks of the processes differ.
func oncePer(ctx context.Context, interval time.Duration, m *rlock.Mutex, job func(context.Context) error) error {
	section, hold, err := m.TryLock(ctx, rlock.Lease(interval))
	switch {
	case errors.Is(err, rlock.ErrNotAcquired):
		return nil // another process runs it, or has run it
	case err != nil:
		return err
	}
	if err := job(section); err != nil {
		return errors.Join(err, hold.Unlock()) // the next process may try
	}
	return hold.Abandon() // the lock stays until the interval is over
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
