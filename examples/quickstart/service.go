// This file is the one to copy from: a service that uses the lock.
package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/rueidis"

	"relock/examples/internal/demo"
	"relock/rlock"
)

// A service sells units of one stock, as other services do at the same time. It
// stands for a process: it has a session of its own, and a Redis client of its own
// for the stock.
type service struct {
	session *rlock.Session
	lock    exclusive
	stock   *stock
}

// exclusive is what a service needs of a lock. It is only here so that the same code
// can run without one for contrast; yours says *rlock.Mutex.
type exclusive interface {
	Do(ctx context.Context, fn func(context.Context) error, opts ...rlock.LockOption) error
}

// openService connects a service. wire is how its session talks to Redis, so that
// its commands can be counted.
func openService(ctx context.Context, redis *demo.Redis, wire *demo.Wire, units int) (*service, error) {
	session, err := rlock.Dial(ctx, wire.Through(redis.Option), rlock.Config{})
	if err != nil {
		return nil, err
	}
	client, err := rueidis.NewClient(redis.Option)
	if err != nil {
		return nil, errors.Join(err, session.Close())
	}
	return &service{
		session: session,
		lock:    rlock.New(session, redis.Prefix+"lock"),
		stock:   newStock(client, redis.Prefix, units),
	}, nil
}

// serve sells a unit to one customer, if there is one left. What the lock protects
// is the time between reading the stock and writing it: without it others read the
// same number meanwhile, and sell the same unit.
func (s *service) serve(ctx context.Context, t *tally) error {
	asked := time.Now()
	return s.lock.Do(ctx, func(ctx context.Context) error { // a new ctx, which lives as long as the lock is held
		t.entered(time.Since(asked))
		left, err := s.stock.left(ctx)
		if err != nil || left == 0 {
			return err
		}
		time.Sleep(10 * time.Microsecond) // some work
		if err := s.stock.book(ctx, left-1); err != nil {
			return err
		}
		t.sold++
		return s.audit(ctx, t)
	})
}

// audit checks that what is left and what was sold make up the stock. It takes the
// lock for that, so that it may be called from anywhere. serve calls it while it
// holds the lock itself: its ctx carries the owner, and audit re-enters.
func (s *service) audit(ctx context.Context, t *tally) error {
	return s.lock.Do(ctx, func(ctx context.Context) error {
		t.acquired++
		ok, err := s.stock.balanced(ctx)
		if err == nil && !ok {
			t.badAudits++
		}
		return err
	})
}

// close ends the session, which would release what is still held, and the client.
func (s *service) close() error {
	s.stock.client.Close()
	if err := s.session.Close(); err != nil {
		return fmt.Errorf("close session: %w", err)
	}
	return nil
}

// unlocked is no lock at all, for contrast.
type unlocked struct{}

func (unlocked) Do(ctx context.Context, fn func(context.Context) error, _ ...rlock.LockOption) error {
	return fn(ctx)
}
