// Command quickstart shows in a few seconds what relock does. It needs nothing but
// Go:
//
//	go run ./examples/quickstart
//
// Three services with twenty goroutines each sell a limited stock through a plain
// read-modify-write on Redis: once under the lock, once without it for contrast. It
// counts what was oversold, how long the goroutines waited and what the lock sent to
// Redis. Then a holder is cut off from Redis, and a time line shows that its context
// ends before the next one is let in.
//
// Redis is an embedded one (miniredis), which is convenient but not fast. To see it
// on a real one:
//
//	REDIS_ADDR=127.0.0.1:6379 go run ./examples/quickstart
//	REDIS_ADDR=rediss://user:password@host:6380 go run ./examples/quickstart
//
// There it uses keys of its own, named after a random run, and removes them at the
// end; a run that is killed leaves none for longer than ten minutes.
//
// The exit code is 0 if all went as promised, and 1 if not: something was oversold
// under the lock, the next one was let in too early, or an error came up.
//
// What to copy: [service.serve] and [service.audit] use the lock, [openService]
// opens a session.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"relock/examples/internal/demo"
)

// job says how much there is to do.
type job struct {
	services   int           // each a session of its own, as if it were a process
	goroutines int           // of each service
	stock      int           // units to sell
	customers  int           // who want one each: more than there are units
	open       time.Duration // the shop closes after this long, for a Redis that is far away
	lease      time.Duration // of the holder that is cut off
}

// fullJob takes about five seconds on a small machine with the embedded Redis.
var fullJob = job{
	services: 3, goroutines: 20, stock: 2000, customers: 3000,
	open: 10 * time.Second, lease: time.Second,
}

// patience bounds a run, whatever happens to Redis.
const patience = time.Minute

// result is what a run found out.
type result struct {
	locked, unlocked sale
	cut              cutOff
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program at once
	redis, err := demo.OpenRedis(os.Getenv("REDIS_ADDR"), "relock-quickstart")
	if err == nil {
		_, err = run(ctx, redis, fullJob, newScreen(os.Stdout))
		redis.Close()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "\nquickstart:", err)
		os.Exit(1)
	}
}

// run does the job. It returns an error too if everything worked but the lock did
// not keep its promises.
func run(ctx context.Context, redis *demo.Redis, j job, out *screen) (res result, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	out.header(redis, j)

	if res.locked, res.unlocked, err = sell(ctx, redis, j, out); err != nil {
		return res, fmt.Errorf("sale: %w", err)
	}
	out.sales(res.locked, res.unlocked)

	if res.cut, err = cutOffHolder(ctx, redis, j.lease); err != nil {
		return res, fmt.Errorf("cut-off: %w", err)
	}
	out.timeLine(res.cut)

	if err = errors.Join(res.locked.check(), res.cut.check()); err == nil {
		out.verdict()
	}
	return res, err
}
