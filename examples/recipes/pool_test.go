package recipes_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"relock/relocktest"
	"relock/rlock"
	"relock/semaphore"
)

// work does jobs until there are none. However many processes do it, no more jobs run at a time
// than the semaphore's limit.
func work(ctx context.Context, limit *semaphore.Semaphore, jobs <-chan int, do func(ctx context.Context, job int) error) error {
	for job := range jobs {
		err := limit.Do(ctx, 1, func(ctx context.Context) error { return do(ctx, job) })
		if err != nil {
			return fmt.Errorf("job %d: %w", job, err)
		}
	}
	return nil
}

// printTwo takes two of the printers together. It checks the error first: without permits there is
// nothing to release.
func printTwo(ctx context.Context, printers *semaphore.Semaphore, print func(context.Context)) error {
	section, permits, err := printers.Acquire(ctx, 2)
	if err != nil {
		return err
	}
	defer permits.Release()
	print(section)
	return nil
}

// Two processes with eight workers each, of which three may work at a time.
func Example_workerPool() {
	session, redis, done := relocktest.Open()
	defer done()
	ctx := context.Background()
	other, err := rlock.Dial(ctx, redis.Option(), rlock.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer other.Close()

	jobs := make(chan int, 200)
	for i := range cap(jobs) {
		jobs <- i
	}
	close(jobs)
	var inside, tooMany, did atomic.Int32
	var wg sync.WaitGroup
	for _, process := range []*rlock.Session{session, other} {
		limit := semaphore.New(process, "exports", 3)
		for range 8 {
			wg.Go(func() {
				err := work(ctx, limit, jobs, func(context.Context, int) error {
					if inside.Add(1) > 3 {
						tooMany.Add(1)
					}
					time.Sleep(100 * time.Microsecond) // the work
					did.Add(1)
					inside.Add(-1)
					return nil
				})
				if err != nil {
					fmt.Println(err)
				}
			})
		}
	}
	wg.Wait()
	fmt.Println(did.Load(), "jobs;", tooMany.Load(), "of them beside three others")
	fmt.Println(printTwo(ctx, semaphore.New(session, "printers", 3), func(context.Context) {}))
	// Output:
	// 200 jobs; 0 of them beside three others
	// <nil>
}
