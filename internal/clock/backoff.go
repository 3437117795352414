package clock

import (
	"context"
	"math"
	"math/rand/v2"
	"time"
)

// Backoff says how long to sleep before the n-th further attempt; package rlock documents it.
type Backoff func(n int) time.Duration

// Least is the least time between two attempts that no message has asked for. PTTL counts whole
// milliseconds, so a shorter one would see the same.
const Least = time.Millisecond

// Linear sleeps for d each time, jittered.
func Linear(d time.Duration) Backoff {
	return func(int) time.Duration { return Jitter(max(d, Least)) }
}

// Exponential sleeps for first, doubling to most, jittered.
func Exponential(first, most time.Duration) Backoff {
	first = max(first, Least)
	return func(n int) time.Duration {
		d := most
		if shift := min(max(n-1, 0), 62); first <= math.MaxInt64>>shift {
			d = min(first<<shift, most)
		}
		return Jitter(max(d, Least))
	}
}

// Limit gives up after that many attempts. It is nil for a nil Backoff, so that Retry refuses it.
func Limit(b Backoff, attempts int) Backoff {
	if b == nil {
		return nil
	}
	return func(n int) time.Duration {
		if n >= attempts {
			return -1
		}
		return b(n)
	}
}

// Next returns how long to sleep before the n-th further attempt, and false to give up. It runs
// the caller's code.
func (b Backoff) Next(n int) (d time.Duration, ok bool) {
	d = b(n)
	return max(d, Least), d >= 0
}

// Jitter returns a time between half of d and d, so that many that failed together do not come
// back together.
func Jitter(d time.Duration) time.Duration {
	return d/2 + time.Duration(rand.Int64N(int64(d)/2+1))
}

// Doubling returns the pause after the n-th failure, counted from 0: 10 ms, doubling to most,
// jittered.
func Doubling(n int, most time.Duration) time.Duration {
	return Jitter(min(10*time.Millisecond<<min(n, 10), most))
}

// Pause sleeps before the n-th retry of a command, for half a second at most, or returns the error
// of ctx when that ends first.
func Pause(ctx context.Context, n int) error { return Sleep(ctx, Doubling(n, 500*time.Millisecond)) }

// Sleep sleeps, or returns the error of ctx when that ends first.
func Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
