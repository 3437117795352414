package main

import (
	"context"
	"errors"
	"sync"

	"golang.org/x/sync/semaphore"

	"relock/internal/test/benchkit"
)

// inMemory is what a lock that passes within a process can reach at most: one in memory that can
// do what the others can. Its Lock ends with a context, waiters come in order, and its section has
// a context that ends with a cause.
var inMemory = benchkit.Kind{Name: "x/sync", Open: openInMemory}

var errReleased = errors.New("released")

func openInMemory(context.Context, benchkit.Env) (*benchkit.Handle, error) {
	var mu sync.Mutex
	locks := map[string]*semaphore.Weighted{}
	return &benchkit.Handle{
		Worker: func(_ context.Context, name string) (benchkit.Cycle, error) {
			mu.Lock()
			defer mu.Unlock()
			if locks[name] == nil {
				locks[name] = semaphore.NewWeighted(1)
			}
			return inMemoryCycle(locks[name]), nil
		},
		Close: func() {},
	}, nil
}

func inMemoryCycle(lock *semaphore.Weighted) benchkit.Cycle {
	return func(ctx context.Context, _ bool, inside func()) error {
		section, cancel := context.WithCancelCause(ctx)
		if err := lock.Acquire(section, 1); err != nil {
			cancel(err)
			return err
		}
		inside()
		cancel(errReleased)
		lock.Release(1)
		return nil
	}
}
