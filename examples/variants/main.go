// Command variants shows what the variants of the lock are for, each at its work, with
// a picture. It needs nothing but Go:
//
//		go run ./examples/variants
//
//	  - The fair lock serves customers of three services in the order in which they came; the
//	    plain lock, beside it, does not.
//	  - The read-write lock lets readers in side by side, and a writer in although readers
//	    keep coming.
//	  - The semaphore lets three at most in at once; and when a process crashes that holds
//	    two permits, those come back by themselves.
//
// Redis is an embedded one (miniredis); REDIS_ADDR=host:port takes your own, where it uses
// keys of its own, named after a random run, and removes them at the end.
//
// The exit code is 0 if all went as promised, and 1 if not.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/redis/rueidis"

	"relock/examples/internal/demo"
	"relock/rlock"
)

// patience bounds a run, whatever happens to Redis.
const patience = time.Minute

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program at once
	redis, err := demo.OpenRedis(os.Getenv("REDIS_ADDR"), "relock-variants")
	if err == nil {
		err = run(ctx, redis, time.Second, &screen{w: os.Stdout})
		redis.Close()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "\nvariants:", err)
		os.Exit(1)
	}
}

// run shows one variant after the other. It returns an error too if everything worked but
// a lock did not keep its promises.
func run(ctx context.Context, redis *demo.Redis, lease time.Duration, out *screen) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	out.printf("relock variants\n\n  Redis: %s\n  Keys:  %s..., removed at the end\n", redis.Text, redis.Prefix)

	order, err := showFair(ctx, redis)
	if err != nil {
		return fmt.Errorf("fair lock: %w", err)
	}
	out.fair(order)
	reading, err := showReadWrite(ctx, redis)
	if err != nil {
		return fmt.Errorf("read-write lock: %w", err)
	}
	out.readWrite(reading)
	limited, err := showLimit(ctx, redis)
	if err != nil {
		return fmt.Errorf("semaphore: %w", err)
	}
	out.limit(limited)
	crashed, err := showCrash(ctx, redis, lease)
	if err != nil {
		return fmt.Errorf("semaphore after a crash: %w", err)
	}
	out.crash(crashed)
	return errors.Join(order.check(), reading.check(), limited.check(), crashed.check())
}

// openServices opens n sessions, as if each were a process. cfg is called for each.
func openServices(ctx context.Context, redis *demo.Redis, n int, cfg rlock.Config) (sessions []*rlock.Session, closeAll func() error, err error) {
	closeAll = func() error {
		var errs error
		for _, s := range sessions {
			errs = errors.Join(errs, s.Close())
		}
		return errs
	}
	cfg.Prefix = redis.Prefix
	for range n {
		s, err := rlock.Dial(ctx, redis.Option, cfg)
		if err != nil {
			return nil, nil, errors.Join(err, closeAll())
		}
		sessions = append(sessions, s)
	}
	return sessions, closeAll, nil
}

// remove deletes keys that outlive the locks: those of a semaphore.
func remove(ctx context.Context, redis *demo.Redis, keys ...string) error {
	client, err := rueidis.NewClient(redis.Option)
	if err != nil {
		return err
	}
	defer client.Close()
	for i, k := range keys {
		keys[i] = redis.Prefix + k
	}
	return client.Do(ctx, client.B().Del().Key(keys...).Build()).Error()
}
