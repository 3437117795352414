// This file is about the semaphore.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"relock/examples/internal/demo"
	"relock/rlock"
	"relock/semaphore"
)

const (
	permits = 3
	workers = 9
	jobFor  = 50 * time.Millisecond
)

// limited is what workers did that a semaphore lets in.
type limited struct {
	lanes    []lane
	together int // inside at once, at the most
}

func (l limited) check() error {
	if l.together != permits {
		return fmt.Errorf("%d were inside at once, want %d", l.together, permits)
	}
	return nil
}

// showLimit has more workers do their jobs than there are permits.
func showLimit(ctx context.Context, redis *demo.Redis) (res limited, err error) {
	sessions, closeAll, err := openServices(ctx, redis, services, rlock.Config{})
	if err != nil {
		return res, err
	}
	defer func() {
		err = errors.Join(err, closeAll(), remove(context.WithoutCancel(ctx), redis, "printers"))
	}()
	start := time.Now()
	var inside, most atomic.Int32
	res.lanes = make([]lane, workers)
	errs := make([]error, workers)
	var wg sync.WaitGroup
	for i := range workers {
		l := &res.lanes[i]
		l.name = fmt.Sprint("worker ", i+1)
		wg.Go(func() {
			for range 2 {
				asked := time.Since(start)
				e := semaphore.New(sessions[i%services], "printers", permits).Do(ctx, 1, func(ctx context.Context) error {
					raise(&most, inside.Add(1))
					defer inside.Add(-1)
					defer l.stay(start, asked, '#')()
					return pause(ctx, jobFor)
				})
				errs[i] = errors.Join(errs[i], e)
			}
		})
	}
	wg.Wait()
	res.together = int(most.Load())
	return res, errors.Join(errs...)
}

// crashed is what happens when a process dies that holds permits; times since it asked for them.
type crashed struct {
	lease   time.Duration // of the process
	died    time.Duration
	free    int           // permits left meanwhile
	entered time.Duration // a caller that wants all permits had them
}

func (c crashed) check() error {
	if c.free != 1 || c.entered < c.lease || c.entered > c.died+5*c.lease {
		return fmt.Errorf("died at %v with %d permits free, all were back at %v", c.died, c.free, c.entered)
	}
	return nil
}

// showCrash lets a service vanish that holds two of three permits.
func showCrash(ctx context.Context, redis *demo.Redis, lease time.Duration) (res crashed, err error) {
	res.lease = lease
	defer func() { err = errors.Join(err, remove(context.WithoutCancel(ctx), redis, "licences")) }()
	wire := new(demo.Wire)
	doomed, err := rlock.Dial(ctx, wire.Through(redis.Option), rlock.Config{Prefix: redis.Prefix, Lease: lease,
		Logger: slog.New(slog.DiscardHandler)}) // it would warn of what is shown here
	if err != nil {
		return res, err
	}
	// Nothing of it comes through any more; here at the end it only goes home.
	defer func() { wire.Mend(); err = errors.Join(err, doomed.Close()) }()
	sessions, closeAll, err := openServices(ctx, redis, 1, rlock.Config{Lease: lease})
	if err != nil {
		return res, err
	}
	defer func() { err = errors.Join(err, closeAll()) }()

	start := time.Now()
	if _, _, err = semaphore.New(doomed, "licences", permits).Acquire(ctx, 2); err != nil {
		return res, err
	}
	if err = pause(ctx, lease/4); err != nil {
		return res, err
	}
	wire.Cut()
	res.died = time.Since(start)
	next := semaphore.New(sessions[0], "licences", permits)
	if res.free, err = next.Available(ctx); err != nil {
		return res, err
	}
	_, all, err := next.Acquire(ctx, permits)
	if err != nil {
		return res, err
	}
	res.entered = time.Since(start)
	return res, all.Release()
}
