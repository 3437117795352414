// Together shows the multi-lock and the latch: six clerks of three services wait behind a latch,
// start at the same moment, and move money between accounts. Each transfer takes the locks of its
// two accounts together, in whatever order it names them, so that no two clerks wait for each
// other. A second latch tells when all of them are done.
//
// The accounts are plain variables: nothing but the locks protects them. Redis is an embedded
// one (miniredis); REDIS_ADDR=host:port takes your own, where it uses keys of its own, named
// after a random run.
//
// The exit code is 0 if no money was lost, and 1 if it was.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	"relock/examples/internal/demo"
	"relock/latch"
	"relock/multilock"
	"relock/rlock"
)

const (
	services  = 3
	clerks    = 6
	transfers = 50 // of each clerk
	opening   = 1000
	patience  = time.Minute
)

var names = []string{"ada", "barbara", "grace", "margaret"}

func main() {
	redis, err := demo.OpenRedis(os.Getenv("REDIS_ADDR"), "relock-together")
	if err == nil {
		err = run(context.Background(), redis, os.Stdout)
		redis.Close()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "\ntogether:", err)
		os.Exit(1)
	}
}

// A bank is what the clerks work on.
type bank struct {
	accounts map[string]*int // guarded by the locks of the same names
}

// run has the clerks work. It returns an error too if money was lost.
func run(ctx context.Context, redis *demo.Redis, out io.Writer) (err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	fmt.Fprintf(out, "relock together\n\n  Redis: %s\n", redis.Text)
	b := bank{accounts: map[string]*int{}}
	for _, name := range names {
		b.accounts[name] = new(int)
		*b.accounts[name] = opening
	}
	var sessions [services]*rlock.Session
	for i := range sessions {
		if sessions[i], err = rlock.Dial(ctx, redis.Option, rlock.Config{Prefix: redis.Prefix}); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, sessions[i].Close()) }()
	}
	start, done := latch.New(sessions[0], "start"), latch.New(sessions[0], "done")
	_, err1 := start.TrySet(ctx, 1)
	_, err2 := done.TrySet(ctx, clerks)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	errs := make([]error, clerks)
	var all sync.WaitGroup
	for i := range clerks {
		all.Go(func() { errs[i] = b.work(ctx, sessions[i%services]) })
	}
	began := time.Now()
	err1 = start.CountDown(ctx)
	err2 = done.Await(ctx)
	took := time.Since(began)
	all.Wait()
	if err := errors.Join(append(errs, err1, err2)...); err != nil {
		return err
	}
	sum := 0
	for _, name := range names {
		fmt.Fprintf(out, "  %-10s %5d\n", name, *b.accounts[name])
		sum += *b.accounts[name]
	}
	fmt.Fprintf(out, "  %-10s %5d after %d transfers in %v\n", "sum", sum, clerks*transfers, took.Round(time.Millisecond))
	return check(sum)
}

// check returns whether money was lost.
func check(sum int) error {
	if want := opening * len(names); sum != want {
		return fmt.Errorf("the sum is %d, want %d", sum, want)
	}
	return nil
}

// work is what one clerk does: wait for the start, make transfers, and say that it is done.
func (b *bank) work(ctx context.Context, session *rlock.Session) error {
	if err := latch.New(session, "start").Await(ctx); err != nil {
		return err
	}
	for range transfers {
		pair := rand.Perm(len(names))[:2]
		if err := b.transfer(ctx, session, names[pair[0]], names[pair[1]], 1+rand.IntN(100)); err != nil {
			return err
		}
	}
	return latch.New(session, "done").CountDown(ctx)
}

// transfer moves money while it holds the locks of both accounts.
func (b *bank) transfer(ctx context.Context, session *rlock.Session, from, to string, amount int) error {
	both := multilock.New(rlock.New(session, "account:"+from), rlock.New(session, "account:"+to))
	return both.Do(ctx, func(context.Context) error {
		*b.accounts[from] -= amount
		*b.accounts[to] += amount
		return nil
	})
}
