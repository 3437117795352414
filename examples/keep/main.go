// Keep shows what rlock.Keep saves a sharded service. Requests for accounts are routed by the account's name, so that one
// instance has them all, as long as the instances stay the same. In the middle of the run one more instance starts, and
// about a quarter of the accounts moves to it, under load: for a moment two instances have requests for one account. So
// each request takes the account's lock, although mostly nobody else wants it.
//
// The same requests are served twice: without Keep each costs two commands, one for Lock and one for Unlock. With Keep an
// instance pays for the first request of an account and for each one that has moved, and no more.
//
// The accounts are plain variables: nothing but the locks protects them. Redis is an embedded one (miniredis);
// REDIS_ADDR=host:port takes your own, where it uses keys of its own, named after a random run.
//
// The exit code is 0 if no money was lost and Keep has saved commands, and 1 otherwise.
package main

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"os"
	"time"

	"relock/examples/internal/demo"
	"relock/rlock"
)

const (
	accounts = 100
	requests = 4000 // of each run; the rebalance comes behind half of them
	few      = 3    // instances before the rebalance
	many     = 4    // and after it
	keepFor  = 10 * time.Second
	patience = time.Minute
)

func main() {
	redis, err := demo.OpenRedis(os.Getenv("REDIS_ADDR"), "relock-keep")
	if err == nil {
		err = run(context.Background(), redis, os.Stdout)
		redis.Close()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "\nkeep:", err)
		os.Exit(1)
	}
}

// run serves the requests without Keep and with it, and tells what that costs.
func run(ctx context.Context, redis *demo.Redis, out io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	moved := 0
	for i := range accounts {
		if instanceOf(i, few) != instanceOf(i, many) {
			moved++
		}
	}
	fmt.Fprintf(out, "relock keep\n\n  Redis: %s\n  %d requests for %d accounts. Instance %d starts behind half of them and takes over %d accounts.\n\n",
		redis.Text, requests, accounts, many, moved)
	fmt.Fprintf(out, "  commands a request   before   after   at the end\n")
	plain, err := serve(ctx, redis, "plain")
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "  %s\n", plain.row("without Keep"))
	kept, err := serve(ctx, redis, "kept", rlock.Keep(keepFor))
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "  %s\n", kept.row("with Keep"))
	if kept.before+kept.after+kept.end >= plain.before+plain.after+plain.end {
		return errors.New("the run with Keep has sent no fewer commands")
	}
	return nil
}

// A cost is how many commands the sessions of a run have sent in each part of it.
type cost struct{ before, after, end int64 }

func (c cost) row(name string) string {
	return fmt.Sprintf("%-20s %6.3f  %6.3f   %d", name, float64(c.before)/(requests/2), float64(c.after)/(requests/2), c.end)
}

// instanceOf routes an account to one of so many instances by rendezvous hashing: when one more starts, an account moves
// to that one or not at all.
func instanceOf(account, instances int) (best int) {
	var most uint64
	for i := range instances {
		h := fnv.New64a()
		fmt.Fprintf(h, "%d of account %d", i, account)
		if v := h.Sum64() * 0x9e3779b97f4a7c15; v >= most {
			best, most = i, v
		}
	}
	return best
}

// serve is one run. It returns an error too if money was lost.
func serve(ctx context.Context, redis *demo.Redis, name string, opts ...rlock.MutexOption) (c cost, err error) {
	var wire demo.Wire
	balances := make([]int, accounts) // each guarded by the lock of its account
	var instances []*instance
	defer func() {
		for _, i := range instances {
			err = errors.Join(err, i.close())
		}
	}()
	for range many {
		i, err := start(ctx, wire.Through(redis.Option), redis.Prefix+name+":", balances, opts)
		if err != nil {
			return c, err
		}
		instances = append(instances, i)
	}
	begun, sum, routed := wire.Commands(), 0, few
	for r := range requests {
		if r == requests/2 {
			c.before = wire.Commands() - begun
			routed = many
		}
		account, amount := rand.IntN(accounts), 1+rand.IntN(100)
		sum += amount
		select {
		case instances[instanceOf(account, routed)].requests <- request{account, amount}:
		case <-ctx.Done():
			return c, ctx.Err()
		}
	}
	var errs []error
	for _, i := range instances {
		errs = append(errs, i.drain())
	}
	c.after = wire.Commands() - begun - c.before
	for _, i := range instances {
		errs = append(errs, i.close())
	}
	c.end = wire.Commands() - begun - c.before - c.after
	for _, b := range balances {
		sum -= b
	}
	return c, errors.Join(append(errs, check(sum))...)
}

// check returns whether money was lost.
func check(missing int) error {
	if missing != 0 {
		return fmt.Errorf("%d is missing from the accounts", missing)
	}
	return nil
}
