// This file is about the fair lock.
package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"relock/examples/internal/demo"
	"relock/fairlock"
	"relock/locktrace"
	"relock/rlock"
)

const (
	services  = 3
	customers = 12
)

// serviceOrder says in which order customers, numbered as they came, were served.
type serviceOrder struct{ fair, plain []int }

// check returns what must not have happened.
func (o serviceOrder) check() error {
	if n := overtaken(o.fair); n != 0 || len(o.fair) != customers {
		return fmt.Errorf("the fair lock served %v", o.fair)
	}
	return nil
}

// overtaken counts the customers that came before another one and were served after it.
func overtaken(served []int) (n int) {
	for i, c := range served {
		for _, later := range served[:i] {
			if later > c {
				n++
				break
			}
		}
	}
	return n
}

// showFair has the same customers served under a fair lock and under a plain one.
func showFair(ctx context.Context, redis *demo.Redis) (o serviceOrder, err error) {
	o.fair, err = serve(ctx, redis, func(s *rlock.Session) *rlock.Mutex { return fairlock.New(s, "fair").Mutex }, queued)
	if err != nil {
		return o, err
	}
	o.plain, err = serve(ctx, redis, func(s *rlock.Session) *rlock.Mutex { return rlock.New(s, "plain") }, nil)
	return o, err
}

// queued returns when so many customers stand in the fair lock's queue: what Waiters counts has
// its position there.
func queued(ctx context.Context, s *rlock.Session, customers int) error {
	for {
		n, err := fairlock.New(s, "fair").Waiters(ctx)
		if err != nil || n >= customers {
			return err
		}
		if err := pause(ctx, time.Millisecond); err != nil {
			return err
		}
	}
}

// serve lets customers queue up one by one, each at another service than the one before,
// while the shop is still closed, and returns the order in which they are served. The next
// customer comes when inLine says that those before wait, or, without it, when they have begun
// to wait.
func serve(ctx context.Context, redis *demo.Redis, lock func(*rlock.Session) *rlock.Mutex,
	inLine func(context.Context, *rlock.Session, int) error) (served []int, err error) {
	came := make(chan struct{}, customers)
	sessions, closeAll, err := openServices(ctx, redis, services, rlock.Config{
		Trace: &rlock.Trace{Waiting: func(context.Context, locktrace.Waiting) { came <- struct{}{} }},
	})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, closeAll()) }()
	_, shop, err := lock(sessions[0]).Lock(ctx)
	if err != nil {
		return nil, err
	}

	var wg sync.WaitGroup
	var failed, early error
	for i := range customers {
		wg.Go(func() {
			e := lock(sessions[i%services]).Do(ctx, func(ctx context.Context) error {
				served = append(served, i+1) // the lock guards it
				return pause(ctx, 3*time.Millisecond)
			})
			if e != nil {
				failed = e // any one will do
			}
		})
		select {
		case <-came:
		case <-ctx.Done():
		}
		if inLine != nil {
			early = errors.Join(early, inLine(ctx, sessions[0], i+1))
		}
	}
	err = shop.Unlock()
	wg.Wait()
	return served, errors.Join(err, failed, early)
}

// pause is the work that is done under a lock.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
