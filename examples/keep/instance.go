package main

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/redis/rueidis"

	"relock/rlock"
)

// workers is how many requests an instance serves at a time.
const workers = 2

// A request adds an amount to an account.
type request struct{ account, amount int }

// An instance is a process of the service: here, a session and its workers.
type instance struct {
	requests chan request
	session  *rlock.Session
	locks    []*rlock.Mutex // one for each account
	balances []int

	running sync.WaitGroup
	errs    [workers]error
	drained sync.Once
	closed  sync.Once
}

// start starts an instance, which serves what it is sent until drain.
func start(ctx context.Context, opt rueidis.ClientOption, prefix string, balances []int, opts []rlock.MutexOption) (*instance, error) {
	session, err := rlock.Dial(ctx, opt, rlock.Config{Prefix: prefix})
	if err != nil {
		return nil, err
	}
	i := &instance{requests: make(chan request), session: session, balances: balances}
	for n := range balances {
		i.locks = append(i.locks, rlock.New(session, fmt.Sprint("account:", n), opts...))
	}
	for w := range workers {
		i.running.Go(func() {
			for r := range i.requests {
				i.errs[w] = errors.Join(i.errs[w], i.serve(ctx, r))
			}
		})
	}
	return i, nil
}

// serve is one request. The instance need not know whether it keeps the account's lock.
func (i *instance) serve(ctx context.Context, r request) error {
	return i.locks[r.account].Do(ctx, func(context.Context) error {
		i.balances[r.account] += r.amount
		return nil
	})
}

// drain waits until all requests are served.
func (i *instance) drain() error {
	i.drained.Do(func() { close(i.requests) })
	i.running.Wait()
	return errors.Join(i.errs[:]...)
}

// close ends the instance. The locks that it keeps are given back.
func (i *instance) close() (err error) {
	i.closed.Do(func() { err = errors.Join(i.drain(), i.session.Close()) })
	return err
}
